package schedule

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
)

// MatchesAffinity says whether a cluster is one that the affinity means: all parts that are set agree, and it is not
// excluded. An affinity with no part set means every cluster. A selector that is not valid means none.
func MatchesAffinity(c *clusterv1alpha1.Cluster, a policyv1alpha1.ClusterAffinity) bool {
	return allows(&a, c)
}

func allows(a *policyv1alpha1.ClusterAffinity, c *clusterv1alpha1.Cluster) bool {
	return !slices.Contains(a.ExcludeClusters, c.Name) &&
		(len(a.ClusterNames) == 0 || slices.Contains(a.ClusterNames, c.Name)) &&
		selectsLabels(a.LabelSelector, c.Labels) &&
		selectsFields(a.FieldSelector, c)
}

// AffinityMayChange reports whether an update of a cluster changed a field that affinities select by.
func AffinityMayChange(before, now *clusterv1alpha1.Cluster) bool {
	return !maps.Equal(before.Labels, now.Labels) || before.Spec.Provider != now.Spec.Provider ||
		before.Spec.Region != now.Spec.Region || !slices.Equal(zones(before), zones(now))
}

// selectsLabels is the matching of metav1.LabelSelectorAsSelector without building a selector for each question.
// A nil selector is a part that is not set.
func selectsLabels(s *metav1.LabelSelector, labels map[string]string) bool {
	if s == nil {
		return true
	}
	for key, want := range s.MatchLabels {
		if value, ok := labels[key]; !ok || value != want {
			return false
		}
	}
	for i := range s.MatchExpressions {
		if !selectsLabel(&s.MatchExpressions[i], labels) {
			return false
		}
	}
	return true
}

func selectsLabel(e *metav1.LabelSelectorRequirement, labels map[string]string) bool {
	value, has := labels[e.Key]
	switch e.Operator {
	case metav1.LabelSelectorOpIn:
		return has && slices.Contains(e.Values, value)
	case metav1.LabelSelectorOpNotIn:
		return len(e.Values) > 0 && !(has && slices.Contains(e.Values, value))
	case metav1.LabelSelectorOpExists:
		return has && len(e.Values) == 0
	case metav1.LabelSelectorOpDoesNotExist:
		return !has && len(e.Values) == 0
	}
	return false
}

// selectsFields: In holds if any value of the field is listed, NotIn if none is. A cluster may have several zones.
func selectsFields(s *policyv1alpha1.FieldSelector, c *clusterv1alpha1.Cluster) bool {
	if s == nil {
		return true
	}
	for i := range s.MatchExpressions {
		e := &s.MatchExpressions[i]
		var listed bool
		switch policyv1alpha1.SpreadFieldValue(e.Key) {
		case policyv1alpha1.SpreadByFieldProvider:
			listed = c.Spec.Provider != "" && slices.Contains(e.Values, c.Spec.Provider)
		case policyv1alpha1.SpreadByFieldRegion:
			listed = c.Spec.Region != "" && slices.Contains(e.Values, c.Spec.Region)
		case policyv1alpha1.SpreadByFieldZone:
			listed = slices.ContainsFunc(zones(c), func(z string) bool { return slices.Contains(e.Values, z) })
		default:
			return false
		}
		holds := e.Operator == corev1.NodeSelectorOpIn && listed ||
			e.Operator == corev1.NodeSelectorOpNotIn && !listed && len(e.Values) > 0
		if !holds {
			return false
		}
	}
	return true
}

// zones of a cluster; one that was stored before zones were a list has the deprecated field.
func zones(c *clusterv1alpha1.Cluster) []string {
	if len(c.Spec.Zones) == 0 && c.Spec.Zone != "" {
		return []string{c.Spec.Zone}
	}
	return c.Spec.Zones
}
