package propagate

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

func TestReplicasStayWhileAPodToDeleteIsUnknown(t *testing.T) {
	template := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps.kruise.io/v1beta1",
		"kind": "CloneSet",
		"spec": map[string]any{"scaleStrategy": map[string]any{"podsToDelete": []any{"c-a"}}}}}
	template.SetName("c")
	was := &workv1alpha2.ResourceBinding{}
	was.Spec = workv1alpha2.ResourceBindingSpec{Replicas: 6,
		Clusters: []workv1alpha2.TargetCluster{{Name: "m1", Replicas: 3}, {Name: "m2", Replicas: 3}},
		Placement: &policyv1alpha1.Placement{ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{
			ReplicaSchedulingType:     policyv1alpha1.ReplicaSchedulingTypeDivided,
			ReplicaDivisionPreference: policyv1alpha1.ReplicaDivisionPreferenceWeighted}}}
	for _, c := range []struct {
		name        string
		pods        found
		podsUnknown bool
		replicas    int32
		pin         string
	}{
		{"a cluster does not respond", found{"m1": {}}, true, 6, ""},
		{"the cluster of the pod does not respond", found{"m2": {}}, true, 6, ""},
		{"the pod is in a cluster that responds", found{"m1": {"c-a"}}, false, 5, `{"from":6,"to":5,"clusters":{"m1":1}}`},
		{"the pod is nowhere", found{"m1": {}, "m2": {}}, false, 5, ""},
	} {
		r := &reconciler{Options: Options{Pods: c.pods}}
		is := was.DeepCopy()
		is.Spec.Replicas = 5
		podsUnknown, err := r.pin(t.Context(), template, was, is)
		if err != nil || podsUnknown != c.podsUnknown || is.Spec.Replicas != c.replicas ||
			is.Annotations[wellknown.PinnedScaleDownAnnotation] != c.pin {
			t.Errorf("%s: held is %v (%v), replicas %d, the pin %q; want %v, %d, %q", c.name, podsUnknown, err, is.Spec.Replicas,
				is.Annotations[wellknown.PinnedScaleDownAnnotation], c.podsUnknown, c.replicas, c.pin)
		}
	}
}
