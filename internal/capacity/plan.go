package capacity

import (
	"maps"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/cluster/capacity"
	"github.com/argosy-io/argosy/internal/core/schedule"
)

// Room is the room of the fleet for a plan: that of each cluster when the plan first asked. Nothing is reserved before
// Reserve. It is not safe for concurrent use.
type Room struct {
	fleet *Fleet
	// snapshot has the summaries, less what the plan took.
	snapshot schedule.Snapshot
	// read are the states of the clusters; nil for one that is not known. taken are those of which the plan took room.
	read, taken map[string]*capacity.ClusterState
}

// PlanRoom returns the room for a plan on the fleet of s.
func (f *Fleet) PlanRoom(s schedule.Snapshot) *Room {
	return &Room{f, s, map[string]*capacity.ClusterState{}, map[string]*capacity.ClusterState{}}
}

// Copy implements schedule.Room.
func (r *Room) Copy() schedule.Room { return r.copied() }

func (r *Room) copied() *Room {
	taken := maps.Clone(r.taken)
	for cluster, m := range taken {
		taken[cluster] = m.Clone()
	}
	return &Room{r.fleet, r.snapshot, r.read, taken}
}

// Free implements schedule.Room.
func (r *Room) Free(b workv1alpha2.Binding) schedule.Capacity {
	return schedule.Least(seen(b, r.snapshot, r.state), r.fleet.estimatorAnswers(b, r.snapshot))
}

// Take implements schedule.Room.
func (r *Room) Take(b workv1alpha2.Binding, clusters []workv1alpha2.TargetCluster) {
	parts := capacity.PartsOf(b)
	for _, t := range clusters {
		a := capacity.AssumptionOf(b, parts, t.Name, b.BindingSpec().Clusters, clusters)
		if a.Replicas <= a.Before {
			continue
		}
		r.state(t.Name, func(m *capacity.ClusterState) {
			if r.taken[t.Name] == nil {
				m = m.Clone()
				r.taken[t.Name] = m
			}
			m.Assume(a)
		})
	}
	r.snapshot = r.snapshot.Taking(b, clusters)
}

// state is the stateOf the clusters for the plan.
func (r *Room) state(cluster string, use func(*capacity.ClusterState)) {
	m := r.taken[cluster]
	if m == nil {
		known := false
		if m, known = r.read[cluster]; !known {
			r.fleet.state(cluster, func(now *capacity.ClusterState) { m = now.Clone() })
			r.read[cluster] = m
		}
	}
	if m != nil {
		use(m)
	}
}

// Placement is a binding and its new clusters.
type Placement struct {
	Binding  workv1alpha2.Binding
	Clusters []workv1alpha2.TargetCluster
}

// Reserve reserves the room of placements that were planned with r, in the order of the plan, and returns their number.
// It ends before the first placement whose room is gone: a cluster gains more replicas than fit now, and the plan found
// more room.
func (r *Room) Reserve(placements []Placement) int {
	planned := r.copied()
	f := r.fleet
	f.placing.Lock()
	defer f.placing.Unlock()
	for i, p := range placements {
		spec := p.Binding.BindingSpec()
		then, now := seen(p.Binding, planned.snapshot, planned.state), seen(p.Binding, r.snapshot, f.state)
		for _, t := range p.Clusters {
			gain := capacity.ReplicasIn(spec, p.Clusters, t.Name) - capacity.ReplicasIn(spec, spec.Clusters, t.Name)
			if gain <= 0 {
				continue
			}
			had, counted := then(t.Name)
			if has, known := now(t.Name); known && counted && int64(has) < min(gain, int64(had)) {
				return i
			}
		}
		f.Assume(p.Binding, p.Clusters)
		planned.Take(p.Binding, p.Clusters)
	}
	return len(placements)
}
