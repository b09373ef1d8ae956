package admission

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestWhoAsksToOverwriteWhereThatIsForbiddenIsRefused(t *testing.T) {
	shop := object(t, `{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {argosy.io/forbid-overwrite: "true"}}}`)
	other := object(t, `{apiVersion: v1, kind: Namespace, metadata: {name: other}}`)
	const overwrite = `work.karmada.io/conflict-resolution: overwrite`
	inNamespace := func(ns string) []*unstructured.Unstructured {
		return []*unstructured.Unstructured{
			object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: `+ns+`, name: c, annotations: {`+overwrite+`}}}`),
			object(t, `{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, metadata: {namespace: `+ns+`, name: p}, spec: {conflictResolution: Overwrite,
				resourceSelectors: [{apiVersion: v1, kind: ConfigMap}], placement: {clusterAffinity: {clusterNames: [eu]}}}}`),
			object(t, `{apiVersion: policy.karmada.io/v1alpha1, kind: OverridePolicy, metadata: {namespace: `+ns+`, name: o}, spec: {overrideRules: [{overriders: {
				annotationsOverrider: [{operator: addIfAbsent, value: {`+overwrite+`}}]}}]}}`),
			object(t, `{apiVersion: policy.karmada.io/v1alpha1, kind: OverridePolicy, metadata: {namespace: `+ns+`, name: o}, spec: {overrideRules: [{overriders: {
				plaintext: [{path: /metadata/annotations/work.karmada.io~1conflict-resolution, operator: add, value: overwrite}]}}]}}`),
			object(t, `{apiVersion: policy.karmada.io/v1alpha1, kind: OverridePolicy, metadata: {namespace: `+ns+`, name: o}, spec: {overriders: {
				plaintext: [{path: /metadata/annotations, operator: add, value: {`+overwrite+`}}]}}}`),
		}
	}
	h := newHub(t, shop, other)
	for _, obj := range inNamespace("shop") {
		h.refuses("admin", obj, nil, "forbidden", "would take over in members what the hub does not manage", "namespace shop forbids it (label argosy.io/forbid-overwrite)")
	}
	h.refuses("admin", object(t, `{apiVersion: v1, kind: Namespace, metadata: {name: new, labels: {argosy.io/forbid-overwrite: ""}, annotations: {`+overwrite+`}}}`), nil, "namespace new forbids it")
	for _, obj := range inNamespace("other") {
		if _, _, err := h.write("admin", obj, nil); err != nil {
			t.Errorf("in another namespace: %v", err)
		}
	}
	// What asked before may be written on, and may not come to ask.
	before := newHub(t)
	for _, obj := range inNamespace("shop") {
		stored, _, err := before.write("admin", obj, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := h.write("admin", stored, stored); err != nil {
			t.Errorf("what asked before the namespace forbade it: %v", err)
		}
	}
	h.refuses("admin", inNamespace("shop")[0], object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: shop, name: c, annotations: {work.karmada.io/conflict-resolution: abort}}}`), "forbidden")
	if _, _, err := h.write("system:apiserver", inNamespace("shop")[0], nil); err != nil {
		t.Errorf("the hub's own loops: %v", err)
	}

	h = newHubWith(t, Options{ForbidOverwrite: true}, shop, other)
	for _, ns := range []string{"shop", "other"} {
		for _, obj := range inNamespace(ns) {
			h.refuses("admin", obj, nil, "forbidden", "this hub forbids it (--forbid-overwrite)", "ClusterPropagationPolicy")
		}
	}
	h.refuses("admin", object(t, `{apiVersion: v1, kind: Namespace, metadata: {name: new, labels: {argosy.io/forbid-overwrite: "false"}, annotations: {`+overwrite+`}}}`), nil, "this hub forbids it")
	if _, _, err := h.write("admin", object(t, `{apiVersion: policy.karmada.io/v1alpha1, kind: ClusterPropagationPolicy, metadata: {name: p}, spec: {conflictResolution: Overwrite,
		resourceSelectors: [{apiVersion: v1, kind: ConfigMap}], placement: {clusterAffinity: {clusterNames: [eu]}}}}`), nil); err != nil {
		t.Errorf("a ClusterPropagationPolicy, whose authors may: %v", err)
	}
	h.create(`{apiVersion: v1, kind: ConfigMap, metadata: {namespace: other, name: c, annotations: {work.karmada.io/conflict-resolution: abort}}}`)
}
