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
	"github.com/argosy-io/argosy/internal/core/capacity"
	"github.com/argosy-io/argosy/internal/core/membership"
	"github.com/argosy-io/argosy/internal/core/schedule"
	"github.com/argosy-io/argosy/internal/member"
	"github.com/argosy-io/argosy/internal/scope"
)

const (
	// patience is how long a placement keeps its room while its pods are not seen.
	patience = 5 * time.Minute
	// sweeps is how often those are looked for whose time is over.
	sweeps = 10 * time.Second
	// news is how often listeners are told of room in one cluster at most.
	news = time.Second
)

// Pending is a pod that its member's scheduler has found no node for.
type Pending = capacity.UnschedulablePod

// assumed is what is known of a binding's last placement until its pods are seen.
type assumed struct {
	clusters []string
	// generation of the binding that was placed: what is seen of it up to that is older than the placement.
	generation int64
	until      time.Time
}

// Measure has the fleet know the room of members from their nodes and pods, wherever those are followed, and what is
// about to run there from the bindings of c. Without it, the clusters' summaries are all there is. It is called before
// the caches start.
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
				if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
					obj = gone.Obj
				}
				key := keyOf(obj.(client.Object))
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

// Estimate has ask answered beside what the fleet knows by itself, of which the least counts; clusters that ask says
// nothing of are unknown to it. It may block as long as a placement may. It is called before the first Schedule.
func (f *Fleet) Estimate(ask func(b workv1alpha2.Binding, s schedule.Snapshot) schedule.Capacity) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.estimators = append(f.estimators, ask)
}

// Estimated says whether there is anybody who is asked for room, and does not tell when it changes.
func (f *Fleet) Estimated() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.estimators) > 0
}

// Room is how many more replicas of a binding each cluster of s has room for now, beside those that are expected there:
// by its nodes and pods, else by its summary. A cluster that does not answer, by its Ready condition, is unknown; until
// that is decided, what was seen of it last counts.
func (f *Fleet) Room(b workv1alpha2.Binding, s schedule.Snapshot) schedule.Capacity {
	return schedule.Least(f.seen(b, s), f.asked(b, s))
}

// asked are the answers of other estimators; nil without any.
func (f *Fleet) asked(b workv1alpha2.Binding, s schedule.Snapshot) schedule.Capacity {
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

func (f *Fleet) seen(b workv1alpha2.Binding, s schedule.Snapshot) schedule.Capacity {
	parts, sets := capacity.Parts(b)
	summary := s.Room(b)
	return func(cluster string) (replicas int32, known bool) {
		if membership.Silent(s.Cluster(cluster)) {
			return 0, false
		}
		f.state(cluster, func(m *capacity.ClusterState) {
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

// state has use look at a member's nodes and pods, if they are known.
func (f *Fleet) state(cluster string, use func(*capacity.ClusterState)) bool {
	if f.members == nil {
		return false
	}
	m := f.members.Known(cluster)
	return m != nil && m.Capacity(use)
}

// Schedule decides about a binding on the fleet of s, with the room that there is now. What it places occupies its room
// from then on, until its pods are seen; b is not changed. All that is placed by room goes through here or Decide, one
// at a time, so that no two bindings take the same room. b is as it was read: its clusters are where it is now.
func (f *Fleet) Schedule(b workv1alpha2.Binding, s schedule.Snapshot) (schedule.Result, error) {
	if !schedule.NeedsRoom(b) {
		result, err := schedule.Schedule(b, s, nil)
		f.Assume(b, result.Clusters)
		return result, err
	}
	asked := f.asked(b, s) // they may take their time
	f.placing.Lock()
	defer f.placing.Unlock()
	f.recede(b)
	result, err := schedule.Schedule(b, s, schedule.Least(f.seen(b, s), asked))
	f.Assume(b, result.Clusters)
	return result, err
}

// Decide is Schedule for a decision of another kind about a binding that is placed and stays so: decide chooses
// clusters by the room that there is now, which they occupy from then on where ok is true. decide must not block.
func (f *Fleet) Decide(b workv1alpha2.Binding, s schedule.Snapshot,
	decide func(room schedule.Capacity) (clusters []workv1alpha2.TargetCluster, ok bool)) {
	asked := f.asked(b, s)
	f.placing.Lock()
	defer f.placing.Unlock()
	if clusters, ok := decide(schedule.Least(f.seen(b, s), asked)); ok {
		f.Assume(b, clusters)
	}
}

// recede gives up what a binding was to have beyond what it has: if its last placement was not written, that room is
// its own.
func (f *Fleet) recede(b workv1alpha2.Binding) {
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

// Assume keeps room for what a binding is to have in clusters, beyond what it has there now, until its pods are seen,
// for five minutes at most, or it goes or is placed elsewhere.
func (f *Fleet) Assume(b workv1alpha2.Binding, clusters []workv1alpha2.TargetCluster) {
	spec := b.BindingSpec()
	if f.members == nil || spec.Replicas == 0 && len(spec.Components) == 0 {
		return
	}
	key, parts := keyOf(b), capacity.PartsOf(b)
	placed := assumed{generation: b.GetGeneration(), until: f.Clock.Now().Add(patience)}
	for _, t := range clusters {
		if f.expect(t.Name, capacity.AssumptionOf(b, parts, t.Name, spec.Clusters, clusters), placed.until) {
			placed.clusters = append(placed.clusters, t.Name)
		}
	}
	f.release(key, placed.clusters)
	f.note(key, placed)
}

// expect has a member keep room for a binding until then, and reports whether it does.
func (f *Fleet) expect(cluster string, a capacity.Assumption, until time.Time) (kept bool) {
	a.Until = until
	f.state(cluster, func(m *capacity.ClusterState) { kept = m.Assume(a) })
	return kept
}

// note remembers what is waited for.
func (f *Fleet) note(key client.ObjectKey, a assumed) {
	if len(a.clusters) == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.assumed[key] = a
	f.sweepLater()
}

// remember keeps a binding in mind that was placed a moment before the hub started: its pods may not be there yet.
func (f *Fleet) remember(b workv1alpha2.Binding) {
	spec, last := b.BindingSpec(), b.BindingStatus().LastScheduledTime
	if last == nil || len(spec.Clusters) == 0 || spec.Replicas == 0 && len(spec.Components) == 0 ||
		!f.Clock.Now().Before(last.Add(patience)) {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.recent[keyOf(b)] = b
	f.sweepLater()
}

// recall keeps room in a member, once its pods are known, for what is remembered to go there.
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
		if now.Before(b.BindingStatus().LastScheduledTime.Add(patience)) &&
			capacity.ReplicasIn(b.BindingSpec(), b.BindingSpec().Clusters, cluster) > 0 {
			there = append(there, b)
		}
	}
	f.mu.Unlock()
	for _, b := range there {
		spec, until := b.BindingSpec(), b.BindingStatus().LastScheduledTime.Add(patience)
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

// rewritten gives up what a binding was to have in clusters that it is in no more.
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
		return !slices.ContainsFunc(clusters, func(t workv1alpha2.TargetCluster) bool { return t.Name == cluster })
	})
	if len(still) < len(known.clusters) {
		f.release(key, still)
	}
}

// release gives up what a binding was to have in clusters, but for some.
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

// sweepLater is called with the lock held.
func (f *Fleet) sweepLater() {
	if !f.sweeping {
		f.sweeping = true
		time.AfterFunc(sweeps, f.sweep)
	}
}

// sweep gives up what was waited for too long, and looks again while anything is waited for.
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
		if !now.Before(b.BindingStatus().LastScheduledTime.Add(patience)) {
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

// OnRoom calls tell when room appears in a member: pods gone, a node or quota grown. It is called once a second per
// cluster at most, and must not block.
func (f *Fleet) OnRoom(tell func(cluster string)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.room = append(f.room, tell)
}

// grown tells of room at once, unless it just did; then when the second is over.
func (f *Fleet) grown(cluster string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.telling[cluster] {
		return
	}
	f.telling[cluster] = true
	now := f.Clock.Now()
	wait := f.toldAt[cluster].Add(news).Sub(now)
	time.AfterFunc(max(0, wait), func() {
		f.mu.Lock()
		delete(f.telling, cluster)
		f.toldAt[cluster] = f.Clock.Now()
		room := f.room
		f.mu.Unlock()
		for _, tell := range room {
			tell(cluster)
		}
	})
}

// Unschedulable are the pods of a member that wait for room there, by namespace and name; none where that is not known.
func (f *Fleet) Unschedulable(cluster string) (pending []Pending) {
	f.state(cluster, func(m *capacity.ClusterState) { pending = m.Unschedulable() })
	return pending
}

// Utilisation is the share of what the nodes of a member that take pods have which the pods on them request, by
// resource, such as 0.7; nil where that is not known.
func (f *Fleet) Utilisation(cluster string) (share map[corev1.ResourceName]float64) {
	f.state(cluster, func(m *capacity.ClusterState) { share = m.Utilisation() })
	return share
}
