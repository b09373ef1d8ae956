package failover

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/aggregate"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// defaultUnhealthy is the time for which an application may be Unhealthy if its policy sets none.
const defaultUnhealthy = 300 * time.Second

// cause is why a binding should leave a cluster.
type cause struct {
	cluster, reason, producer, message string
	// since is when it began, due when the binding should leave.
	since, due time.Time
	// lost is true if the cluster does not respond; paused if too many clusters are lost to evict from it.
	lost, paused bool
	// with are the causes of other clusters that b should also leave now.
	with     []cause
	purge    policyv1alpha1.PurgeMode
	grace    *int32
	preserve *policyv1alpha1.StatePreservation
}

// dueCauses returns the causes of all clusters that b should leave now, c first.
func (c cause) dueCauses() []cause { return append([]cause{c}, c.with...) }

// choose returns the cause that applies now; ok is false if all causes wait.
func (p *planner) choose(b workv1alpha2.Binding, causes []cause) (c cause, ok bool) {
	slices.SortFunc(causes, func(a, b cause) int {
		if a.lost != b.lost {
			if a.lost {
				return -1
			}
			return 1
		}
		return cmp.Or(a.due.Compare(b.due), strings.Compare(a.cluster, b.cluster))
	})
	pending, allLost := p.pending(b)
	for _, candidate := range causes {
		switch {
		case candidate.paused:
			p.wait(p.waiting(b, candidate, Paused, p.pausedClusters[candidate.cluster]))
		case candidate.due.After(p.now):
			message := "tolerated until "
			if candidate.reason == ReasonApplicationFailure {
				message = "unless it is healthy before, it leaves at "
			}
			w := p.waiting(b, candidate, Tolerated, message+candidate.due.UTC().Format(time.RFC3339))
			w.Until = candidate.due
			p.wait(w)
		case candidate.lost && candidate.purge == policyv1alpha1.PurgeModeDirectly:
			// An eviction would pause all Works of b until this one is deleted, and delete running pods when the cluster
			// returns.
			p.wait(p.waiting(b, candidate, StillRunning,
				"purgeMode is Directly, and the old copy cannot be deleted until the cluster responds again or is removed"))
		case ok:
			if (candidate.lost || len(pending) == 0) && !p.followsWorkloads(b, candidate.cluster) {
				c.with = append(c.with, candidate)
			}
			p.wait(p.waiting(b, candidate, OneAtATime, fmt.Sprintf("it leaves cluster %q first", c.cluster)))
		case len(pending) > 0 && !(candidate.lost && allLost):
			p.wait(p.waiting(b, candidate, OneAtATime, fmt.Sprintf("its eviction from cluster %q has not ended", pending[0])))
		default:
			c, ok = candidate, true
		}
	}
	return c, ok
}

// pending returns the clusters with unfinished tasks of b. allLost is true if all of them are lost. A task that a user
// keeps does not count once the replacement is healthy.
func (p *planner) pending(b workv1alpha2.Binding) (clusters []string, allLost bool) {
	allLost = true
	for _, t := range b.BindingSpec().GracefulEvictionTasks {
		if t.SuppressDeletion != nil && *t.SuppressDeletion && p.unhealthy(b, t) == "" {
			continue
		}
		clusters = append(clusters, t.FromCluster)
		allLost = allLost && membership.OutageOf(p.Fleet.Cluster(t.FromCluster)) != nil
	}
	return clusters, allLost
}

// causes returns at most one cause per cluster of b; taints of the cluster come first. It skips clusters that are being
// deleted, because their removal moves the bindings, and clusters where b has finished, because b would run again. A
// run that has ended needs no cluster.
func (p *planner) causes(b workv1alpha2.Binding) (causes []cause) {
	spec := b.BindingSpec()
	if spec.Placement == nil {
		return nil // it follows the workloads that require it
	}
	for _, t := range spec.Clusters {
		cluster := p.Fleet.Cluster(t.Name)
		if cluster == nil || HasFinished(b, t.Name) {
			continue
		}
		if c, ok := p.tainted(b, cluster); ok {
			causes = append(causes, c)
		} else if c, ok := p.ailing(b, cluster); ok {
			causes = append(causes, c)
		}
	}
	if len(causes) == 0 || p.runEnded(b) {
		return nil
	}
	for _, c := range causes {
		if c.paused {
			p.plan.Paused[c.cluster] = p.pausedClusters[c.cluster]
		}
	}
	return causes
}

// runEnded reports whether b runs once and has ended, so that it needs no cluster. It reads no other templates.
func (p *planner) runEnded(b workv1alpha2.Binding) bool {
	of := b.BindingSpec().Resource
	if !interpret.RunsOnce(match.GroupKind(of.APIVersion, of.Kind)) {
		return false
	}
	facts, err := p.facts(b)
	return err == nil && facts.RunEnded
}

// tainted returns the NoExecute taint that b tolerates for the shortest time. If too many clusters are lost, taints
// of users come first. A Ready cluster is not evicted for a loss taint, which is about to be removed, nor is one that
// is not lost.
func (p *planner) tainted(b workv1alpha2.Binding, cluster *clusterv1alpha1.Cluster) (cause, bool) {
	if len(cluster.Spec.Taints) == 0 {
		return cause{}, false
	}
	spec := b.BindingSpec()
	var rule *policyv1alpha1.ClusterFailoverBehavior
	if spec.Failover != nil {
		rule = spec.Failover.Cluster
	}
	tolerations := p.Tolerations.WithDefaults(spec.Placement.ClusterTolerations)
	others := slices.DeleteFunc(slices.Clone(cluster.Spec.Taints), membership.IsLossTaint)
	taint, until, limited := membership.ToleratedUntil(others, tolerations, p.now)
	_, exceeded := p.pausedClusters[cluster.Name]
	paused := false
	if _, lost := membership.LostSince(cluster); lost && p.MovesOutOfLost(spec) && !(exceeded && limited) {
		taint, until, limited = membership.ToleratedUntil(cluster.Spec.Taints, tolerations, p.now)
		paused = exceeded
	}
	if !limited {
		return cause{}, false
	}
	c := cause{cluster: cluster.Name, reason: ReasonTaintUntolerated, producer: producerTaints, due: until,
		lost:   membership.KnownNotReady(cluster),
		paused: paused, purge: policyv1alpha1.PurgeModeGracefully,
		message: fmt.Sprintf("the taint %s of the cluster is not tolerated", taint.ToString())}
	if taint.TimeAdded != nil {
		c.since = taint.TimeAdded.Time
	}
	if earliest := c.since.Add(lossDelay); membership.IsLossTaint(taint) && c.due.Before(earliest) {
		c.due = earliest
	}
	if rule != nil {
		c.purge, c.preserve = cmp.Or(rule.PurgeMode, c.purge), rule.StatePreservation
	}
	return c, true
}

// MayLeave reports whether b is leaving a cluster, may return to one, or may have to leave one: a target has a
// NoExecute taint, or application failover may act. cluster returns nil for an unknown cluster.
func MayLeave(b workv1alpha2.Binding, cluster func(name string) *clusterv1alpha1.Cluster) bool {
	spec := b.BindingSpec()
	return InProgress(b) || slices.ContainsFunc(spec.Clusters, func(t workv1alpha2.TargetCluster) bool {
		item := itemOf(b, t.Name)
		return item != nil && item.Health == workv1alpha1.ResourceUnhealthy && spec.Failover != nil &&
			spec.Failover.Application != nil || evicts(cluster(t.Name))
	})
}

// evicts reports whether a cluster has a NoExecute taint.
func evicts(c *clusterv1alpha1.Cluster) bool {
	return c != nil && slices.ContainsFunc(c.Spec.Taints, func(t corev1.Taint) bool {
		return t.Effect == corev1.TaintEffectNoExecute
	})
}

// ailing returns the application failure of b in a cluster that responds.
func (p *planner) ailing(b workv1alpha2.Binding, cluster *clusterv1alpha1.Cluster) (cause, bool) {
	spec := b.BindingSpec()
	if spec.Failover == nil || spec.Failover.Application == nil || membership.KnownNotReady(cluster) {
		return cause{}, false
	}
	item := itemOf(b, cluster.Name)
	if item == nil || item.Health != workv1alpha1.ResourceUnhealthy || item.UnhealthySince == nil {
		return cause{}, false // without a time, the hub has not seen the failure yet
	}
	since := item.UnhealthySince.Time
	rule := spec.Failover.Application
	tolerated := defaultUnhealthy
	if s := rule.DecisionConditions.TolerationSeconds; s != nil {
		tolerated = time.Duration(*s) * time.Second
	}
	c := cause{cluster: cluster.Name, reason: ReasonApplicationFailure, producer: producerApplication, since: since,
		due:   since.Add(tolerated),
		purge: cmp.Or(rule.PurgeMode, policyv1alpha1.PurgeModeGracefully), preserve: rule.StatePreservation,
		message: "the application is Unhealthy"}
	if tolerated > 0 {
		c.message = fmt.Sprintf("the application was Unhealthy for %s", tolerated)
	}
	if b.GetNamespace() == "" {
		c.producer = producerClusterApplication
	}
	if c.purge == policyv1alpha1.PurgeModeGracefully {
		c.grace = rule.GracePeriodSeconds
	}
	return c, true
}

// itemOf returns the cluster's report about b; nil if there is none.
func itemOf(b workv1alpha2.Binding, cluster string) *workv1alpha2.AggregatedStatusItem {
	items := b.BindingStatus().AggregatedStatus
	for i := range items {
		if items[i].ClusterName == cluster {
			return &items[i]
		}
	}
	return nil
}

// HasFinished reports whether b runs once and has finished in a cluster.
func HasFinished(b workv1alpha2.Binding, cluster string) bool {
	of := b.BindingSpec().Resource
	item := itemOf(b, cluster)
	return item != nil && aggregate.Final(match.GroupKind(of.APIVersion, of.Kind), item.Status)
}

// failed reports whether the scheduler reports that b could not be placed.
func failed(b workv1alpha2.Binding) bool {
	return meta.IsStatusConditionFalse(b.BindingStatus().Conditions, workv1alpha2.Scheduled)
}

// confirmed reports whether the scheduler has confirmed the placement that b has now.
func confirmed(b workv1alpha2.Binding) bool {
	status := b.BindingStatus()
	return status.SchedulerObservedGeneration == b.GetGeneration() &&
		meta.IsStatusConditionPresentAndEqual(status.Conditions, workv1alpha2.Scheduled, metav1.ConditionTrue)
}
