package execute_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/argosy-io/argosy/internal/core/execute"
)

func TestRetainKeepsTheReplicasOfTheMember(t *testing.T) {
	workload := func(replicas any, labels map[string]string,
		fields ...metav1.ManagedFieldsEntry) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment",
			"metadata": map[string]any{"name": "d"}, "spec": map[string]any{"replicas": replicas}}}
		u.SetLabels(labels)
		u.SetManagedFields(fields)
		return u
	}
	by := func(manager, subresource, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Subresource: subresource,
			Operation: metav1.ManagedFieldsOperationUpdate, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields)}
	}
	const replicas = `{"f:spec":{"f:replicas":{},"f:template":{}}}`
	hub, status := by("argosy", "", replicas), by("kube-controller-manager", "status", `{"f:status":{"f:replicas":{}}}`)
	scaled := by("kube-controller-manager", "scale", `{"f:spec":{"f:replicas":{}}}`)
	labelled := map[string]string{"resourcetemplate.karmada.io/retain-replicas": "true"}
	for _, c := range []struct {
		name      string
		manifest  *unstructured.Unstructured
		retained  int64
		observed  *unstructured.Unstructured
		want      int64
		overruled bool
	}{
		{"the hub's own from before are not the member's", workload(int64(6), nil), 3, workload(int64(3), nil, hub, status),
			6, true},
		{"nor of fields that are trimmed", workload(int64(6), nil), 3, workload(int64(3), nil), 6, true},
		{"an autoscaler's are", workload(int64(6), nil), 4, workload(int64(4), nil, hub, scaled), 4, false},
		{"somebody's who edits are", workload(int64(6), nil), 4, workload(int64(4), nil, by("kubectl-edit", "", replicas)), 4,
			false},
		{"somebody who set a field of that name elsewhere has not scaled", workload(int64(6), nil), 3,
			workload(int64(3), nil, by("x", "", `{"f:spec":{"f:subsets":{"f:replicas":{}}}}`)), 6, true},
		{"what Retain works out itself counts", workload(int64(6), nil), 5, workload(int64(3), nil, hub), 5, false},
		{"all of it is the member's by label", workload(int64(6), labelled), 3, workload(int64(3), nil, hub), 3, false},
		{"the same number is the same", workload(int64(3), nil), 3, workload(int64(3), nil, hub), 3, false},
		{"what the hub does not set is not the hub's", workload(nil, nil), 3, workload(int64(3), nil, hub), 3, false},
		{"nonsense is left alone", workload("x", nil), 3, workload(int64(3), nil, hub), 3, false},
	} {
		retained := c.manifest.DeepCopy()
		retained.Object["spec"].(map[string]any)["replicas"] = c.retained
		before := retained.DeepCopy()
		got, overruled := execute.Share(c.manifest, retained, c.observed, "argosy")
		if n, _, _ := unstructured.NestedInt64(got.Object, "spec", "replicas"); n != c.want || overruled != c.overruled {
			t.Errorf("%s: %d replicas, overruled: %v; want %d, %v", c.name, n, overruled, c.want, c.overruled)
		}
		if n, _, _ := unstructured.NestedInt64(retained.Object, "spec",
			"replicas"); n != before.Object["spec"].(map[string]any)["replicas"] {
			t.Errorf("%s: the retained object was changed", c.name)
		}
	}
	same := workload(int64(6), nil)
	if got, overruled := execute.Share(same, same, workload(int64(3), nil, hub), "argosy"); got != same || overruled {
		t.Error("a template of which nothing was retained is another one")
	}
}

func TestAutoscalerNamesItsTarget(t *testing.T) {
	for name, c := range map[string]struct {
		scaler string
		want   execute.Target
	}{
		"one of Kubernetes": {
			`{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {namespace: shop}, spec: {scaleTargetRef: {apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, name: web}}}`,
			execute.Target{GroupKind: schema.GroupKind{Group: "apps.kruise.io", Kind: "CloneSet"}, Namespace: "shop",
				Name: "web"}},
		"one of KEDA that says a name alone": {
			`{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, metadata: {namespace: shop}, spec: {scaleTargetRef: {name: web}}}`,
			execute.Target{GroupKind: schema.GroupKind{Group: "apps", Kind: "Deployment"}, Namespace: "shop", Name: "web"}},
		"one of KEDA of another kind": {
			`{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, metadata: {namespace: shop}, spec: {scaleTargetRef: {apiVersion: argoproj.io/v1alpha1, kind: Rollout, name: web}}}`,
			execute.Target{GroupKind: schema.GroupKind{Group: "argoproj.io", Kind: "Rollout"}, Namespace: "shop", Name: "web"}},
		"one without a target": {`{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {namespace: shop}}`,
			execute.Target{}},
	} {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(c.scaler), &u.Object); err != nil {
			t.Fatal(err)
		}
		if got, ok := execute.TargetOf(u); ok != (c.want != execute.Target{}) || ok && got != c.want {
			t.Errorf("%s: %+v, %v, want %+v", name, got, ok, c.want)
		}
	}
}

func TestKeepsOld(t *testing.T) {
	for text, want := range map[string]bool{
		"{replicas: 10, updateStrategy: {rollingUpdate: {partition: 9}}}":     true,
		"{replicas: 10, updateStrategy: {partition: 9}}":                      true,
		"{replicas: 10, updateStrategy: {rollingUpdate: {partition: 0}}}":     false,
		"{replicas: 10, updateStrategy: {rollingUpdate: {partition: '90%'}}}": false,
		"{replicas: 10}": false,
		"{updateStrategy: {rollingUpdate: {partition: 9}}}": false,
	} {
		u := object(t, "{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, metadata: {name: c}, spec: "+text+"}")
		if got := execute.KeepsOld(u); got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
		u.SetLabels(map[string]string{"resourcetemplate.karmada.io/retain-replicas": "true"})
		if execute.KeepsOld(u) {
			t.Errorf("%s: it counts also where members own the replicas", text)
		}
	}
}
