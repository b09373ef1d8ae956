package v1alpha2

import (
	"slices"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
)

// LeftGracefully returns the clusters with an eviction in progress that keep their Work until the task ends, sorted.
func (s *ResourceBindingSpec) LeftGracefully() []string {
	var clusters []string
	for i := range s.GracefulEvictionTasks {
		if t := &s.GracefulEvictionTasks[i]; t.PurgeMode != policyv1alpha1.PurgeModeDirectly {
			clusters = append(clusters, t.FromCluster)
		}
	}
	slices.Sort(clusters)
	return slices.Compact(clusters)
}
