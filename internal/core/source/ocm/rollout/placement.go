package rollout

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "github.com/argosy-io/argosy/api/ocm/cluster/v1beta1"
)

// Placement is a Placement with its PlacementDecisions.
type Placement struct {
	*placementv1beta1.Placement
	Decisions []placementv1beta1.PlacementDecision
}

// Exists reports whether there is a Placement that is not being deleted.
func (p Placement) Exists() bool { return p.Placement != nil && p.DeletionTimestamp == nil }

// decisions returns the PlacementDecisions of this Placement, and not of a former one of its name or of a policy.
// Another scheduler may write them without an owner.
func (p Placement) decisions() (all []placementv1beta1.PlacementDecision) {
	for _, d := range p.Decisions {
		if of := metav1.GetControllerOf(&d); of != nil && of.UID == p.UID ||
			of == nil && p.Annotations[placementv1beta1.SchedulingDisabledAnnotation] == "true" {
			all = append(all, d)
		}
	}
	slices.SortFunc(all, func(a, b placementv1beta1.PlacementDecision) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Decided reports whether the Placement has PlacementDecisions.
func (p Placement) Decided() bool { return len(p.decisions()) > 0 }

// Clusters returns the clusters that the Placement chooses. whole is false if nothing is decided yet, or a
// PlacementDecision is missing: then a cluster that is not among them may be chosen all the same. The hub writes the
// status after all PlacementDecisions; another scheduler writes at least their number of clusters.
func (p Placement) Clusters() (clusters []string, whole bool) {
	clusters = Clusters(p.Groups(nil))
	return clusters, p.Decided() && len(clusters) >= int(p.Status.NumberOfSelectedClusters) &&
		(len(p.Status.DecisionGroups) > 0 || p.Annotations[placementv1beta1.SchedulingDisabledAnnotation] == "true")
}

// Groups returns the decision groups, with the clusters that pass; nil for all. A cluster that moves between
// PlacementDecisions is for a moment in both; it counts in the first.
func (p Placement) Groups(pass func(cluster string) bool) []Group {
	byIndex, seen := map[int32]*Group{}, map[string]bool{}
	for _, d := range p.decisions() {
		index, _ := strconv.ParseInt(d.Labels[placementv1beta1.DecisionGroupIndexLabel], 10, 32)
		g := byIndex[int32(index)]
		if g == nil {
			g = &Group{Index: int32(index), Name: d.Labels[placementv1beta1.DecisionGroupNameLabel]}
			byIndex[g.Index] = g
		}
		for _, of := range d.Status.Decisions {
			if !seen[of.ClusterName] && (pass == nil || pass(of.ClusterName)) {
				seen[of.ClusterName] = true
				g.Clusters = append(g.Clusters, of.ClusterName)
			}
		}
	}
	var groups []Group
	for _, index := range slices.Sorted(maps.Keys(byIndex)) {
		slices.Sort(byIndex[index].Clusters)
		groups = append(groups, *byIndex[index])
	}
	return groups
}

// Clusters returns the clusters of groups.
func Clusters(groups []Group) (clusters []string) {
	for _, g := range groups {
		clusters = append(clusters, g.Clusters...)
	}
	return clusters
}
