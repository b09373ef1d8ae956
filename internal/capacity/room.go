package capacity

import (
	corev1 "k8s.io/api/core/v1"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/capacity"
	"github.com/argosy-io/argosy/internal/core/schedule"
)

// Pending is a pod that its member's scheduler has found no node for.
type Pending = capacity.Pending

// Room is how many more replicas of a binding each cluster has room for now, on the fleet of s.
func (f *Fleet) Room(b workv1alpha2.Binding, s schedule.Snapshot) schedule.Capacity { return s.Room(b) }

// Schedule decides about a binding on the fleet of s, with the room that there is now. What it places occupies its room from
// then on, until its pods are seen; b is not changed. All that is placed by room goes through here, one at a time, so that
// no two bindings take the same room.
func (f *Fleet) Schedule(b workv1alpha2.Binding, s schedule.Snapshot) (schedule.Result, error) {
	return schedule.Schedule(b, s, f.Room(b, s))
}

// OnRoom calls tell when room appears in a member: pods gone, a node or quota grown. It is called once a second per
// cluster at most, and must not block.
func (f *Fleet) OnRoom(tell func(cluster string)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.room = append(f.room, tell)
}

// Unschedulable are the pods of a member that wait for room there, by namespace and name; none where that is not known.
func (f *Fleet) Unschedulable(cluster string) []Pending { return nil }

// Utilisation is the share of what the nodes of a member that take pods have which the pods on them request, by resource, such as
// 0.7; nil where that is not known.
func (f *Fleet) Utilisation(cluster string) map[corev1.ResourceName]float64 { return nil }
