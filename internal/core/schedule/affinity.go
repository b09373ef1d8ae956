package schedule

import (
	"maps"
	"slices"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/match"
)

// AffinityMayChange reports whether an update of a cluster changed a field that affinities select by.
func AffinityMayChange(before, now *clusterv1alpha1.Cluster) bool {
	return !maps.Equal(before.Labels, now.Labels) || before.Spec.Provider != now.Spec.Provider ||
		before.Spec.Region != now.Spec.Region || !slices.Equal(match.Zones(before), match.Zones(now))
}
