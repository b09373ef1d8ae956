package propagate

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/kind"
)

// Single reports whether the template goes to one cluster of its policy only, because several would do its work several
// times.
func Single(template *unstructured.Unstructured) bool {
	return kind.Facts(template).Runs == kind.InOneCluster && !runsPerCluster(template)
}

func runsPerCluster(template *unstructured.Unstructured) bool {
	return template.GetAnnotations()[wellknown.RunPerClusterAnnotation] == "true"
}

// single gives a binding one divided replica. The weights of the policy select its cluster; without weights, the
// cluster with the most room gets it, and equal clusters take turns. The replica requires the maximum of its pods'
// requests.
func single(spec *workv1alpha2.ResourceBindingSpec, namespace string, components []workv1alpha2.Component) {
	divideSingle(spec.Placement)
	needs := &workv1alpha2.ReplicaRequirements{Namespace: namespace}
	for _, c := range components {
		if c.ReplicaRequirements == nil {
			continue
		}
		for name, q := range c.ReplicaRequirements.ResourceRequest {
			if most, ok := needs.ResourceRequest[name]; ok && most.Cmp(q) >= 0 {
				continue
			}
			if needs.ResourceRequest == nil {
				needs.ResourceRequest = corev1.ResourceList{}
			}
			needs.ResourceRequest[name] = q.DeepCopy()
		}
	}
	spec.Replicas, spec.ReplicaRequirements, spec.Components = 1, needs, nil
}

// divideSingle makes a placement divide its one replica.
func divideSingle(p *policyv1alpha1.Placement) {
	if !p.DividesReplicas() {
		p.ReplicaScheduling = &policyv1alpha1.ReplicaSchedulingStrategy{
			ReplicaSchedulingType:     policyv1alpha1.ReplicaSchedulingTypeDivided,
			ReplicaDivisionPreference: policyv1alpha1.ReplicaDivisionPreferenceWeighted,
			WeightPreference: &policyv1alpha1.ClusterPreferences{
				DynamicWeight: policyv1alpha1.DynamicWeightByAvailableReplicas},
		}
	}
}

// RunAdvice returns a warning for the owner of a template that runs to completion and is placed by a policy that may
// choose several clusters. It is empty for other templates, and if the template requests a run in each cluster.
func RunAdvice(template *unstructured.Unstructured, p policyv1alpha1.Propagation) string {
	runs := kind.Facts(template).Runs
	if runs == 0 || runsPerCluster(template) || oneCluster(p.PropagationSpec().Placement) {
		return ""
	}
	if runs == kind.InOneCluster {
		return fmt.Sprintf("%s runs in one of the clusters that the policy selects; annotate it with %s: \"true\" to run it in each", template.GetKind(), wellknown.RunPerClusterAnnotation)
	}
	return fmt.Sprintf("%s runs once per schedule in each cluster that the policy selects; make the policy select one cluster, or annotate the %s with %s: \"true\" if that is intended",
		template.GetKind(), template.GetKind(), wellknown.RunPerClusterAnnotation)
}

// oneCluster reports whether the placement can choose one cluster at most.
func oneCluster(p policyv1alpha1.Placement) bool {
	if slices.ContainsFunc(p.SpreadConstraints, func(c policyv1alpha1.SpreadConstraint) bool {
		return c.SpreadByField == policyv1alpha1.SpreadByFieldCluster && c.MaxGroups == 1
	}) {
		return true
	}
	if len(p.ClusterAffinities) > 0 {
		return !slices.ContainsFunc(p.ClusterAffinities, func(t policyv1alpha1.ClusterAffinityTerm) bool {
			return len(t.ClusterNames) != 1
		})
	}
	return p.ClusterAffinity != nil && len(p.ClusterAffinity.ClusterNames) == 1
}
