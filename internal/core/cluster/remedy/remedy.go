// Package remedy decides what Remedies do: which actions each cluster has, and which clusters are in traffic.
package remedy

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	remedyv1alpha1 "github.com/argosy-io/argosy/api/remedy/v1alpha1"
)

// Actions returns the actions that remedies give to a cluster, sorted and without duplicates. A Remedy that is being
// deleted gives none.
func Actions(c *clusterv1alpha1.Cluster, remedies []remedyv1alpha1.Remedy) []string {
	all := map[string]bool{}
	for i := range remedies {
		if applies(&remedies[i], c) {
			for _, a := range remedies[i].Spec.Actions {
				all[string(a)] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// Giving returns the names of the remedies that give an action to one of the clusters, sorted.
func Giving(action remedyv1alpha1.RemedyAction, clusters []*clusterv1alpha1.Cluster,
	remedies []remedyv1alpha1.Remedy) (names []string) {
	for i := range remedies {
		r := &remedies[i]
		if slices.Contains(r.Spec.Actions, action) &&
			slices.ContainsFunc(clusters, func(c *clusterv1alpha1.Cluster) bool { return applies(r, c) }) {
			names = append(names, r.Name)
		}
	}
	slices.Sort(names)
	return names
}

// applies reports whether a Remedy applies to a cluster now.
func applies(r *remedyv1alpha1.Remedy, c *clusterv1alpha1.Cluster) bool {
	switch a := r.Spec.ClusterAffinity; {
	case r.DeletionTimestamp != nil, a != nil && !slices.Contains(a.ClusterNames, c.Name):
		return false
	case len(r.Spec.DecisionMatches) == 0:
		return true
	}
	return slices.ContainsFunc(r.Spec.DecisionMatches, func(m remedyv1alpha1.DecisionMatch) bool {
		return m.ClusterConditionMatch != nil && meets(c, *m.ClusterConditionMatch)
	})
}

// meets reports whether a condition of a cluster is as required. A condition that the cluster does not have is no
// evidence for anything.
func meets(c *clusterv1alpha1.Cluster, want remedyv1alpha1.ClusterConditionRequirement) bool {
	condition := meta.FindStatusCondition(c.Status.Conditions, want.ConditionType)
	if condition == nil {
		return false
	}
	equal := string(condition.Status) == want.ConditionStatus
	switch want.Operator {
	case remedyv1alpha1.ClusterConditionEqual:
		return equal
	case remedyv1alpha1.ClusterConditionNotEqual:
		return !equal
	}
	return false
}
