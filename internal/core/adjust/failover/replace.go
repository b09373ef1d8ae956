package failover

import (
	"cmp"
	"errors"
	"maps"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/cluster/capacity"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
	"github.com/argosy-io/argosy/internal/core/schedule"
)

var (
	// errOthers: the spread constraints need other moves as well, or a present target is no longer feasible.
	errOthers = errors.New("the scheduler would have to move replicas out of other clusters as well")
	// errTerms: replicas that must stay in their clusters would be in another affinity term than the others.
	errTerms = errors.New("other clusters of the affinity term in use, which are lost or tainted as well, would have to be left at the same time")
	// errEverywhere: all feasible clusters already run the workload.
	errEverywhere = errors.New("every cluster that may have a copy has one")
)

// replacement is a new placement of a binding.
type replacement struct {
	// clusters is the whole placement, sorted by name.
	clusters []workv1alpha2.TargetCluster
	// affinity is the name of its affinity term.
	affinity string
	// moved is the number of replicas that leave their clusters.
	moved int32
	from  []string
}

// place finds the placement of b without a cluster. No other cluster loses replicas, and lost, tainted, evicted or shut
// clusters gain none. From a lost cluster, as many replicas leave as others have room for; from a cluster that
// responds, all or none. If replicas are not divided, a new cluster replaces the former one. The workload may also
// leave a drained cluster without a replacement if other clusters keep it.
func place(b workv1alpha2.Binding, c cause, s schedule.Snapshot, room schedule.Capacity,
	shut []string) (replacement, error) {
	q := question(b, s, c.cluster).withClosed(shut)
	to, err := q.moved(c, room)
	if errors.Is(err, errTerms) && len(c.with) > 0 {
		var from []string
		for _, each := range c.dueCauses() {
			from = append(from, each.cluster)
		}
		return question(b, s, from...).withClosed(shut).moved(c, room)
	}
	if err == nil || !schedule.Divided(b.BindingSpec()) || !c.lost || schedule.PartsOf(b) != nil {
		return to, err
	}
	q.ask = inOneTerm(q.ask)
	for n, failure := workv1alpha2.ReplicasIn(b.BindingSpec().Clusters, c.cluster), err; ; {
		var short *schedule.UnschedulableError
		if !errors.As(failure, &short) {
			return replacement{}, err
		}
		if n = min(n-1, int32(min(short.Available, math.MaxInt32))); n <= 0 {
			return replacement{}, err
		}
		if to, failure = q.divided(n, room); failure == nil {
			return to, nil
		}
	}
}

// moved moves all replicas of the binding out of the evicted clusters.
func (q *query) moved(c cause, room schedule.Capacity) (replacement, error) {
	if !schedule.Divided(q.binding.BindingSpec()) {
		return q.copied(c, room)
	}
	var all int32
	for _, cluster := range q.from {
		all += workv1alpha2.ReplicasIn(q.binding.BindingSpec().Clusters, cluster)
	}
	return q.divided(all, room)
}

// query has the input of the scheduler for a binding that leaves clusters.
type query struct {
	binding workv1alpha2.Binding
	// from are the evicted clusters. Several clusters lose all of their replicas together.
	from  []string
	fleet schedule.Snapshot
	// ask is the binding for the scheduler: only with targets that accept replicas.
	ask workv1alpha2.Binding
	// closed are clusters that accept no replicas. fixed are the closed clusters that keep their replicas.
	closed map[string]bool
	fixed  []workv1alpha2.TargetCluster
	// full are targets that keep their replicas and gain none.
	full map[string]bool
}

func question(b workv1alpha2.Binding, s schedule.Snapshot, from ...string) *query {
	q := &query{binding: b, from: from, fleet: s, ask: b.DeepCopyObject().(workv1alpha2.Binding),
		closed: map[string]bool{}, full: map[string]bool{}}
	spec := q.ask.BindingSpec()
	spec.RescheduleTriggeredAt = nil
	leaving := map[string]bool{}
	for _, cluster := range from {
		leaving[cluster] = true
	}
	for _, t := range spec.GracefulEvictionTasks {
		leaving[t.FromCluster] = true
	}
	for _, name := range s.Names() {
		if leaving[name] || !accepts(spec.Placement, s.Cluster(name)) {
			q.closed[name] = true
			spec.GracefulEvictionTasks = append(spec.GracefulEvictionTasks, workv1alpha2.GracefulEvictionTask{FromCluster: name})
		}
	}
	open := make([]workv1alpha2.TargetCluster, 0, len(spec.Clusters))
	for _, t := range spec.Clusters {
		switch {
		case slices.Contains(from, t.Name):
		case q.closed[t.Name] || s.Cluster(t.Name) == nil:
			q.fixed = append(q.fixed, t)
		default:
			open = append(open, t)
		}
	}
	spec.Clusters = open
	return q
}

// accepts reports whether a cluster may get replicas.
func accepts(p *policyv1alpha1.Placement, c *clusterv1alpha1.Cluster) bool {
	return !membership.KnownNotReady(c) && !slices.ContainsFunc(c.Spec.Taints, func(t corev1.Taint) bool {
		return t.Effect != corev1.TaintEffectPreferNoSchedule &&
			(membership.IsLossTaint(t) || !capacity.Tolerates(p.ClusterTolerations, t))
	})
}

// divided moves n replicas.
func (q *query) divided(n int32, room schedule.Capacity) (replacement, error) {
	spec := q.ask.BindingSpec()
	has := spec.Clusters
	spec.Replicas = n
	for _, t := range has {
		spec.Replicas += t.Replicas
	}
	if spec.Replicas == 0 {
		return replacement{}, errEverywhere
	}
	result, err := q.schedule(room)
	if err != nil {
		return replacement{}, err
	}
	to := result.Clusters
	if schedule.PartsOf(q.binding) == nil {
		if to, err = q.grown(to, n); err != nil {
			return replacement{}, err
		}
	}
	for _, t := range has {
		if workv1alpha2.ReplicasIn(to, t.Name) < t.Replicas {
			return replacement{}, errOthers
		}
	}
	return q.whole(to, result.AffinityName, n)
}

// grown returns the open targets with n more replicas, divided as the scheduler does. If the scheduler would also
// remove replicas from a target, as static weights do after clusters joined, the targets with the largest gains get
// fewer.
func (q *query) grown(to []workv1alpha2.TargetCluster, n int32) ([]workv1alpha2.TargetCluster, error) {
	gains := map[string]int32{}
	var sum int32
	for _, t := range to {
		if gain := t.Replicas - workv1alpha2.ReplicasIn(q.ask.BindingSpec().Clusters, t.Name); gain > 0 {
			gains[t.Name] = gain
			sum += gain
		}
	}
	for _, t := range q.ask.BindingSpec().Clusters {
		if t.Replicas > 0 && !workv1alpha2.HasTarget(to, t.Name) {
			return nil, errOthers
		}
	}
	if sum < n {
		return nil, errOthers
	}
	for ; sum > n; sum-- {
		most := slices.MaxFunc(slices.Sorted(maps.Keys(gains)), func(a, b string) int {
			return cmp.Compare(gains[a], gains[b])
		})
		gains[most]--
	}
	out := slices.Clone(q.ask.BindingSpec().Clusters)
	for i := range out {
		out[i].Replicas += gains[out[i].Name]
		delete(gains, out[i].Name)
	}
	for _, name := range slices.Sorted(maps.Keys(gains)) {
		if gains[name] > 0 {
			out = append(out, workv1alpha2.TargetCluster{Name: name, Replicas: gains[name]})
		}
	}
	for _, t := range to { // chosen without replicas
		if t.Replicas == 0 && !workv1alpha2.HasTarget(out, t.Name) {
			out = append(out, t)
		}
	}
	return out, nil
}

// copied finds a new cluster for a workload that is not divided.
func (q *query) copied(c cause, room schedule.Capacity) (replacement, error) {
	has := q.ask.BindingSpec().Clusters
	result, err := q.schedule(room)
	if err != nil {
		return replacement{}, err
	}
	to := slices.Clone(has)
	for _, t := range result.Clusters {
		// Add one cluster only, while other clusters wait for their own replacement.
		if !workv1alpha2.HasTarget(has, t.Name) && (len(q.fixed) == 0 || len(to) == len(has)) {
			if n := workv1alpha2.ReplicasIn(q.binding.BindingSpec().Clusters, q.from[0]); n > 0 && n < t.Replicas {
				t.Replicas = n // a quota has refused more
			}
			to = append(to, t)
		}
	}
	for _, t := range has {
		if !workv1alpha2.HasTarget(result.Clusters, t.Name) {
			return replacement{}, errOthers
		}
	}
	if len(to) == len(has) && (c.lost || c.reason == ReasonApplicationFailure || len(to) == 0) {
		return replacement{}, errEverywhere
	}
	return q.whole(to, result.AffinityName, workv1alpha2.ReplicasIn(q.binding.BindingSpec().Clusters, q.from[0]))
}

// schedule returns the scheduler's answer. It is an error if it uses another affinity term while clusters keep replicas
// by the present one.
func (q *query) schedule(room schedule.Capacity) (schedule.Result, error) {
	result, err := schedule.Schedule(q.ask, q.fleet, func(cluster string) (int32, bool) {
		if none := q.closed[cluster] || q.full[cluster]; none || room == nil {
			return 0, none
		}
		return room(cluster)
	})
	if err == nil && len(q.fixed) > 0 &&
		result.AffinityName != q.binding.BindingStatus().SchedulerObservedAffinityName {
		err = errTerms
	}
	return result, err
}

// whole adds the clusters that keep their replicas to a placement, and checks it.
func (q *query) whole(to []workv1alpha2.TargetCluster, affinity string, moved int32) (replacement, error) {
	for _, t := range to {
		if q.closed[t.Name] {
			return replacement{}, errOthers // the filter that keeps it out is disabled
		}
	}
	to = slices.Concat(to, q.fixed)
	for _, t := range q.binding.BindingSpec().Clusters {
		if t.Name == q.from[0] && len(q.from) == 1 && schedule.Divided(q.binding.BindingSpec()) && t.Replicas > moved {
			t.Replicas -= moved
			to = append(to, t)
		}
	}
	slices.SortFunc(to, func(a, b workv1alpha2.TargetCluster) int { return strings.Compare(a.Name, b.Name) })
	if !q.lasts(to, affinity) {
		return replacement{}, errOthers
	}
	return replacement{clusters: to, affinity: affinity, moved: moved, from: q.from}, nil
}

// lasts reports whether the scheduler would keep a placement by that affinity term.
func (q *query) lasts(to []workv1alpha2.TargetCluster, affinity string) bool {
	b := q.binding.DeepCopyObject().(workv1alpha2.Binding)
	b.BindingStatus().SchedulerObservedAffinityName = affinity
	spec := b.BindingSpec()
	spec.Clusters = to
	for _, cluster := range q.from {
		spec.GracefulEvictionTasks = append(spec.GracefulEvictionTasks,
			workv1alpha2.GracefulEvictionTask{FromCluster: cluster})
	}
	reason, _ := schedule.Due(b, q.fleet)
	return reason != schedule.SpreadBroken && reason != schedule.CandidatesChanged && reason != schedule.SubsetsChanged
}

// inOneTerm returns b with its present affinity term only, because remaining and moved replicas must share one.
func inOneTerm(b workv1alpha2.Binding) workv1alpha2.Binding {
	spec := b.BindingSpec()
	for _, t := range spec.Placement.ClusterAffinities {
		if t.AffinityName == b.BindingStatus().SchedulerObservedAffinityName {
			spec.Placement.ClusterAffinities = []policyv1alpha1.ClusterAffinityTerm{t}
			break
		}
	}
	return b
}
