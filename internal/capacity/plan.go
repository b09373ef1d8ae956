package capacity

import (
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/cluster/capacity"
	"github.com/argosy-io/argosy/internal/core/schedule"
)

// Room is the free room of the fleet for one plan. Nothing is reserved before Reserve. It is not safe for concurrent
// use.
type Room struct {
	fleet     *Fleet
	summaries *schedule.Summaries
	// clones are the states of the clusters of which the plan took room, without that room.
	clones map[string]*capacity.ClusterState
	// found is the room that the plan found for the last binding, by cluster.
	found map[string]int32
	taken []taken
}

// taken is the room that a plan took for a binding in its new clusters, and the room that it had found.
type taken struct {
	binding  workv1alpha2.Binding
	clusters []workv1alpha2.TargetCluster
	found    map[string]int32
}

// PlanRoom returns the room for a plan on the fleet of s.
func (f *Fleet) PlanRoom(s schedule.Snapshot) *Room {
	return &Room{fleet: f, summaries: s.Summaries(), clones: map[string]*capacity.ClusterState{}}
}

// Free implements schedule.Room. In a cluster of which the plan took nothing, it is the room now.
func (r *Room) Free(b workv1alpha2.Binding) schedule.Capacity {
	found, free := map[string]int32{}, seen(b, r.summaries.Snapshot, r.state)
	r.found = found
	return schedule.Least(func(cluster string) (int32, bool) {
		n, known := free(cluster)
		if known {
			found[cluster] = n
		}
		return n, known
	}, r.fleet.estimatorAnswers(b, r.summaries.Snapshot))
}

// Take implements schedule.Room.
func (r *Room) Take(b workv1alpha2.Binding, clusters []workv1alpha2.TargetCluster) {
	spec, parts := b.BindingSpec(), capacity.PartsOf(b)
	for _, t := range capacity.Gains(spec, clusters) {
		if r.clones[t.Name] == nil {
			r.fleet.state(t.Name, func(m *capacity.ClusterState) { r.clones[t.Name] = m.Clone() })
		}
		if m := r.clones[t.Name]; m != nil {
			m.Assume(capacity.AssumptionOf(b, parts, t.Name, spec.Clusters, clusters))
		}
	}
	r.summaries.Take(b, clusters)
	r.taken, r.found = append(r.taken, taken{b, clusters, r.found}), nil
}

// state calls use with the state of a cluster less what the plan took, if it is known.
func (r *Room) state(cluster string, use func(*capacity.ClusterState)) {
	if m := r.clones[cluster]; m != nil {
		use(m)
		return
	}
	r.fleet.state(cluster, use)
}

// Reserve reserves what the plan took, in its order, and returns for how many bindings. It ends before the first whose
// room is gone: it gains more replicas in a cluster than fit now, and the plan found more room there.
func (r *Room) Reserve() int {
	s := r.fleet.Snapshot()
	for i, t := range r.taken {
		if !r.fleet.reserve(t, s) {
			return i
		}
	}
	return len(r.taken)
}

// reserve reserves the room of one binding, unless it is gone.
func (f *Fleet) reserve(t taken, s schedule.Snapshot) bool {
	f.placing.Lock()
	defer f.placing.Unlock()
	if schedule.NeedsRoom(t.binding) {
		now := seen(t.binding, s, f.state)
		for _, gain := range capacity.Gains(t.binding.BindingSpec(), t.clusters) {
			found, counted := t.found[gain.Name]
			if has, known := now(gain.Name); known && counted && has < min(gain.Replicas, found) {
				return false
			}
		}
	}
	f.Assume(t.binding, t.clusters)
	return true
}
