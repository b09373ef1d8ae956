package estimator

import (
	"context"
	"sync"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/schedule"
)

// Room asks the estimators of the clusters, all at once, for the room that there is for a binding's replicas, or sets of its
// components. It returns within the timeout; clusters that gave no answer are unknown.
func (e *Estimators) Room(ctx context.Context, b workv1alpha2.Binding, clusters []string) schedule.Capacity {
	spec := b.BindingSpec()
	one := func(cluster string) (int32, error) {
		if len(spec.Components) > 0 {
			return e.MaxAvailableComponentSets(ctx, cluster, spec.Resource.Namespace, spec.Components)
		}
		return e.MaxAvailableReplicas(ctx, cluster, spec.ReplicaRequirements)
	}
	var (
		mu      sync.Mutex
		answers = map[string]int32{}
		asking  sync.WaitGroup
	)
	for _, cluster := range clusters {
		asking.Go(func() {
			n, err := one(cluster)
			e.heard(ctx, cluster, err)
			if err == nil {
				mu.Lock()
				answers[cluster] = n
				mu.Unlock()
			}
		})
	}
	asking.Wait()
	return schedule.Answers(answers)
}

// Candidates are the clusters of s that a placement of b may ask about, by any of its affinity terms, but for those that skip says.
func Candidates(b workv1alpha2.Binding, s schedule.Snapshot, skip func(*clusterv1alpha1.Cluster) bool) []string {
	placement := b.BindingSpec().Placement
	if placement == nil {
		return nil
	}
	var out []string
	seen := map[string]bool{}
	add := func(b workv1alpha2.Binding) {
		candidates, _ := schedule.Feasible(b, s)
		for i := range candidates {
			if c := candidates[i].Cluster; !seen[c.Name] {
				seen[c.Name] = true
				if skip == nil || !skip(c) {
					out = append(out, c.Name)
				}
			}
		}
	}
	if len(placement.ClusterAffinities) == 0 {
		add(b)
		return out
	}
	// Feasible is about the term in use: each is taken for that in turn.
	each := b.DeepCopyObject().(workv1alpha2.Binding)
	each.BindingSpec().RescheduleTriggeredAt = nil
	for _, term := range placement.ClusterAffinities {
		each.BindingStatus().SchedulerObservedAffinityName = term.AffinityName
		add(each)
	}
	return out
}

// Pulls says whether a cluster's agent pulls its work, so that its estimator may be out of reach.
func Pulls(c *clusterv1alpha1.Cluster) bool { return c.Spec.SyncMode == clusterv1alpha1.Pull }
