package placement

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"

	clusterv1 "github.com/argosy-io/argosy/api/ocm/cluster/v1"
	placementv1beta1 "github.com/argosy-io/argosy/api/ocm/cluster/v1beta1"
)

// DecisionsInObject is the greatest number of clusters in a PlacementDecision.
const DecisionsInObject = 100

// Group is a group of chosen clusters, sorted by name.
type Group struct {
	Name     string
	Clusters []string
}

// group divides clusters into groups; at least one.
func group(in Input, clusters []*clusterv1.ManagedCluster) ([]Group, error) {
	strategy := in.Placement.Spec.DecisionStrategy.GroupStrategy
	length, err := groupLength(strategy.ClustersPerDecisionGroup, len(clusters))
	if err != nil {
		return nil, err
	}
	var groups []Group
	add := func(name string, of []string) {
		for part := range slices.Chunk(of, max(length, 1)) {
			groups = append(groups, Group{Name: name, Clusters: part})
		}
	}
	var rest []*subject
	for _, mc := range clusters {
		rest = append(rest, newSubject(mc))
	}
	slices.SortFunc(rest, func(a, b *subject) int { return strings.Compare(a.Name, b.Name) })
	for _, named := range strategy.DecisionGroups {
		s, err := newSelector(named.ClusterSelector.LabelSelector, named.ClusterSelector.ClaimSelector)
		var of []string
		rest = slices.DeleteFunc(rest, func(mc *subject) bool {
			matches := false
			if err == nil {
				matches, err = s.matches(in, mc)
			}
			if matches {
				of = append(of, mc.Name)
			}
			return matches
		})
		if err != nil {
			return nil, &misconfigured{message: fmt.Sprintf("the selector of group %q: %v", named.GroupName, err)}
		}
		add(named.GroupName, of)
	}
	var others []string
	for _, mc := range rest {
		others = append(others, mc.Name)
	}
	if add("", others); len(groups) == 0 {
		groups = []Group{{}}
	}
	return groups, nil
}

// keepGroups returns the groups of PlacementDecisions, without clusters that are not candidates; at least one. A
// cluster that is in several because not all are written yet is in the first.
func keepGroups(current []placementv1beta1.PlacementDecision, candidates []*clusterv1.ManagedCluster) []Group {
	exists := map[string]bool{}
	for _, mc := range candidates {
		exists[mc.Name] = true
	}
	by := map[int]*Group{}
	for _, d := range current {
		index, _ := strconv.Atoi(d.Labels[placementv1beta1.DecisionGroupIndexLabel])
		for _, of := range d.Status.Decisions {
			if !exists[of.ClusterName] {
				continue
			}
			delete(exists, of.ClusterName)
			if by[index] == nil {
				by[index] = &Group{Name: d.Labels[placementv1beta1.DecisionGroupNameLabel]}
			}
			by[index].Clusters = append(by[index].Clusters, of.ClusterName)
		}
	}
	var groups []Group
	for _, index := range slices.Sorted(maps.Keys(by)) {
		slices.Sort(by[index].Clusters)
		groups = append(groups, *by[index])
	}
	if len(groups) == 0 {
		return []Group{{}}
	}
	return groups
}

// groupLength returns the greatest number of clusters in a group, of n clusters.
func groupLength(of intstr.IntOrString, n int) (int, error) {
	length := of.IntValue()
	if of.Type == intstr.String {
		percent, err := strconv.Atoi(strings.TrimSuffix(of.StrVal, "%"))
		if of.StrVal == "" {
			percent = 100
		} else if err != nil || !strings.HasSuffix(of.StrVal, "%") {
			return n, &misconfigured{message: fmt.Sprintf("incorrect clustersPerDecisionGroup: %s", of.StrVal)}
		}
		length = (percent*n + 99) / 100
	}
	if length <= 0 || length > n {
		return n, nil
	}
	return length, nil
}

// Decisions returns the PlacementDecisions of groups under the name of a Placement; none if a label cannot have the
// name.
func Decisions(at types.NamespacedName, owner metav1.OwnerReference,
	groups []Group) (all []placementv1beta1.PlacementDecision) {
	if len(at.Name) > validation.LabelValueMaxLength {
		return nil // Choose reports it
	}
	for i, g := range groups {
		parts := slices.Collect(slices.Chunk(g.Clusters, DecisionsInObject))
		if len(parts) == 0 {
			parts = [][]string{nil}
		}
		for _, part := range parts {
			d := placementv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{Namespace: at.Namespace,
				Name: fmt.Sprintf("%s-decision-%d", at.Name, len(all)+1),
				Labels: map[string]string{placementv1beta1.PlacementLabel: at.Name,
					placementv1beta1.DecisionGroupIndexLabel: strconv.Itoa(i), placementv1beta1.DecisionGroupNameLabel: g.Name},
				OwnerReferences: []metav1.OwnerReference{owner}},
				Status: placementv1beta1.PlacementDecisionStatus{Decisions: []placementv1beta1.ClusterDecision{}}}
			for _, name := range part {
				d.Status.Decisions = append(d.Status.Decisions, placementv1beta1.ClusterDecision{ClusterName: name})
			}
			all = append(all, d)
		}
	}
	return all
}

// Status returns the status of a Placement with a choice and its PlacementDecisions.
func (c Choice) Status(decisions []placementv1beta1.PlacementDecision) placementv1beta1.PlacementStatus {
	s := placementv1beta1.PlacementStatus{NumberOfSelectedClusters: int32(c.count()), Conditions: c.Conditions}
	names := map[string][]string{}
	for _, d := range decisions {
		index := d.Labels[placementv1beta1.DecisionGroupIndexLabel]
		names[index] = append(names[index], d.Name)
	}
	for i, g := range c.Groups {
		s.DecisionGroups = append(s.DecisionGroups, placementv1beta1.DecisionGroupStatus{DecisionGroupIndex: int32(i),
			DecisionGroupName: g.Name, ClustersCount: int32(len(g.Clusters)), Decisions: names[strconv.Itoa(i)]})
	}
	return s
}
