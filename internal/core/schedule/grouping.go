package schedule

import (
	"iter"
	"slices"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/object/text"
)

// grouping is a spread constraint with the property that it groups clusters by.
type grouping struct {
	policyv1alpha1.SpreadConstraint
}

// rank orders groupings: a provider has regions, a region has zones; what labels mean is the user's.
func (g grouping) rank() int {
	return slices.Index([]policyv1alpha1.SpreadFieldValue{
		policyv1alpha1.SpreadByFieldProvider, policyv1alpha1.SpreadByFieldRegion, policyv1alpha1.SpreadByFieldZone, "",
	}, g.SpreadByField)
}

// name returns the name of the groups for messages.
func (g grouping) name() string {
	switch {
	case g.SpreadByLabel != "":
		return "label " + g.SpreadByLabel
	case g.byCluster():
		return string(policyv1alpha1.SpreadByFieldCluster)
	}
	return string(g.SpreadByField)
}

// byCluster reports whether each cluster is a group of its own.
func (g grouping) byCluster() bool {
	return g.SpreadByLabel == "" && (g.SpreadByField == "" || g.SpreadByField == policyv1alpha1.SpreadByFieldCluster)
}

// groupOf returns the group of a cluster; ok is false if it has none and is no candidate. Not for zones, of which a
// cluster can have several.
func (g grouping) groupOf(c *clusterv1alpha1.Cluster) (name string, ok bool) {
	switch {
	case g.SpreadByLabel != "":
		name, ok = c.Labels[g.SpreadByLabel]
		return name, ok
	case g.SpreadByField == policyv1alpha1.SpreadByFieldProvider:
		name = c.Spec.Provider
	case g.SpreadByField == policyv1alpha1.SpreadByFieldRegion:
		name = c.Spec.Region
	default:
		name = c.Name
	}
	return name, name != ""
}

// groupsOf returns the groups that a cluster is in.
func (g grouping) groupsOf(c *clusterv1alpha1.Cluster) iter.Seq[string] {
	return func(yield func(string) bool) {
		if g.SpreadByField == policyv1alpha1.SpreadByFieldZone {
			for _, zone := range match.Zones(c) {
				if !yield(zone) {
					return
				}
			}
			return
		}
		if name, ok := g.groupOf(c); ok {
			yield(name)
		}
	}
}

// lacking returns the text that users know for fewer groups than wanted.
func lacking(g grouping) string {
	if g.byCluster() {
		return "the number of feasible clusters is less than spreadConstraint.MinGroups"
	}
	return "the number of feasible " + g.name() + " is less than spreadConstraint.MinGroups"
}

// fit returns how many clusters fit, as text: "1 cluster fits".
func fit(n int) string {
	if n == 1 {
		return "1 cluster fits"
	}
	return text.Count(n, "cluster") + " fit"
}

// listed has the first names or values.
func listed(names []string) string { return text.Names(names, 3) }
