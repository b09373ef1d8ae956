package capacity_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/capacity"
	"github.com/argosy-io/argosy/internal/core/schedule"
	"github.com/argosy-io/argosy/test/kit/controllertest"
)

// placement places replicas of a new binding in one cluster.
func placement(name string, replicas int32, cluster string) capacity.Placement {
	return capacity.Placement{Binding: wants(name, replicas, "1"),
		Clusters: []workv1alpha2.TargetCluster{{Name: cluster, Replicas: replicas}}}
}

// A plan takes room from its copy. The fleet reserves it afterwards, and as much of the plan as still has room.
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
			planned []capacity.Placement
			// others are placed while the plan is made.
			others   []capacity.Placement
			left     string // of the copy
			reserved int
			room     map[string]string
		}{
			{"all fits", []capacity.Placement{placement("a", 3, "m1"), placement("b", 1, "m1"), placement("c", 2, "summed")},
				nil, "0 true 4 true 2 true ", 3, map[string]string{"m1": "0", "m2": "4", "summed": "4"}},
			{"others took room, but enough is left", []capacity.Placement{placement("a", 3, "m1")},
				[]capacity.Placement{placement("x", 1, "m1")}, "1 true 4 true 4 true ", 1, map[string]string{"m1": "0", "m2": "4"}},
			{"the second fits no more", []capacity.Placement{placement("a", 2, "m1"), placement("b", 2, "m1"),
				placement("c", 1, "m2")}, []capacity.Placement{placement("x", 1, "m1")}, "0 true 3 true 4 true ", 1,
				map[string]string{"m1": "1", "m2": "4"}},
			{"nothing fits any more", []capacity.Placement{placement("a", 2, "m1")},
				[]capacity.Placement{placement("x", 4, "m1")}, "2 true 4 true 4 true ", 0, map[string]string{"m1": "0", "m2": "4"}},
			// Some policies place replicas where no room is known, and the hub follows them.
			{"more than fits, as the plan knew", []capacity.Placement{placement("a", 6, "m1"), placement("b", 2, "m1")},
				nil, "0 true 4 true 4 true ", 2, map[string]string{"m1": "0", "m2": "4"}},
		} {
			room := w.fleet.PlanRoom(w.fleet.Snapshot())
			copied := room.Copy()
			for _, p := range c.planned {
				copied.Take(p.Binding, p.Clusters)
			}
			if got := free(copied); got != c.left {
				t.Errorf("%s: the copy has %s, want %s", c.name, got, c.left)
			}
			if got, want := free(room), "4 true 4 true 4 true "; got != want {
				t.Errorf("%s: the plan changed the room to %s", c.name, got)
			}
			w.expectRoom(c.name+": nothing is reserved yet", one, full)
			for _, p := range c.others {
				w.fleet.Assume(p.Binding, p.Clusters)
			}
			if got := room.Reserve(c.planned); got != c.reserved {
				t.Errorf("%s: %d placements are reserved, want %d", c.name, got, c.reserved)
			}
			w.expectRoom(c.name, one, c.room)
			for _, p := range append(c.planned, c.others...) {
				w.fleet.Assume(p.Binding, nil) // given up
			}
			w.expectRoom(c.name+": given up", one, full)
		}
	})
}
