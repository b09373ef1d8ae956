package match

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
)

// Affinity reports whether an affinity selects a cluster: all parts that are set match, and it is not excluded. An
// affinity without any part selects all clusters. An invalid selector selects none.
func Affinity(a *policyv1alpha1.ClusterAffinity, c *clusterv1alpha1.Cluster) bool {
	return !slices.Contains(a.ExcludeClusters, c.Name) &&
		(len(a.ClusterNames) == 0 || slices.Contains(a.ClusterNames, c.Name)) &&
		Labels(a.LabelSelector, c.Labels) &&
		Fields(a.FieldSelector, c)
}

// Labels reports whether a selector selects labels, as the selector of metav1.LabelSelectorAsSelector does, but without
// building one for each call. A nil selector selects all labels.
func Labels(s *metav1.LabelSelector, labels map[string]string) bool {
	if s == nil {
		return true
	}
	for key, want := range s.MatchLabels {
		if value, ok := labels[key]; !ok || value != want {
			return false
		}
	}
	for i := range s.MatchExpressions {
		if !LabelRequirement(&s.MatchExpressions[i], labels) {
			return false
		}
	}
	return true
}

// LabelRequirement reports whether labels meet a requirement. An invalid one is never met.
func LabelRequirement(e *metav1.LabelSelectorRequirement, labels map[string]string) bool {
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

// Fields reports whether a selector selects a cluster by its provider, region and zones. A cluster may have several
// zones: one of them has to be listed for In, and none for NotIn. A nil selector selects all clusters.
func Fields(s *policyv1alpha1.FieldSelector, c *clusterv1alpha1.Cluster) bool {
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
			listed = slices.ContainsFunc(Zones(c), func(z string) bool { return slices.Contains(e.Values, z) })
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

// Zones returns the zones of a cluster. A Cluster that was stored before zones were a list has the deprecated field.
func Zones(c *clusterv1alpha1.Cluster) []string {
	if len(c.Spec.Zones) == 0 && c.Spec.Zone != "" {
		return []string{c.Spec.Zone}
	}
	return c.Spec.Zones
}
