package capacity_test

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/schedule"
	"github.com/argosy-io/argosy/test/kit/controllertest"
)

// placement is a binding and its new clusters.
type placement struct {
	binding  *workv1alpha2.ResourceBinding
	clusters []workv1alpha2.TargetCluster
}

// place places replicas of a new binding in one cluster.
func place(name string, replicas int32, cluster string) placement {
	return placement{wants(name, replicas, "1"), []workv1alpha2.TargetCluster{{Name: cluster, Replicas: replicas}}}
}

// everywhere places as many replicas in each cluster, whatever room there is.
func everywhere(p placement) placement {
	p.binding.Spec.Placement.ReplicaScheduling = nil
	return p
}

// A plan takes room without a reservation. The fleet reserves it afterwards, and as much of the plan as still has room.
func TestRoomIsReservedAfterThePlan(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := measure(t, map[string][]string{"m1": {"4"}, "m2": {"4"}, "summed": nil})
		w.ClusterStatus("summed", func(s *clusterv1alpha1.ClusterStatus) {
			s.ResourceSummary = &clusterv1alpha1.ResourceSummary{Allocatable: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("4")}}
		})
		one := wants("one", 1, "1")
		full := map[string]string{"m1": "4", "m2": "4", "summed": "4"}
		w.expectRoom("at first", one, full)
		free := func(r schedule.Room) string {
			text := ""
			for _, cluster := range []string{"m1", "m2", "summed"} {
				n, known := r.Free(one)(cluster)
				text += fmt.Sprintf("%d %t ", n, known)
			}
			return text
		}
		for _, c := range []struct {
			name    string
			planned []placement
			// others are placed while the plan is made: before, or after it took room.
			before, after []placement
			left          string // for the plan
			reserved      int
			room          map[string]string
		}{
			{"all fits", []placement{place("a", 3, "m1"), place("b", 1, "m1"), place("c", 2, "summed")},
				nil, nil, "0 true 4 true 2 true ", 3, map[string]string{"m1": "0", "m2": "4", "summed": "4"}},
			{"others took room, but enough is left", []placement{place("a", 3, "m1")},
				nil, []placement{place("x", 1, "m1")}, "1 true 4 true 4 true ", 1, map[string]string{"m1": "0", "m2": "4"}},
			{"the second fits no more", []placement{place("a", 2, "m1"), place("b", 2, "m1"), place("c", 1, "m2")},
				nil, []placement{place("x", 1, "m1")}, "0 true 3 true 4 true ", 1, map[string]string{"m1": "1", "m2": "4"}},
			{"nothing fits any more", []placement{place("a", 2, "m1")},
				nil, []placement{place("x", 4, "m1")}, "2 true 4 true 4 true ", 0, map[string]string{"m1": "0", "m2": "4"}},
			{"the plan sees what was taken before it took room", []placement{place("a", 1, "m1")},
				[]placement{place("x", 1, "m1"), place("y", 3, "m2")}, nil, "2 true 1 true 4 true ", 1,
				map[string]string{"m1": "2", "m2": "1"}},
			// Some policies place replicas where no room is known, and the hub follows them.
			{"more than fits, as the plan knew", []placement{place("a", 6, "m1"), place("b", 2, "m1")},
				nil, nil, "0 true 4 true 4 true ", 2, map[string]string{"m1": "0", "m2": "4"}},
			{"room does not matter", []placement{everywhere(place("a", 2, "m1"))},
				nil, []placement{place("x", 4, "m1")}, "2 true 4 true 4 true ", 1, map[string]string{"m1": "0", "m2": "4"}},
		} {
			room := w.fleet.PlanRoom(w.fleet.Snapshot())
			if got, want := free(room), "4 true 4 true 4 true "; got != want {
				t.Errorf("%s: at first the plan has %s, want %s", c.name, got, want)
			}
			assume := func(all []placement) {
				for _, p := range all {
					w.fleet.Assume(p.binding, p.clusters)
				}
			}
			assume(c.before)
			for _, p := range c.planned {
				room.Free(p.binding)(p.clusters[0].Name)
				room.Take(p.binding, p.clusters)
			}
			if got := free(room); got != c.left {
				t.Errorf("%s: %s is left, want %s", c.name, got, c.left)
			}
			if c.before == nil {
				w.expectRoom(c.name+": nothing is reserved yet", one, full)
			}
			assume(c.after)
			if got := room.Reserve(); got != c.reserved {
				t.Errorf("%s: %d placements are reserved, want %d", c.name, got, c.reserved)
			}
			w.expectRoom(c.name, one, c.room)
			for _, p := range slices.Concat(c.planned, c.before, c.after) {
				w.fleet.Assume(p.binding, nil) // given up
			}
			w.expectRoom(c.name+": given up", one, full)
		}
	})
}
