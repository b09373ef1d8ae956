package schedule

import (
	"fmt"
	"math"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

func TestRoomFollowsTheResourceSummary(t *testing.T) {
	busy := func(c *clusterv1alpha1.Cluster) {
		c.Status.ResourceSummary = &clusterv1alpha1.ResourceSummary{
			Allocatable: quantities("cpu=10 memory=10Gi pods=100"),
			Allocated:   quantities("cpu=3500m memory=1Gi pods=20"),
			Allocating:  quantities("cpu=500m pods=70"),
		}
	}
	for name, test := range map[string]struct {
		cluster  with
		requests string
		want     int32
		unknown  bool
	}{
		"the scarcest resource counts": {free("cpu=4 memory=8Gi pods=100"), "cpu=500m memory=2Gi", 4,
			false},
		"less than one CPU is counted in thousandths":      {free("cpu=900m pods=100"), "cpu=200m", 4, false},
		"what is allocated and being allocated is gone":    {busy, "cpu=1", 6, false},
		"pods are counted too":                             {busy, "cpu=100m", 10, false},
		"... also where nothing is requested":              {busy, "", 10, false},
		"nothing requested and pods not counted: no limit": {free("cpu=4"), "", math.MaxInt32, false},
		"a request of nothing is none":                     {free("cpu=4"), "memory=0", math.MaxInt32, false},
		"a resource that the cluster does not have":        {free("cpu=4 pods=9"), "nvidia.com/gpu=1", 0, false},
		"more than a number holds":                         {free("memory=8Ei"), "memory=1", math.MaxInt32, false},
		"a cluster that did not say is unknown":            {func(*clusterv1alpha1.Cluster) {}, "cpu=1", 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			b := deployment(1, policyv1alpha1.Placement{})
			b.Spec.ReplicaRequirements = &workv1alpha2.ReplicaRequirements{ResourceRequest: quantities(test.requests)}
			n, known := fleet(cluster("m", test.cluster)).Room(b)("m")
			if n != test.want || known == test.unknown {
				t.Errorf("room for %d (known: %v), want %d (%v)", n, known, test.want, !test.unknown)
			}
		})
	}
	if _, known := fleet().Room(deployment(1, policyv1alpha1.Placement{}))("m"); known {
		t.Error("the room of a cluster that there is not is known")
	}
}

// A plan takes what a cluster gains. What is left is never more than before.
func TestSummariesLoseWhatAClusterGains(t *testing.T) {
	for _, c := range []struct{ had, has, requests, want string }{
		{"", "a=3", "cpu=1", "7 10 "},
		{"a=1 b=4", "a=3 b=1", "cpu=1", "8 10 "},
		{"a=4", "b=4", "cpu=1", "10 6 "},
		{"", "a=11", "cpu=1", "0 10 "},
		{"", "a=2 unknown=2", "", "10 10 "},
		{"", "a=2", "cpu=1 memory=4Ei", "0 10 "},     // 2 * 2^62 is negative
		{"", "a=4", "cpu=1 memory=4Ei", "0 10 "},     // 4 * 2^62 is zero
		{"", "a=2", "cpu=9223372036854775", "0 10 "}, // in thousandths, almost the largest number
	} {
		s := fleet(cluster("a", free("cpu=10 memory=10")), cluster("b", free("cpu=10 memory=10")))
		one, b := deployment(1, policyv1alpha1.Placement{}), placed(deployment(9, policyv1alpha1.Placement{}), c.had)
		one.Spec.ReplicaRequirements = &workv1alpha2.ReplicaRequirements{ResourceRequest: quantities("cpu=1 memory=1")}
		b.Spec.ReplicaRequirements = &workv1alpha2.ReplicaRequirements{ResourceRequest: quantities(c.requests)}
		rooms := func(r Room) (text string) {
			for _, name := range []string{"a", "b"} {
				n, _ := r.Free(one)(name)
				text += fmt.Sprintf("%d ", n)
			}
			return text
		}
		r := s.Summaries()
		if r.Take(b, placed(deployment(9, policyv1alpha1.Placement{}), c.has).Spec.Clusters); rooms(r) != c.want {
			t.Errorf("from %q to %q with %s: %s is left, want %s", c.had, c.has, c.requests, rooms(r), c.want)
		}
		if got := rooms(s.Summaries()); got != "10 10 " {
			t.Errorf("from %q to %q with %s: the snapshot itself has %s", c.had, c.has, c.requests, got)
		}
	}
}

func TestAnOverbookedClusterHasNoRoom(t *testing.T) {
	overbooked := func(c *clusterv1alpha1.Cluster) {
		c.Status.ResourceSummary = &clusterv1alpha1.ResourceSummary{Allocatable: quantities("cpu=1"),
			Allocated: quantities("cpu=2")}
	}
	b := deployment(1, policyv1alpha1.Placement{})
	b.Spec.ReplicaRequirements = &workv1alpha2.ReplicaRequirements{ResourceRequest: quantities("cpu=1")}
	if n, known := fleet(cluster("m", overbooked)).Room(b)("m"); n != 0 || !known {
		t.Errorf("room for %d (known: %v), want 0", n, known)
	}
}

func TestLeast(t *testing.T) {
	both := Least(room("a=5 b=2"), nil, room("a=3 c=7"))
	for name, want := range map[string]int32{"a": 3, "b": 2, "c": 7} {
		if got, known := both(name); got != want || !known {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
	if _, known := both("d"); known {
		t.Error("d is known though nobody knew")
	}
}

func TestEstimatorsAreAskedOnlyIfNeeded(t *testing.T) {
	s := fleet(named("a", "b")...)
	for name, test := range map[string]struct {
		binding workv1alpha2.Binding
		want    bool
	}{
		"a ConfigMap":                        {configMap(policyv1alpha1.Placement{}), false},
		"duplicated":                         {deployment(1, policyv1alpha1.Placement{}), false},
		"duplicated to some of the clusters": {deployment(1, upTo(policyv1alpha1.Placement{}, 1, 1)), true},
		"static weights":                     {deployment(1, byWeight("a=1")), false},
		"static weights beside a constraint": {deployment(1, upTo(byWeight("a=1"), 1, 1)), false},
		"dynamic weights":                    {deployment(1, byAvailability()), true},
		"aggregated":                         {deployment(1, together()), true},
		"aggregated, scaled to nothing":      {deployment(0, together()), false},
	} {
		t.Run(name, func(t *testing.T) {
			asked := false
			schedule(t, test.binding, s, func(string) (int32, bool) { asked = true; return 9, true })
			if asked != test.want || NeedsRoom(test.binding) != test.want {
				t.Errorf("asked: %v, NeedsRoom: %v, want %v", asked, NeedsRoom(test.binding), test.want)
			}
		})
	}
}

func TestComponentsNeedRoomTogether(t *testing.T) {
	b := deployment(0, upTo(policyv1alpha1.Placement{}, 1, 1))
	b.Spec.ReplicaRequirements = nil
	b.Spec.Components = []workv1alpha2.Component{
		{Name: "leader", Replicas: 1, ReplicaRequirements: &workv1alpha2.ComponentReplicaRequirements{
			ResourceRequest: quantities("cpu=2")}},
		{Name: "worker", Replicas: 5, ReplicaRequirements: &workv1alpha2.ComponentReplicaRequirements{
			ResourceRequest: quantities("cpu=1 memory=1Gi")}},
	}
	// A set is seven CPUs, 5Gi and six pods.
	for name, test := range map[string]struct {
		a, b, c string
		want    string
	}{
		"not where only some fit": {"cpu=6 memory=90Gi pods=90", "cpu=7 memory=5Gi pods=6",
			"cpu=90 memory=4Gi pods=90", "b"},
		"where the most sets fit": {"cpu=7 memory=5Gi pods=6", "cpu=7 memory=5Gi pods=6",
			"cpu=14 memory=10Gi pods=12", "c"},
		"pods count": {"cpu=90 memory=90Gi pods=5", "cpu=90 memory=90Gi pods=5",
			"cpu=90 memory=90Gi pods=6", "c"},
		"nowhere, and it says so": {"cpu=6 memory=9Gi pods=9", "cpu=6 memory=9Gi pods=9",
			"cpu=6 memory=9Gi pods=9", ""},
		"a resource that nobody has is no fit": {"cpu=9 pods=9", "cpu=9 pods=9", "cpu=9 pods=9", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := fleet(cluster("a", free(test.a)), cluster("b", free(test.b)), cluster("c", free(test.c)))
			r, err := Schedule(b, s, s.Room(b))
			if reason := Condition(err).Reason; targetList(r.Clusters) != test.want || (err == nil) != (test.want != "") ||
				err != nil && reason != workv1alpha2.ReasonUnschedulable {
				t.Errorf("got %q, %v (%s), want %q", targetList(r.Clusters), err, reason, test.want)
			}
			if err != nil {
				return
			}
			kept := b.DeepCopy()
			record(kept, r, nil, time.Unix(1, 0))
			full := fleet(cluster("a", free("cpu=1")), cluster("b", free("cpu=1")), cluster("c", free("cpu=1")))
			if _, due := Due(kept, full); due || schedule(t, kept, full, full.Room(kept)) != test.want {
				t.Error("it moves when its cluster is full of it")
			}
		})
	}
}

// A cluster that reports by itself has its nodes counted in grades: what they have at least counts.
func TestResourceModelsEstimateRoomWithoutNodes(t *testing.T) {
	grade := func(g uint, least string) clusterv1alpha1.ResourceModel {
		m := clusterv1alpha1.ResourceModel{Grade: g}
		for name, q := range quantities(least) {
			m.Ranges = append(m.Ranges, clusterv1alpha1.ResourceModelRange{Name: name, Min: q})
		}
		return m
	}
	models := []clusterv1alpha1.ResourceModel{grade(1, "cpu=2 memory=4Gi"), grade(0, "cpu=0 memory=0"),
		grade(2, "cpu=4 memory=8Gi")}
	counted := func(mode clusterv1alpha1.ClusterSyncMode, counts ...int) with {
		return func(c *clusterv1alpha1.Cluster) {
			c.Spec.SyncMode, c.Spec.ResourceModels = mode, models
			c.Status.ResourceSummary = &clusterv1alpha1.ResourceSummary{Allocatable: quantities(
				"cpu=20 memory=40Gi pods=50 gpu=8")}
			for g, n := range counts {
				c.Status.ResourceSummary.AllocatableModelings = append(c.Status.ResourceSummary.AllocatableModelings,
					clusterv1alpha1.AllocatableModeling{Grade: uint(g), Count: n})
			}
		}
	}
	for name, test := range map[string]struct {
		cluster  with
		requests string
		want     int32
	}{
		"each node has the least of its grade":             {counted(clusterv1alpha1.Pull, 1, 2, 3), "cpu=1", 16},
		"its scarcest resource counts":                     {counted(clusterv1alpha1.Pull, 0, 2, 3), "cpu=1 memory=4Gi", 8},
		"what fits no node does not fit their sum":         {counted(clusterv1alpha1.Pull, 5, 4, 1), "cpu=5", 0},
		"the summary bounds what models would allow":       {counted(clusterv1alpha1.Pull, 0, 0, 9), "cpu=1", 20},
		"a resource that no model names is bounded by it":  {counted(clusterv1alpha1.Pull, 1, 1, 1), "gpu=2", 4},
		"models by which nothing was counted yet: it, too": {counted(clusterv1alpha1.Pull), "cpu=5", 4},
		"where the hub sees the nodes, models add nothing": {counted(clusterv1alpha1.Push, 5, 0, 0), "cpu=5", 4},
	} {
		t.Run(name, func(t *testing.T) {
			b := deployment(1, policyv1alpha1.Placement{})
			b.Spec.ReplicaRequirements = &workv1alpha2.ReplicaRequirements{ResourceRequest: quantities(test.requests)}
			if n, known := fleet(cluster("m", test.cluster)).Room(b)("m"); n != test.want || !known {
				t.Errorf("room for %d (known: %v), want %d", n, known, test.want)
			}
		})
	}
}

// Models tell how many pods of a component fit on nodes: their sum would allow a pod larger than any node.
func TestResourceModelsEstimateRoomForComponents(t *testing.T) {
	pull := cluster("m", func(c *clusterv1alpha1.Cluster) {
		c.Spec.SyncMode = clusterv1alpha1.Pull
		c.Spec.ResourceModels = []clusterv1alpha1.ResourceModel{{Grade: 5, Ranges: []clusterv1alpha1.ResourceModelRange{
			{Name: corev1.ResourceCPU, Min: resource.MustParse("32")}}}}
		c.Status.ResourceSummary = &clusterv1alpha1.ResourceSummary{Allocatable: quantities("cpu=96 pods=300"),
			AllocatableModelings: []clusterv1alpha1.AllocatableModeling{{Grade: 5, Count: 3}}}
	})
	for name, test := range map[string]struct {
		manager string
		workers int32
		want    int32
	}{
		"one set":                           {"cpu=1", 90, 1},
		"several sets":                      {"cpu=2", 20, 4},
		"a pod larger than any node":        {"cpu=40", 1, 0},
		"more pods than the nodes hold":     {"cpu=1", 200, 0},
		"a large pod alone":                 {"cpu=40", 0, 0},
		"requests that no model describes":  {"", 90, 1},
		"a pod as large as the least nodes": {"cpu=32", 1, 2},
	} {
		t.Run(name, func(t *testing.T) {
			b := deployment(0, policyv1alpha1.Placement{})
			b.Spec.ReplicaRequirements = nil
			part := func(name string, n int32, requests string) workv1alpha2.Component {
				return workv1alpha2.Component{Name: name, Replicas: n,
					ReplicaRequirements: &workv1alpha2.ComponentReplicaRequirements{ResourceRequest: quantities(requests)}}
			}
			b.Spec.Components = []workv1alpha2.Component{part("manager", 1, test.manager), part("worker", test.workers, "cpu=1")}
			if n, known := fleet(pull).Room(b)("m"); n != test.want || !known {
				t.Errorf("room for %d (known: %v), want %d", n, known, test.want)
			}
		})
	}
}

func TestBindingWithoutEnoughRoomAwaitsEstimates(t *testing.T) {
	waiting := func(p policyv1alpha1.Placement) *workv1alpha2.ResourceBinding { return deployment(3, p) }
	scheduled := deployment(3, byAvailability())
	record(scheduled, Result{Clusters: targets("m=3")}, nil, time.Unix(1, 0))
	scheduled.Spec.Clusters = targets("m=3")
	for name, test := range map[string]struct {
		b       *workv1alpha2.ResourceBinding
		cluster *clusterv1alpha1.Cluster
		want    bool
	}{
		"it was not placed": {waiting(byAvailability()), cluster("m"), true},
		"it takes no room of clusters it may not use": {waiting(restrictedTo(byAvailability(), "other")), cluster("m"),
			false},
		"nor of tainted ones": {waiting(byAvailability()), cluster("m", tainted("k", "NoSchedule")),
			false},
		"nor of those that leave":  {waiting(byAvailability()), cluster("m", leaving), false},
		"it does not go by room":   {waiting(equally()), cluster("m"), false},
		"it has what it asked for": {scheduled, cluster("m"), false},
	} {
		if got := AwaitsRoom(test.b, test.cluster, Plugins{}); got != test.want {
			t.Errorf("%s: awaits room: %t", name, got)
		}
	}
}
