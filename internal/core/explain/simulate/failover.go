package simulate

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/adjust/failover"
	"github.com/argosy-io/argosy/internal/core/aggregate"
	"github.com/argosy-io/argosy/internal/core/cluster/capacity"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/core/schedule"
)

// latest returns the latest time in the objects of the fleet, which is the time of a simulated change.
func (f *Fleet) latest() time.Time {
	last := time.Unix(1, 0).UTC()
	see := func(at time.Time) {
		if at.After(last) {
			last = at.UTC()
		}
	}
	for _, c := range f.clusters {
		for _, t := range c.Spec.Taints {
			if t.TimeAdded != nil {
				see(t.TimeAdded.Time)
			}
		}
		if ready := membership.Readiness(c); ready != nil {
			see(ready.LastTransitionTime.Time)
		}
	}
	for _, b := range f.bindings {
		see(b.GetCreationTimestamp().Time)
		for _, item := range b.BindingStatus().AggregatedStatus {
			if item.UnhealthySince != nil {
				see(item.UnhealthySince.Time)
			}
		}
		if at := b.BindingStatus().LastScheduledTime; at != nil {
			see(at.Time)
		}
		for _, t := range b.BindingSpec().GracefulEvictionTasks {
			if t.CreationTimestamp != nil {
				see(t.CreationTimestamp.Time)
			}
		}
	}
	return last
}

// plans bounds the number of failover plans: an eviction can free capacity for another, and each minute has a budget.
const plans = 64

// failOver executes the failover of the hub until nothing moves any more, as controller/failover does. Replacements
// become healthy at once, and time advances until tolerations end.
func (s *state) failOver() {
	if !s.mayFailOver() {
		return
	}
	for range plans {
		plan := failover.Make(s.failoverInput(), s.now)
		s.stays = map[types.NamespacedName][]failover.Waiting{}
		for _, w := range plan.Waiting {
			s.stays[w.Binding] = append(s.stays[w.Binding], w)
		}
		s.paused = plan.Paused
		for i := range plan.Evictions {
			e := &plan.Evictions[i]
			s.execute(e.Binding, schedule.Reason(e.Tasks[0].Message), e.Apply)
		}
		for i := range plan.Finishes {
			s.execute(plan.Finishes[i].Binding, "", plan.Finishes[i].Apply)
		}
		switch {
		case len(plan.Evictions)+len(plan.Finishes) > 0:
			s.rest()
		case plan.Next.After(s.now):
			s.now = plan.Next
		default:
			return
		}
	}
}

// mayFailOver reports whether a workload may have to leave a cluster, or may return to one.
func (s *state) mayFailOver() bool {
	if len(s.unhealthy) > 0 {
		return true
	}
	for _, b := range s.bindings {
		if failover.MayLeave(b, func(name string) *clusterv1alpha1.Cluster { return s.clusters[name] }) {
			return true
		}
	}
	return false
}

// execute changes a binding according to the plan.
func (s *state) execute(b workv1alpha2.Binding, reason schedule.Reason, apply func(workv1alpha2.Binding)) {
	key := types.NamespacedName{Namespace: b.GetNamespace(), Name: b.GetName()}
	moved := b.DeepCopyObject().(workv1alpha2.Binding)
	apply(moved)
	s.put(key, moved)
	if reason != "" {
		s.reasons[key] = reason
	}
}

// draft is the room of the fleet for a plan.
type draft struct {
	state
	summaries *schedule.Summaries
}

// draft returns the room for a plan.
func (s *state) draft() *draft {
	d := &draft{*s, s.snapshot.Summaries()}
	d.rooms, d.snapshot = s.rooms.copied(), d.summaries.Snapshot
	return d
}

func (d *draft) Free(b workv1alpha2.Binding) schedule.Capacity { return d.room(b) }

// Take takes room as the hub does: what a cluster loses is free only after the plan.
func (d *draft) Take(b workv1alpha2.Binding, clusters []workv1alpha2.TargetCluster) {
	gained, parts, had := b.DeepCopyObject().(workv1alpha2.Binding), capacity.PartsOf(b), b.BindingSpec().Clusters
	gained.BindingSpec().Clusters = capacity.Gains(b.BindingSpec(), clusters)
	d.rooms.account(gained, -1)
	for _, t := range gained.BindingSpec().Clusters {
		if m := d.rooms.member(t.Name); m != nil {
			m.Expect(capacity.AssumptionOf(b, parts, t.Name, had, clusters), false)
		}
	}
	d.summaries.Take(b, clusters)
}

// failoverInput returns the input of the hub's plan. Each replacement is healthy, and the scheduler has confirmed its
// placements.
func (s *state) failoverInput() failover.Input {
	in := failover.Input{Options: s.failover, Registered: map[string]bool{}, Facts: s.facts,
		Fleet: s.snapshot, Room: s.draft()}
	in.SchedulerName = s.scheduler.Scheduler()
	for name := range s.clusters {
		in.Registered[name] = true
	}
	for _, key := range s.queue {
		b := s.bindings[key]
		leaves := len(b.BindingSpec().GracefulEvictionTasks) > 0
		if leaves || b.BindingStatus().SchedulerObservedGeneration != b.GetGeneration() {
			b = b.DeepCopyObject().(workv1alpha2.Binding)
			b.BindingStatus().SchedulerObservedGeneration = b.GetGeneration()
			b.BindingStatus().AggregatedStatus = s.healthy(b)
			s.bindings[key] = b
		}
		if since := s.unhealthyIn(b); len(since) > 0 {
			b = s.reportUnhealthy(b, since)
			s.bindings[key] = b
		}
		in.Bindings = append(in.Bindings, b)
	}
	return in
}

// unhealthyIn returns since when a binding with application failover is unhealthy, by cluster.
func (s *state) unhealthyIn(b workv1alpha2.Binding) map[string]time.Time {
	if f := b.BindingSpec().Failover; f == nil || f.Application == nil {
		return nil
	}
	since := map[string]time.Time{}
	for _, t := range b.BindingSpec().Clusters {
		if at, ok := s.unhealthy[t.Name]; ok {
			since[t.Name] = at
		}
	}
	return since
}

// reportUnhealthy returns a binding that is reported unhealthy in clusters. What it reported before is kept, for
// statePreservation.
func (s *state) reportUnhealthy(b workv1alpha2.Binding, in map[string]time.Time) workv1alpha2.Binding {
	b = b.DeepCopyObject().(workv1alpha2.Binding)
	status := b.BindingStatus()
	for cluster, since := range in {
		at := slices.IndexFunc(status.AggregatedStatus, func(i workv1alpha2.AggregatedStatusItem) bool {
			return i.ClusterName == cluster
		})
		if at < 0 {
			at = len(status.AggregatedStatus)
			status.AggregatedStatus = append(status.AggregatedStatus,
				workv1alpha2.AggregatedStatusItem{ClusterName: cluster, Applied: true})
		}
		status.AggregatedStatus[at].Health = workv1alpha1.ResourceUnhealthy
		status.AggregatedStatus[at].UnhealthySince = new(metav1.NewTime(since))
	}
	return b
}

// healthy returns the status of a binding that is healthy with all replicas in all clusters that respond. Finished
// workloads stay finished.
func (s *state) healthy(b workv1alpha2.Binding) (items []workv1alpha2.AggregatedStatusItem) {
	of := b.BindingSpec().Resource
	for _, item := range b.BindingStatus().AggregatedStatus {
		if aggregate.Final(match.GroupKind(of.APIVersion, of.Kind), item.Status) {
			items = append(items, item)
		}
	}
	for _, t := range b.BindingSpec().Clusters {
		finished := slices.ContainsFunc(items, func(i workv1alpha2.AggregatedStatusItem) bool {
			return i.ClusterName == t.Name
		})
		if !finished && !membership.KnownNotReady(s.snapshot.Cluster(t.Name)) {
			items = append(items, readyItem(t))
		}
	}
	return items
}

// readyItem returns the report of a cluster with all replicas of a target.
func readyItem(t workv1alpha2.TargetCluster) workv1alpha2.AggregatedStatusItem {
	return workv1alpha2.AggregatedStatusItem{ClusterName: t.Name, Applied: true, Health: workv1alpha1.ResourceHealthy,
		Status: &runtime.RawExtension{Raw: fmt.Appendf(nil, `{"readyReplicas":%d}`, t.Replicas)}}
}

// facts returns the facts about the template and the policy of a binding.
func (s *state) facts(b workv1alpha2.Binding) (failover.Facts, error) {
	template := s.templates[templateOf(b)]
	var policy policyv1alpha1.Propagation
	if claim, held := propagate.Claimed(b); held {
		policy = s.policies[claim.NamespacedName]
	}
	if policy == nil {
		return failover.FactsOf(b, template, nil), nil
	}
	return failover.FactsOf(b, template, policy.GetAnnotations()), nil
}

// hasNoFailover reports whether a binding has a copy that has not finished in one of the clusters, and no failover
// moves it out of lost clusters.
func (s *state) hasNoFailover(key types.NamespacedName, clusters []string) bool {
	b := s.bindings[key]
	if b == nil || !placedInAny(b, slices.DeleteFunc(slices.Clone(clusters), func(cluster string) bool {
		return failover.HasFinished(b, cluster)
	})) {
		return false
	}
	if facts, err := s.facts(b); err == nil && facts.RunEnded {
		return false // it needs no cluster
	}
	return !s.failover.MovesOutOfLost(b.BindingSpec())
}

// staying returns the messages about a workload that stays in clusters which it should leave. problem is one about a
// lost cluster without a replacement.
func (s *state) staying(key types.NamespacedName) (messages []string, problem string) {
	for _, w := range s.stays[key] {
		if w.Evicted ||
			slices.Contains([]failover.Code{failover.OneAtATime, failover.WorkloadFirst, failover.Everywhere}, w.Code) {
			continue
		}
		message := fmt.Sprintf("stays in %s: %s", w.From, w.Message)
		switch {
		case w.Code == failover.Paused:
			// The warning has the reason.
			messages = append(messages, fmt.Sprintf("stays in %s: failover is paused", w.From))
		case problem == "" && w.Code == failover.NothingFits && membership.KnownNotReady(s.clusters[w.From]):
			problem = message
		default:
			messages = append(messages, message)
		}
	}
	return messages, problem
}
