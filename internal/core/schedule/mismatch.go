package schedule

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/match"
)

// mismatch returns which parts of an affinity no cluster of the fleet matches, and what to change. If each part matches
// some cluster, it returns that no cluster matches all. It is for an affinity that matches nothing.
func mismatch(a *policyv1alpha1.ClusterAffinity, s Snapshot) string {
	if a == nil || len(s.members) == 0 {
		return ""
	}
	var missing, found []string
	ask := func(part, text string, holds func(c *clusterv1alpha1.Cluster) bool) {
		var have []string
		for i := range s.members {
			if holds(s.members[i].cluster) {
				have = append(have, s.members[i].cluster.Name)
			}
		}
		if len(have) == 0 {
			missing = append(missing, text)
		} else {
			found = append(found, fmt.Sprintf("%s (%s)", part, listed(have)))
		}
	}
	if len(a.ClusterNames) > 0 {
		names := "one of " + listed(s.Names())
		if len(s.Names()) == 1 {
			names = s.Names()[0]
		}
		ask("clusterNames", fmt.Sprintf("the fleet has no %s, which clusterNames lists: correct it to %s, or join a cluster of that name",
			either(a.ClusterNames), names),
			func(c *clusterv1alpha1.Cluster) bool { return slices.Contains(a.ClusterNames, c.Name) })
	}
	if sel := a.LabelSelector; sel != nil {
		for _, key := range slices.Sorted(maps.Keys(sel.MatchLabels)) {
			e := metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpIn,
				Values: []string{sel.MatchLabels[key]}}
			ask("label "+key, lackingLabel(e, s), func(c *clusterv1alpha1.Cluster) bool {
				return match.LabelRequirement(&e,
					c.Labels)
			})
		}
		for i := range sel.MatchExpressions {
			e := &sel.MatchExpressions[i]
			ask("label "+e.Key, lackingLabel(*e, s), func(c *clusterv1alpha1.Cluster) bool {
				return match.LabelRequirement(e,
					c.Labels)
			})
		}
	}
	if sel := a.FieldSelector; sel != nil {
		for i := range sel.MatchExpressions {
			e := sel.MatchExpressions[i]
			one := &policyv1alpha1.FieldSelector{MatchExpressions: []corev1.NodeSelectorRequirement{e}}
			ask("field "+e.Key, lackingField(e, s), func(c *clusterv1alpha1.Cluster) bool { return match.Fields(one, c) })
		}
	}
	if len(missing) > 0 {
		return strings.Join(missing, "; ")
	}
	if len(a.ExcludeClusters) > 0 {
		rest := *a
		rest.ExcludeClusters = nil
		var out []string
		for i := range s.members {
			if match.Affinity(&rest, s.members[i].cluster) {
				out = append(out, s.members[i].cluster.Name)
			}
		}
		if len(out) > 0 {
			return fmt.Sprintf("exclude removes all clusters that the rest of the affinity matches (%s): remove one of them from exclude", listed(out))
		}
	}
	return fmt.Sprintf("no cluster meets all requirements of the affinity, although each of them is met by some: %s; make one cluster meet all of them, or remove requirements", strings.Join(found, ", "))
}

// lackingLabel is for a requirement that no cluster's labels satisfy.
func lackingLabel(e metav1.LabelSelectorRequirement, s Snapshot) string {
	values := map[string]bool{}
	for i := range s.members {
		if v, ok := s.members[i].cluster.Labels[e.Key]; ok {
			values[v] = true
		}
	}
	have := slices.Sorted(maps.Keys(values))
	switch e.Operator {
	case metav1.LabelSelectorOpIn, metav1.LabelSelectorOpExists:
		set := e.Key
		if len(e.Values) > 0 {
			set += "=" + e.Values[0]
		}
		if len(have) == 0 {
			return fmt.Sprintf("no cluster has label %s: label one with %s, or correct the labelSelector", e.Key, set)
		}
		return fmt.Sprintf("no cluster has %s of label %s, whose values are %s: label one with %s, or correct the labelSelector", either(e.Values), e.Key, listed(have), set)
	case metav1.LabelSelectorOpNotIn:
		if len(e.Values) == 0 {
			return fmt.Sprintf("NotIn of label %s has no values: add some, or remove it", e.Key)
		}
		return fmt.Sprintf("every cluster has label %s with a value that the labelSelector excludes (%s): change the label of one, or correct the labelSelector", e.Key, listed(have))
	case metav1.LabelSelectorOpDoesNotExist:
		return fmt.Sprintf("every cluster has label %s, which the labelSelector excludes: remove it from one, or correct the labelSelector", e.Key)
	}
	return fmt.Sprintf("operator %q of label %s is not supported: use In, NotIn, Exists or DoesNotExist", e.Operator,
		e.Key)
}

// lackingField is for a requirement that no cluster's fields satisfy.
func lackingField(e corev1.NodeSelectorRequirement, s Snapshot) string {
	values := map[string]bool{}
	for i := range s.members {
		c := s.members[i].cluster
		switch policyv1alpha1.SpreadFieldValue(e.Key) {
		case policyv1alpha1.SpreadByFieldProvider:
			values[c.Spec.Provider] = true
		case policyv1alpha1.SpreadByFieldRegion:
			values[c.Spec.Region] = true
		case policyv1alpha1.SpreadByFieldZone:
			for _, z := range match.Zones(c) {
				values[z] = true
			}
		default:
			return fmt.Sprintf("field %s is not supported: use provider, region or zone", e.Key)
		}
	}
	delete(values, "")
	have := slices.Sorted(maps.Keys(values))
	are := "no cluster has one"
	if len(have) > 0 {
		are = "they are " + listed(have)
	}
	if e.Operator == corev1.NodeSelectorOpNotIn {
		return fmt.Sprintf("the fieldSelector excludes every cluster by %s (%s): correct it", e.Key, listed(have))
	}
	return fmt.Sprintf("no cluster's %s is %s (%s): set spec.%s of one, or correct the fieldSelector", e.Key,
		either(e.Values), are, specField(e.Key))
}

// specField returns the field of a cluster's spec that is spread and selected by.
func specField(key string) string {
	if key == string(policyv1alpha1.SpreadByFieldZone) {
		return "zones"
	}
	return key
}

// either formats a list of alternatives.
func either(names []string) string {
	switch {
	case len(names) == 0:
		return "any value"
	case len(names) == 1:
		return names[0]
	case len(names) > 4:
		return listed(names)
	}
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}
