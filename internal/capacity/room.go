package capacity

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/cluster/capacity"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
	"github.com/argosy-io/argosy/internal/core/schedule"
	"github.com/argosy-io/argosy/internal/filter"
	"github.com/argosy-io/argosy/internal/member"
	"github.com/argosy-io/argosy/internal/scope"
)

const (
	// assumeTimeout is the time for which a placement keeps its reservation while its pods do not appear.
	assumeTimeout = 5 * time.Minute
	// sweepInterval is the interval between checks for expired reservations.
	sweepInterval = 10 * time.Second
	// notifyInterval is the minimum interval between notifications about room in one cluster.
	notifyInterval = time.Second
)

// Pending is a pod that the member's scheduler marked Unschedulable.
type Pending = capacity.UnschedulablePod

// assumed is a binding's last placement until its pods appear.
type assumed struct {
	clusters []string
	// generation of the placed binding. Objects up to this generation are older than the placement.
	generation int64
	until      time.Time
}

// Measure makes the fleet use nodes and pods of members where these are watched, and the bindings in c for
// reservations. Without it only the clusters' summaries are used. It must be called before the caches start.
func (f *Fleet) Measure(ctx context.Context, c ctrlcache.Cache, members *member.Members) error {
	f.members, f.bindings = members, c
	measured.Store(f)
	members.OnRoom(func(cluster string) {
		f.recall(cluster)
		f.grown(cluster)
	})
	for _, kind := range scope.Bindings.Kinds() {
		informer, err := c.GetInformer(ctx, kind)
		if err != nil {
			return fmt.Errorf("watch bindings: %w", err)
		}
		if _, err := informer.AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
			AddFunc: func(obj any, initial bool) {
				if initial {
					f.remember(obj.(workv1alpha2.Binding))
				}
			},
			UpdateFunc: func(_, obj any) { f.rewritten(obj.(workv1alpha2.Binding)) },
			DeleteFunc: func(obj any) {
				key := keyOf(filter.LastState(obj).(client.Object))
				f.mu.Lock()
				delete(f.recent, key)
				f.mu.Unlock()
				f.release(key, nil)
			},
		}); err != nil {
			return fmt.Errorf("watch bindings: %w", err)
		}
	}
	return nil
}

// Estimate adds an estimator. The lower of its answer and the fleet's own counts. Clusters without an answer are
// unknown to the estimator. ask may block as long as a placement may. Estimate must be called before the first
// Schedule.
func (f *Fleet) Estimate(ask func(b workv1alpha2.Binding, s schedule.Snapshot) schedule.Capacity) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.estimators = append(f.estimators, ask)
}

// Estimated reports whether there is an estimator, which does not notify about changes.
func (f *Fleet) Estimated() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.estimators) > 0
}

// Room returns how many more replicas of a binding fit in each cluster of s, after reservations: from nodes and pods,
// or else from the summary. A cluster that is not Ready is unknown. Until its condition is known, the last data counts.
func (f *Fleet) Room(b workv1alpha2.Binding, s schedule.Snapshot) schedule.Capacity {
	room, _ := f.RoomAndLimits(b, s)
	return room
}

// estimatorAnswers returns the answers of the estimators; nil without any.
func (f *Fleet) estimatorAnswers(b workv1alpha2.Binding, s schedule.Snapshot) schedule.Capacity {
	f.mu.Lock()
	estimators := f.estimators
	f.mu.Unlock()
	var answers []schedule.Capacity
	for _, ask := range estimators {
		answers = append(answers, ask(b, s))
	}
	if len(answers) == 0 {
		return nil
	}
	return schedule.Least(answers...)
}

// Limit returns what keeps more of a binding from fitting in a cluster, apart from estimators. It is not known without
// nodes.
func (f *Fleet) Limit(b workv1alpha2.Binding, cluster string) (l capacity.Limit, known bool) {
	f.state(cluster, func(m *capacity.ClusterState) {
		if known = m.HasNodes(); known {
			l = m.Limit(b)
		}
	})
	return l, known
}

// RoomAndLimits returns Room, and what limits it in a cluster, where that is known.
func (f *Fleet) RoomAndLimits(b workv1alpha2.Binding, s schedule.Snapshot) (schedule.Capacity,
	func(cluster string) (capacity.Limit, bool)) {
	asked := f.estimatorAnswers(b, s)
	return schedule.Least(seen(b, s, f.state), asked), func(cluster string) (capacity.Limit, bool) {
		l, known := f.Limit(b, cluster)
		if known && asked != nil {
			n, answered := asked(cluster)
			l.Estimator = answered && n < l.Replicas
		}
		return l, known
	}
}

// QuotasText names the quotas that limit a binding in the clusters that may take it; empty for none.
func (f *Fleet) QuotasText(b workv1alpha2.Binding, s schedule.Snapshot) string {
	candidates, _ := schedule.Feasible(b, s)
	clusters := make([]string, len(candidates))
	for i := range candidates {
		clusters[i] = candidates[i].Cluster.Name
	}
	return capacity.LimitsText(clusters, func(cluster string) string {
		l, _ := f.Limit(b, cluster)
		return l.QuotaText(b.BindingSpec().Resource.Namespace)
	})
}

// seen returns the room by the states of the clusters, or else by their summaries.
func seen(b workv1alpha2.Binding, s schedule.Snapshot, state stateOf) schedule.Capacity {
	parts, sets := capacity.Parts(b)
	summary := s.Room(b)
	return func(cluster string) (replicas int32, known bool) {
		if membership.KnownNotReady(s.Cluster(cluster)) {
			return 0, false
		}
		state(cluster, func(m *capacity.ClusterState) {
			if known = m.HasNodes(); known {
				replicas = m.Room(parts, sets)
			}
		})
		if known {
			return replicas, true
		}
		return summary(cluster)
	}
}

// stateOf calls use with the state of a cluster, if it is known. It may be the current one, or that of a plan.
type stateOf func(cluster string, use func(*capacity.ClusterState))

// state calls use with the current state of a member, if it is known.
func (f *Fleet) state(cluster string, use func(*capacity.ClusterState)) {
	if f.members == nil {
		return
	}
	if m := f.members.Known(cluster); m != nil {
		m.Capacity(use)
	}
}

// Schedule places a binding on the fleet of s with the current room, and reserves the room until its pods appear. It
// does not modify b, whose clusters must be the current ones. All placements by room use Schedule or Room.Reserve,
// one at a time, so that no room is used twice.
func (f *Fleet) Schedule(b workv1alpha2.Binding, s schedule.Snapshot) (schedule.Result, error) {
	if !schedule.NeedsRoom(b) {
		result, err := schedule.Schedule(b, s, nil)
		f.Assume(b, result.Clusters)
		return result, err
	}
	asked := f.estimatorAnswers(b, s) // before the lock: estimators may be slow
	f.placing.Lock()
	defer f.placing.Unlock()
	f.shrink(b)
	result, err := schedule.Schedule(b, s, schedule.Least(seen(b, s, f.state), asked))
	f.Assume(b, result.Clusters)
	return result, err
}

// shrink drops the reservation of a binding beyond its current replicas. A placement that was not written can use that
// room again.
func (f *Fleet) shrink(b workv1alpha2.Binding) {
	key := keyOf(b)
	f.mu.Lock()
	known := f.assumed[key]
	f.mu.Unlock()
	for _, cluster := range known.clusters {
		f.state(cluster, func(m *capacity.ClusterState) {
			m.ShrinkAssumption(key.String(), capacity.ReplicasIn(b.BindingSpec(), b.BindingSpec().Clusters, cluster))
		})
	}
}

// Assume reserves room for the replicas that a binding gets in addition, until its pods appear, at most for five
// minutes, or until it is deleted or placed elsewhere.
func (f *Fleet) Assume(b workv1alpha2.Binding, clusters []workv1alpha2.TargetCluster) {
	spec := b.BindingSpec()
	if f.members == nil || spec.Replicas == 0 && len(spec.Components) == 0 {
		return
	}
	key, parts := keyOf(b), capacity.PartsOf(b)
	placed := assumed{generation: b.GetGeneration(), until: f.Clock.Now().Add(assumeTimeout)}
	for _, t := range clusters {
		if f.expect(t.Name, capacity.AssumptionOf(b, parts, t.Name, spec.Clusters, clusters), placed.until) {
			placed.clusters = append(placed.clusters, t.Name)
		}
	}
	f.release(key, placed.clusters)
	f.note(key, placed)
}

// expect reserves room in a member for a binding, and reports whether pods are missing.
func (f *Fleet) expect(cluster string, a capacity.Assumption, until time.Time) (kept bool) {
	a.Until = until
	f.state(cluster, func(m *capacity.ClusterState) { kept = m.Assume(a) })
	return kept
}

// note remembers the reservation.
func (f *Fleet) note(key client.ObjectKey, a assumed) {
	if len(a.clusters) == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.assumed[key] = a
	f.sweepLater()
}

// remember records a binding that was placed shortly before the hub started. Its pods may not exist yet.
func (f *Fleet) remember(b workv1alpha2.Binding) {
	spec, last := b.BindingSpec(), b.BindingStatus().LastScheduledTime
	if last == nil || len(spec.Clusters) == 0 || spec.Replicas == 0 && len(spec.Components) == 0 ||
		!f.Clock.Now().Before(last.Add(assumeTimeout)) {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.recent[keyOf(b)] = b
	f.sweepLater()
}

// recall reserves room for the recorded bindings in a member once its pods are known.
func (f *Fleet) recall(cluster string) {
	now := f.Clock.Now()
	f.mu.Lock()
	if len(f.recent) == 0 || f.recalled[cluster] {
		f.mu.Unlock()
		return
	}
	f.recalled[cluster] = true
	var there []workv1alpha2.Binding
	for _, b := range f.recent {
		if now.Before(b.BindingStatus().LastScheduledTime.Add(assumeTimeout)) &&
			capacity.ReplicasIn(b.BindingSpec(), b.BindingSpec().Clusters, cluster) > 0 {
			there = append(there, b)
		}
	}
	f.mu.Unlock()
	for _, b := range there {
		spec, until := b.BindingSpec(), b.BindingStatus().LastScheduledTime.Add(assumeTimeout)
		if f.expect(cluster, capacity.AssumptionOf(b, capacity.PartsOf(b), cluster, nil, spec.Clusters), until) {
			key := keyOf(b)
			f.mu.Lock()
			known, ok := f.assumed[key]
			f.mu.Unlock()
			if !ok {
				known = assumed{generation: b.GetGeneration() - 1, until: until}
			}
			known.clusters = append(slices.Clone(known.clusters), cluster)
			f.note(key, known)
		}
	}
}

// rewritten drops reservations of a binding in clusters that it left.
func (f *Fleet) rewritten(b workv1alpha2.Binding) {
	key := keyOf(b)
	f.mu.Lock()
	known, ok := f.assumed[key]
	if last := f.recent[key]; last != nil && b.GetGeneration() > last.GetGeneration() {
		delete(f.recent, key)
	}
	f.mu.Unlock()
	if !ok || b.GetGeneration() <= known.generation {
		return
	}
	clusters := b.BindingSpec().Clusters
	still := slices.DeleteFunc(slices.Clone(known.clusters), func(cluster string) bool {
		return !workv1alpha2.HasTarget(clusters, cluster)
	})
	if len(still) < len(known.clusters) {
		f.release(key, still)
	}
}

// release drops the reservations of a binding, except in some clusters.
func (f *Fleet) release(key client.ObjectKey, but []string) {
	f.mu.Lock()
	known, ok := f.assumed[key]
	if ok {
		delete(f.assumed, key)
		if len(but) > 0 {
			f.assumed[key] = assumed{clusters: but, generation: known.generation, until: known.until}
		}
	}
	f.mu.Unlock()
	for _, cluster := range known.clusters {
		if !slices.Contains(but, cluster) {
			f.state(cluster, func(m *capacity.ClusterState) { m.Release(key.String()) })
		}
	}
}

// sweepLater schedules a sweep. The caller must lock mu.
func (f *Fleet) sweepLater() {
	if !f.sweeping {
		f.sweeping = true
		time.AfterFunc(sweepInterval, f.sweep)
	}
}

// sweep drops expired reservations, and continues while there are any.
func (f *Fleet) sweep() {
	now := f.Clock.Now()
	f.mu.Lock()
	clusters := map[string]bool{}
	for key, a := range f.assumed {
		for _, cluster := range a.clusters {
			clusters[cluster] = true
		}
		if !now.Before(a.until) {
			delete(f.assumed, key)
		}
	}
	for key, b := range f.recent {
		if !now.Before(b.BindingStatus().LastScheduledTime.Add(assumeTimeout)) {
			delete(f.recent, key)
		}
	}
	f.sweeping = false
	if len(f.assumed)+len(f.recent) > 0 {
		f.sweepLater()
	}
	f.mu.Unlock()
	for cluster := range clusters {
		f.state(cluster, func(m *capacity.ClusterState) { m.Expire(now) })
	}
}

func keyOf(b client.Object) client.ObjectKey { return client.ObjectKeyFromObject(b) }

// OnRoom subscribes notify to room that appears in a member: deleted pods, grown nodes or quotas. It is called at most
// once per second and cluster, and must not block.
func (f *Fleet) OnRoom(notify func(cluster string)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.room = append(f.room, notify)
}

// grown notifies immediately, or when the interval since the last notification is over.
func (f *Fleet) grown(cluster string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.notifying[cluster] {
		return
	}
	f.notifying[cluster] = true
	now := f.Clock.Now()
	wait := f.notifiedAt[cluster].Add(notifyInterval).Sub(now)
	time.AfterFunc(max(0, wait), func() {
		f.mu.Lock()
		delete(f.notifying, cluster)
		f.notifiedAt[cluster] = f.Clock.Now()
		room := f.room
		f.mu.Unlock()
		for _, notify := range room {
			notify(cluster)
		}
	})
}

// Unschedulable returns the unschedulable pods of a member by namespace and name; none if unknown.
func (f *Fleet) Unschedulable(cluster string) (pending []Pending) {
	f.state(cluster, func(m *capacity.ClusterState) { pending = m.Unschedulable() })
	return pending
}

// Utilisation returns the requested share of the schedulable nodes of a member by resource, such as 0.7; nil if
// unknown.
func (f *Fleet) Utilisation(cluster string) (share map[corev1.ResourceName]float64) {
	f.state(cluster, func(m *capacity.ClusterState) { share = m.Utilisation() })
	return share
}
