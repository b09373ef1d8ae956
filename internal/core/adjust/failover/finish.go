package failover

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/adjust/deschedule"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
	"github.com/argosy-io/argosy/internal/core/schedule"
)

// finish decides which tasks of b end. A task that does not is reported as waiting.
func (p *planner) finish(b workv1alpha2.Binding) Finish {
	f := Finish{Binding: b, At: p.now}
	record := RecordOf(b)
	for _, t := range b.BindingSpec().GracefulEvictionTasks {
		left := record[t.FromCluster]
		c := cause{cluster: t.FromCluster, reason: t.Reason, since: left.Since}
		result, code, message := p.ended(b, t)
		if result == "" {
			w := p.waiting(b, c, code, message)
			w.Evicted = true
			switch deadline := deadlineOf(t); {
			case code != ReplacementNotHealthy && code != GracePeriod:
			case deadline.After(p.now):
				w.Until = deadline
			case !deadline.IsZero():
				w.Code = GracePeriodExceeded
			}
			p.wait(w)
			continue
		}
		f.Tasks = append(f.Tasks, Ended{Task: t, Result: result, Since: left.Since})
		if facts, err := p.facts(b); !left.Lost || result == ClusterRemoved || err == nil && facts.FailbackAfter == 0 {
			f.Forget = append(f.Forget, t.FromCluster)
		}
	}
	if len(f.Tasks) == 0 {
		f.Forget = nil
	}
	return f
}

// deadlineOf returns the end of a task's grace period; zero if it has none.
func deadlineOf(t workv1alpha2.GracefulEvictionTask) time.Time {
	if t.CreationTimestamp == nil {
		return time.Time{}
	}
	grace := defaultGracePeriod
	if t.GracePeriodSeconds != nil {
		grace = time.Duration(*t.GracePeriodSeconds) * time.Second
	}
	return t.CreationTimestamp.Add(grace)
}

// ended returns why a task ends, or what it waits for.
func (p *planner) ended(b workv1alpha2.Binding, t workv1alpha2.GracefulEvictionTask) (Result, Code, string) {
	if t.SuppressDeletion != nil && !*t.SuppressDeletion {
		return EndedByUser, "", ""
	}
	if p.Fleet.Cluster(t.FromCluster) == nil && !p.Registered[t.FromCluster] {
		return ClusterRemoved, "", ""
	}
	if t.SuppressDeletion != nil || t.PurgeMode == policyv1alpha1.PurgeModeNever {
		return "", KeptByPolicy, "the old copy is kept: set suppressDeletion of the task to false to delete it"
	}
	if t.PurgeMode == policyv1alpha1.PurgeModeDirectly && p.HasWork != nil && p.HasWork(b, t.FromCluster) {
		return "", StillRunning, "the replacement starts when the old copy is deleted, because purgeMode is Directly"
	}
	if missing := p.unhealthy(b, t); missing != "" {
		return "", ReplacementNotHealthy, missing
	}
	if t.PurgeMode != policyv1alpha1.PurgeModeDirectly && p.membersScale(b) && deadlineOf(t).After(p.now) {
		return "", GracePeriod, "each cluster decides how many replicas it runs, so the old copy is kept for the grace period"
	}
	if n := p.occupied[policyCluster{policyOf(b), t.FromCluster}]; n > 0 && !isWorkload(b) {
		return "", WorkloadFirst, "workloads of the same policy are still in the cluster"
	}
	return ReplacementHealthy, "", ""
}

// unhealthy returns what the replacement of a task lacks; empty if all clusters of b report it Healthy with all of
// their replicas. A cluster that does not respond counts as unhealthy, unless it had a copy before the eviction, and
// another cluster is healthy.
func (p *planner) unhealthy(b workv1alpha2.Binding, t workv1alpha2.GracefulEvictionTask) string {
	if !confirmed(b) {
		return "the scheduler has not confirmed the placement"
	}
	spec := b.BindingSpec()
	leaves := func(cluster string) bool {
		return slices.ContainsFunc(spec.GracefulEvictionTasks, func(t workv1alpha2.GracefulEvictionTask) bool {
			return t.FromCluster == cluster
		})
	}
	facts, err := p.facts(b)
	if err != nil {
		return err.Error()
	}
	healthy, silent := 0, ""
	for _, target := range spec.Clusters {
		if leaves(target.Name) {
			continue // its Work stays as it is
		}
		if membership.KnownNotReady(p.Fleet.Cluster(target.Name)) {
			silent = fmt.Sprintf("cluster %q is not ready", target.Name)
			if schedule.Divided(spec) || !slices.Contains(t.ClustersBeforeFailover, target.Name) {
				return silent
			}
			continue
		}
		item := itemOf(b, target.Name)
		switch {
		case item == nil || !item.Applied:
			return fmt.Sprintf("it is not applied in cluster %q", target.Name)
		case t.PurgeMode == policyv1alpha1.PurgeModeDirectly:
			// The old copy is gone already.
		case item.Health != workv1alpha1.ResourceHealthy:
			return fmt.Sprintf("it is not healthy in cluster %q: %s", target.Name, item.Health)
		case facts.OwnScale && isWorkload(b):
			if facts.Paused { // a new copy starts no pods, and is Healthy
				return "the template is paused"
			}
		default:
			if missing := missingReplicas(b, target); missing != "" {
				return missing
			}
		}
		healthy++
	}
	if healthy == 0 {
		return cmp.Or(silent, "no other cluster has a copy")
	}
	return ""
}

// missingReplicas returns how many replicas of a target are not ready; empty if none is known to be missing. A report
// without counters may be from before a move, so it proves nothing about added replicas.
func missingReplicas(b workv1alpha2.Binding, target workv1alpha2.TargetCluster) string {
	ready, known := deschedule.ReadyIn(b, target.Name)
	switch {
	case (known || countsReady(b)) && ready < target.Replicas: // counters that are zero are often left out
		return fmt.Sprintf("%d of %d replicas are ready in cluster %q", ready, target.Replicas, target.Name)
	case known, HasFinished(b, target.Name):
		return ""
	}
	record := RecordOf(b)
	for _, t := range b.BindingSpec().GracefulEvictionTasks {
		if slices.Contains(t.ClustersBeforeFailover, target.Name) &&
			workv1alpha2.ReplicasIn(record[t.FromCluster].To, target.Name) > 0 {
			return fmt.Sprintf("cluster %q does not report whether the replicas that it gained are ready: if they are, "+
				"set suppressDeletion of the task to false", target.Name)
		}
	}
	return ""
}

// countsReady reports whether a cluster, such as the one that is left, reports how many replicas of b are ready.
func countsReady(b workv1alpha2.Binding) bool {
	return slices.ContainsFunc(b.BindingStatus().AggregatedStatus, func(i workv1alpha2.AggregatedStatusItem) bool {
		_, known := deschedule.ReadyIn(b, i.ClusterName)
		return known
	})
}
