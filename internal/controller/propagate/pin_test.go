package propagate

import (
	"context"
	"errors"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

// found are pods, by cluster; a cluster with none does not answer.
type found map[string][]string

func (f found) Owned(_ context.Context, cluster, _, pod, _, _ string) (bool, error) {
	if f[cluster] == nil {
		return false, errors.New("no answer")
	}
	return slices.Contains(f[cluster], pod), nil
}

func TestScaleDownPinsReplicasOfNamedPodsInTheSameWrite(t *testing.T) {
	template := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps.kruise.io/v1alpha1",
		"kind": "CloneSet",
		"spec": map[string]any{"scaleStrategy": map[string]any{"podsToDelete": []any{"c-a", "c-b"}}}}}
	template.SetName("c")
	was := &workv1alpha2.ResourceBinding{}
	was.Spec = workv1alpha2.ResourceBindingSpec{Replicas: 6,
		Clusters: []workv1alpha2.TargetCluster{{Name: "m1", Replicas: 2}, {Name: "m2", Replicas: 2},
			{Name: "m3", Replicas: 2}},
		Placement: &policyv1alpha1.Placement{ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{
			ReplicaSchedulingType:     policyv1alpha1.ReplicaSchedulingTypeDivided,
			ReplicaDivisionPreference: policyv1alpha1.ReplicaDivisionPreferenceWeighted}}}
	r := &reconciler{Options: Options{Pods: found{"m1": {}, "m2": {"c-b", "c-a"}}}} // m3 does not answer
	look := func(when string, replicas int32, want string) {
		t.Helper()
		is := was.DeepCopy()
		is.Spec.Replicas = replicas
		if _, err := r.pin(t.Context(), template, was, is); err != nil {
			t.Fatal(err)
		}
		if got := is.Annotations[wellknown.PinnedScaleDownAnnotation]; got != want {
			t.Errorf("%s, the pin is %s, want %s", when, got, want)
		}
		was = is
	}
	look("for one less", 5, `{"from":6,"to":5,"clusters":{"m2":1}}`)
	look("while nothing changes", 5, `{"from":6,"to":5,"clusters":{"m2":1}}`)
	look("for another one less, before anything was scheduled", 4, `{"from":6,"to":4,"clusters":{"m2":2}}`)
	was.Spec.Clusters[1].Replicas = 0
	look("for more", 7, "")

	was.Spec.Placement = nil
	was.Spec.Replicas = 6
	look("of what is copied", 3, "")
}
