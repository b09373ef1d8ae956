package estimator

import (
	"context"
	"sync"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/capacity"
	"github.com/argosy-io/argosy/internal/core/schedule"
)

// Room queries the estimators of the clusters in parallel. It returns within the timeout. Clusters without an answer
// are unknown.
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
			e.logOutcome(ctx, cluster, err)
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

// Join makes the fleet use the estimators for placements until ctx ends. As with several estimators in Karmada the
// lowest number counts: estimators do not know recent placements, the fleet does.
func (e *Estimators) Join(ctx context.Context, fleet *capacity.Fleet) {
	context.AfterFunc(ctx, e.Close)
	fleet.OnChange(func(c capacity.Change) {
		if c.New == nil {
			e.Forget(c.Old.Name)
		}
	})
	fleet.Estimate(func(b workv1alpha2.Binding, s schedule.Snapshot) schedule.Capacity {
		return e.Room(ctx, b, e.candidates(b, s))
	})
}

// candidates returns the clusters of s that b may use with any of its affinity terms.
func (e *Estimators) candidates(b workv1alpha2.Binding, s schedule.Snapshot) []string {
	placement := b.BindingSpec().Placement
	if placement == nil {
		return nil
	}
	var out []string
	seen := map[string]bool{}
	add := func(b workv1alpha2.Binding) {
		candidates, _ := schedule.Feasible(b, s)
		for i := range candidates {
			c := candidates[i].Cluster
			if !seen[c.Name] && !(e.options.SkipPull && c.Spec.SyncMode == clusterv1alpha1.Pull) {
				seen[c.Name] = true
				out = append(out, c.Name)
			}
		}
	}
	if len(placement.ClusterAffinities) == 0 {
		add(b)
		return out
	}
	// Feasible checks the current term, so set each term in turn.
	each := b.DeepCopyObject().(workv1alpha2.Binding)
	each.BindingSpec().RescheduleTriggeredAt = nil
	for _, term := range placement.ClusterAffinities {
		each.BindingStatus().SchedulerObservedAffinityName = term.AffinityName
		add(each)
	}
	return out
}
