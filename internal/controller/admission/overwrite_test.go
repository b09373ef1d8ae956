package admission

import (
	"github.com/argosy-io/argosy/test/kit/membertest"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/authentication/user"
)

func TestForbiddenOverwriteIsRejected(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		shop := object(t, `{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {argosy.io/forbid-overwrite: "true"}}}`)
		other := object(t, `{apiVersion: v1, kind: Namespace, metadata: {name: other}}`)
		const overwrite = `work.karmada.io/conflict-resolution: overwrite`
		inNamespace := func(ns string) []*unstructured.Unstructured {
			return []*unstructured.Unstructured{
				object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: `+ns+`, name: c, annotations: {`+overwrite+
					`}}}`),
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
			h.refuses("admin", obj, nil, "forbidden", "would take over objects in members that the hub does not manage",
				"namespace shop forbids it (label argosy.io/forbid-overwrite)")
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
		h.refuses("admin", inNamespace("shop")[0],
			object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: shop, name: c, annotations: {work.karmada.io/conflict-resolution: abort}}}`), "forbidden")
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
	})
}

// A binding says by its labels which policy made it, and its author writes these: those of a ClusterPropagationPolicy
// open nothing.
func TestForgedBindingLabelsCannotOverwrite(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		h := newHub(t, object(t, `{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {argosy.io/forbid-overwrite: "true"}}}`), object(t, `{apiVersion: v1, kind: Namespace, metadata: {name: other}}`))
		binding := func(namespace, labels, resolution string) *unstructured.Unstructured {
			return object(t, `{apiVersion: work.karmada.io/v1alpha2, kind: ResourceBinding, metadata: {namespace: `+namespace+`, name: db-secret, labels: {`+labels+`}},
			spec: {conflictResolution: `+resolution+`,
				resource: {apiVersion: v1, kind: Secret, namespace: `+namespace+`, name: db}}}`)
		}
		const cluster = "clusterpropagationpolicy.karmada.io/permanent-id: id"
		const refusal = "spec.conflictResolution: Overwrite would take over objects in members that the hub does not manage, but namespace shop forbids it"
		for _, labels := range []string{"", cluster} {
			h.refuses("admin", binding("shop", labels, "Overwrite"), nil, refusal)
			h.refuses("admin", binding("shop", labels, "Overwrite"), binding("shop", labels, "Abort"), refusal)
			if _, _, err := h.write("admin", binding("shop", labels, "Abort"), nil); err != nil {
				t.Errorf("one that aborts: %v", err)
			}
			if _, _, err := h.write("admin", binding("other", labels, "Overwrite"), nil); err != nil {
				t.Errorf("in another namespace: %v", err)
			}
			if _, _, err := h.write(user.APIServerUser, binding("shop", labels, "Overwrite"), nil); err != nil {
				t.Errorf("the hub's own loops: %v", err)
			}
		}
		// One of a PropagationPolicy from before it was forbidden aborts, and does not come to pass for another's.
		before := binding("shop", "propagationpolicy.karmada.io/permanent-id: id", "Overwrite")
		h.refuses("admin", binding("shop", cluster, "Overwrite"), before, refusal)
		scheduled := before.DeepCopy()
		_ = unstructured.SetNestedField(scheduled.Object, int64(3), "spec", "replicas")
		if _, _, err := h.write("admin", scheduled, before); err != nil {
			t.Errorf("a change of something else: %v", err)
		}
		// In the older version it is said by an annotation.
		h.refuses("admin", object(t, `{apiVersion: work.karmada.io/v1alpha1, kind: ResourceBinding, metadata: {namespace: shop, name: db-secret, labels: {`+cluster+`},
		annotations: {argosy.io/v1alpha2-rest: '{"spec":{"conflictResolution":"Overwrite"}}'}}, spec: {resource: {apiVersion: v1, kind: Secret, namespace: shop, name: db}}}`), nil, refusal)
	})
}
