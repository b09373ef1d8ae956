package failover

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
	"github.com/argosy-io/argosy/internal/core/schedule"
)

// failBack moves a binding back to the clusters that it lost, if its policy requests it and they have been ready for
// long enough. The placement is that of a WorkloadRebalancer, and the move is an eviction: the old workloads stay until
// the new ones are healthy.
func (p *planner) failBack(i int) {
	b := p.bindings[i]
	spec, record := b.BindingSpec(), Current(b)
	if len(record) == 0 || len(spec.GracefulEvictionTasks) > 0 || spec.Placement == nil {
		return
	}
	s := p.snapshot(b)
	facts, err := p.facts(b)
	if err != nil || facts.FailbackAfter == 0 || facts.Paused || facts.Volumes && !facts.MoveVolumes || !settled(b, s) {
		return
	}
	var returned []string
	for cluster := range record {
		c := s.Cluster(cluster)
		if c == nil || !accepts(spec.Placement, c) || membership.Readiness(c) == nil {
			continue
		}
		if at := membership.Readiness(c).LastTransitionTime.Add(facts.FailbackAfter); at.After(p.now) {
			p.wake(at)
			continue
		}
		returned = append(returned, cluster)
	}
	if len(returned) == 0 {
		return
	}
	slices.Sort(returned)
	if p.left <= 0 {
		p.wake(p.again)
		return
	}
	if e, ok := p.back(b, returned, s, p.Room.Free(b)); ok && !facts.RunEnded {
		p.take(i, e)
		return
	}
	if len(returned) == len(record) {
		p.plan.Finishes = append(p.plan.Finishes, Finish{Binding: b, At: p.now, Forget: returned})
	}
}

// back returns the eviction that moves b back; ok is false if the scheduler would not use the returned clusters.
func (p *planner) back(b workv1alpha2.Binding, returned []string, s schedule.Snapshot,
	room schedule.Capacity) (Eviction, bool) {
	ask := b.DeepCopyObject().(workv1alpha2.Binding)
	at := metav1.NewTime(p.now)
	if last := b.BindingStatus().LastScheduledTime; last != nil && !at.After(last.Time) {
		at = metav1.NewTime(last.Add(time.Second))
	}
	ask.BindingSpec().RescheduleTriggeredAt = &at
	result, err := schedule.Schedule(ask, s, room)
	if err != nil {
		return Eviction{}, false
	}
	spec := b.BindingSpec()
	divided := schedule.Divided(spec)
	var losers []workv1alpha2.TargetCluster
	returns := false
	for _, t := range spec.Clusters {
		if HasFinished(b, t.Name) {
			return Eviction{}, false
		}
		if n := t.Replicas - workv1alpha2.ReplicasIn(result.Clusters, t.Name); !workv1alpha2.HasTarget(result.Clusters,
			t.Name) || divided && n > 0 {
			losers = append(losers, workv1alpha2.TargetCluster{Name: t.Name, Replicas: n})
		}
	}
	for _, t := range result.Clusters {
		more := !workv1alpha2.HasTarget(spec.Clusters, t.Name) ||
			divided && t.Replicas > workv1alpha2.ReplicasIn(spec.Clusters, t.Name)
		returns = returns || more && slices.Contains(returned, t.Name)
		if more && !accepts(spec.Placement, s.Cluster(t.Name)) {
			return Eviction{}, false
		}
	}
	if !returns || len(losers) == 0 {
		return Eviction{}, false
	}
	e := Eviction{Binding: b, From: losers[0].Name, Since: p.now, Placement: result.Clusters,
		To: p.takesOver(b, result.Clusters)}
	if result.AffinityName != b.BindingStatus().SchedulerObservedAffinityName {
		e.Reschedule = &at // of the terms from the one in use on, none would do
	}
	for _, loser := range losers {
		e.Tasks = append(e.Tasks, p.task(b, cause{cluster: loser.Name, reason: ReasonFailback, producer: producerFailback,
			purge:   policyv1alpha1.PurgeModeGracefully,
			message: fmt.Sprintf("cluster %s is ready again", strings.Join(returned, ", "))}, loser.Replicas))
	}
	return e, true
}
