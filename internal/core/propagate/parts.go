package propagate

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/schedule"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
)

// Parts returns the subsets of a template that name their clusters, with their replicas, for the scheduler, which does
// not see the template; nil if there are none.
func Parts(template *unstructured.Unstructured, replicas int32) *schedule.Parts {
	if !fleet.NamesClusters(template) {
		return nil
	}
	homes, rest, err := fleet.Homes(template, int64(replicas))
	if err != nil {
		return &schedule.Parts{Fault: err.Error()}
	}
	p := &schedule.Parts{Rest: rest}
	for _, h := range homes {
		p.Subsets = append(p.Subsets, schedule.Part{Name: h.Subset, Replicas: int32(h.Replicas), ClusterAffinity: h.Affinity})
	}
	return p
}

// divideParts divides the replicas among the clusters even if the policy duplicates, because each subset of the
// template runs in its own clusters.
func divideParts(spec *workv1alpha2.ResourceBindingSpec) {
	if !spec.Placement.DividesReplicas() {
		spec.Placement.ReplicaScheduling = &policyv1alpha1.ReplicaSchedulingStrategy{
			ReplicaSchedulingType:     policyv1alpha1.ReplicaSchedulingTypeDivided,
			ReplicaDivisionPreference: policyv1alpha1.ReplicaDivisionPreferenceWeighted,
		}
	}
}
