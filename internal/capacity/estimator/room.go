package estimator

import (
	"context"
	"sync"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/capacity"
	"github.com/argosy-io/argosy/internal/core/schedule"
)

// Room asks the estimators of the clusters, all at once, for the room that there is for a binding's replicas, or sets
// of its components. It returns within the timeout; clusters that gave no answer are unknown.
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

// Join has the estimators asked by a fleet whenever it places by room, about the clusters that the binding may go to,
// until ctx ends. The least of what they and the fleet say counts, as among Karmada's estimators: they do not know what
// was placed a moment ago, and the fleet does.
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

// candidates are the clusters of s that a placement of b may ask about, by any of its affinity terms.
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
	// Feasible is about the term in use: each is taken for that in turn.
	each := b.DeepCopyObject().(workv1alpha2.Binding)
	each.BindingSpec().RescheduleTriggeredAt = nil
	for _, term := range placement.ClusterAffinities {
		each.BindingStatus().SchedulerObservedAffinityName = term.AffinityName
		add(each)
	}
	return out
}
