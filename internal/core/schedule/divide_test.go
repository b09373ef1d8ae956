package schedule

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

func TestDivide(t *testing.T) {
	tiers := named("a", "b", "c")
	for i, tier := range []string{"gold", "gold", "silver"} {
		labelled("tier", tier)(tiers[i])
	}
	byLabel := func(tier string) policyv1alpha1.ClusterAffinity {
		return policyv1alpha1.ClusterAffinity{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{
			"tier": tier}}}
	}
	overlapping := divided(policyv1alpha1.ReplicaDivisionPreferenceWeighted, &policyv1alpha1.ClusterPreferences{
		StaticWeightList: []policyv1alpha1.StaticClusterWeight{
			{TargetCluster: byLabel("gold"), Weight: 1},
			{TargetCluster: policyv1alpha1.ClusterAffinity{ClusterNames: []string{"a"}}, Weight: 3},
			{TargetCluster: policyv1alpha1.ClusterAffinity{ClusterNames: []string{"a", "b"}, ExcludeClusters: []string{"b"}},
				Weight: 2},
		},
	})
	three := fleet(tiers...)

	for name, test := range map[string]struct {
		binding workv1alpha2.Binding
		room    string
		want    string
	}{
		"duplicated: each cluster gets all": {deployment(2, policyv1alpha1.Placement{}), "",
			"a=2 b=2 c=2"},
		"a ConfigMap goes everywhere, also by a policy that divides":     {configMap(byWeight("a=1")), "", "a b c"},
		"a template without requirements and replicas is not a workload": {configMap(together()), "", "a b c"},
		"a workload scaled to nothing is nowhere": {placed(deployment(0, byAvailability()), "a=2"),
			"a=5", ""},
		"static weights": {deployment(6, byWeight("a=3 b=2 c=1")), "",
			"a=3 b=2 c=1"},
		"static weights do not ask for room": {deployment(6, byWeight("a=3 b=2 c=1")),
			"a=0 b=0 c=0", "a=3 b=2 c=1"},
		"a cluster that no weight matches gets none": {deployment(6, byWeight("a=2 b=1")), "",
			"a=4 b=2"},
		"weights for other clusters than those that may be used weigh all alike": {deployment(6,
			restrictedTo(byWeight("a=3"), "b", "c")), "", "b=3 c=3"},
		"the largest weight that matches counts": {deployment(8, overlapping), "", "a=6 b=2"},
		"weighted without weights is equal": {deployment(6, equally()), "",
			"a=2 b=2 c=2"},
		"a remainder goes to the first by name": {deployment(4, equally()), "",
			"a=2 b=1 c=1"},
		"clusters that would get none are left out": {deployment(2, equally()), "", "a=1 b=1"},
		"dynamic weights are the room there is": {deployment(6, byAvailability()),
			"a=30 b=20 c=10", "a=3 b=2 c=1"},
		"dynamic weights never give more than the room": {deployment(9, byAvailability()),
			"a=7 b=1 c=1", "a=7 b=1 c=1"},
		"without limits all share alike": {deployment(6, byAvailability()),
			fmt.Sprintf("a=%d b=%[1]d c=%[1]d", 1<<31-1), "a=2 b=2 c=2"},
		"no limit weighs no more than what is asked for": {deployment(6, byAvailability()),
			fmt.Sprintf("a=%d b=6 c=0", 1<<31-1), "a=3 b=3"},
		"nobody knows: all share alike": {deployment(6, byAvailability()), "",
			"a=2 b=2 c=2"},
		"unknown is not zero": {deployment(6, byAvailability()), "a=0 b=0",
			"c=6"},
		"more replicas are added to what is there": {placed(deployment(9, byAvailability()),
			"a=6"), "a=10 b=10 c=10", "a=7 b=1 c=1"},
		"fewer replicas shrink each in proportion, whatever the room": {placed(deployment(3, byAvailability()),
			"a=4 b=2"), "a=0 b=0 c=90", "a=2 b=1"},
		"as many replicas stay where they are, whatever the room": {placed(deployment(6, byAvailability()),
			"a=4 b=2"), "a=0 b=0 c=90", "a=4 b=2"},
		"replicas in a cluster that is gone are placed anew": {placed(deployment(6, byAvailability()),
			"a=2 gone=4"), "a=2 b=2 c=0", "a=4 b=2"},
		"rebalanced: what is placed counts as room and may move": {rebalanced(
			placed(deployment(6, byAvailability()), "a=6")), "a=0 b=3 c=3", "a=3 b=2 c=1"},
		"aggregated: the one with the most room": {deployment(6, together()), "a=9 b=10 c=5",
			"b=6"},
		"aggregated: of equals the first by name": {deployment(6, together()), "a=10 b=10 c=5",
			"a=6"},
		"aggregated: as few as have room, by what they have": {deployment(12, together()), "a=9 b=6 c=5",
			"a=7 b=5"},
		"aggregated: more replicas stay where there are some": {placed(deployment(6, together()), "c=4"),
			"a=50 b=50 c=2", "c=6"},
		"aggregated: ... and then go where there is the most room": {placed(deployment(8, together()), "c=4"),
			"a=50 b=40 c=1", "a=4 c=4"},
		"aggregated: fewer replicas leave the smaller clusters": {placed(deployment(4, together()),
			"a=5 b=3"), "", "a=4"},
		"aggregated, rebalanced: where it is does not count": {rebalanced(
			placed(deployment(6, together()), "c=6")), "a=7 b=8 c=0", "b=6"},
		"several components: the clusters chosen, without a single number": {components(deployment(6, byWeight("a=1"))),
			"", "a b c"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := schedule(t, test.binding, three, room(test.room)); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func components(b *workv1alpha2.ResourceBinding) *workv1alpha2.ResourceBinding {
	b.Spec.Components = []workv1alpha2.Component{{Name: "leader", Replicas: 1}, {Name: "worker", Replicas: 5}}
	return b
}

func TestClustersGetTheReplicasOfEachComponent(t *testing.T) {
	r, err := Schedule(components(deployment(0, upTo(policyv1alpha1.Placement{}, 1, 1))), fleet(named("a", "b")...),
		room("a=0 b=1"))
	want := []workv1alpha2.TargetCluster{{Name: "b",
		Components: []workv1alpha2.TargetComponent{{Name: "leader", Replicas: 1}, {Name: "worker", Replicas: 5}}}}
	if err != nil || !reflect.DeepEqual(r.Clusters, want) {
		t.Errorf("got %+v (%v), want %+v", r.Clusters, err, want)
	}
}

// A policy that divides replicas cannot divide components: who gets them whole depends on what it divides by.
func TestDividedPoliciesKeepComponentsTogether(t *testing.T) {
	s := fleet(cluster("a", located("acme", "eu")), cluster("b", located("acme", "eu")),
		cluster("c", located("acme", "us")))
	in := func(name string, b *workv1alpha2.ResourceBinding) Result {
		return Result{Clusters: []workv1alpha2.TargetCluster{{Name: name, Components: sharesOf(b.Spec.Components)}}}
	}
	for name, test := range map[string]struct {
		placement policyv1alpha1.Placement
		was, room string
		want      string
	}{
		"aggregated: one cluster with room":           {together(), "", "a=0 b=2 c=1", "b"},
		"by capacity: one cluster with room":          {byAvailability(), "", "a=0 b=0 c=1", "c"},
		"no room anywhere":                            {together(), "", "a=0 b=0 c=0", ""},
		"it stays where it is":                        {together(), "c", "a=9 b=9 c=0", "c"},
		"it stays in all clusters where it is":        {byAvailability(), "a c", "a=9 b=9 c=0", "a c"},
		"it stays in all of the fleet":                {byAvailability(), "a b c", "a=9 b=9 c=0", "a b c"},
		"static weights: every cluster":               {byWeight("a=1 b=2"), "", "a=0 b=0 c=0", "a b c"},
		"static weights: no cluster joins":            {byWeight("a=1 b=2"), "a", "a=0 b=0 c=0", "a"},
		"equal weights: every cluster":                {equally(), "", "a=0 b=0 c=0", "a b c"},
		"duplicated: every cluster":                   {policyv1alpha1.Placement{}, "", "a=0 b=0 c=0", "a b c"},
		"one cluster with room, by constraint":        {upTo(byWeight("a=1 b=2"), 1, 1), "", "a=0 b=0 c=1", "c"},
		"two clusters with room, by constraint":       {upTo(together(), 2, 2), "", "a=0 b=1 c=1", "b c"},
		"as few regions as needed, by constraint":     {spreadBy(together(), "region", 1, 2), "", "a=1 b=1 c=1", "a b"},
		"one region, whatever the static weights are": {spreadBy(byWeight("c=9"), "region", 1, 1), "", "a=1 b=1 c=1", "a b"},
	} {
		t.Run(name, func(t *testing.T) {
			b := components(deployment(0, test.placement))
			if test.was != "" {
				placed(b, test.was)
				for i := range b.Spec.Clusters {
					b.Spec.Clusters[i].Components = sharesOf(b.Spec.Components)
				}
				if reason, due := Due(b, s); due {
					t.Fatalf("due before, because %s", reason)
				}
			}
			r, err := Schedule(b, s, room(test.room))
			if got := targetList(r.Clusters); got != test.want || (err == nil) != (test.want != "") {
				t.Fatalf("got %q (%v), want %q", got, err, test.want)
			}
			if err != nil {
				if reason := Condition(err).Reason; reason != workv1alpha2.ReasonUnschedulable {
					t.Errorf("the reason is %s", reason)
				}
				return
			}
			record(b, r, nil, time.Unix(200, 0))
			if reason, due := Due(b, s); due {
				t.Errorf("due again, because %s", reason)
			}
			several := len(r.Clusters) > 1 && test.placement.DividesReplicas()
			if warning := Copies(b); (warning != "") != several {
				t.Errorf("the warning is %q", warning)
			}
		})
	}
	changed := components(deployment(0, byWeight("a=1")))
	record(changed, in("a", changed), nil, time.Unix(100, 0))
	*changed.Spec.Placement = equally()
	if got := schedule(t, changed, s, nil); got != "a b c" {
		t.Errorf("after a change of the weights it is in %q", got)
	}
	lost := components(deployment(0, together()))
	record(lost, in("gone", lost), nil, time.Unix(100, 0))
	if _, due := Due(lost, s); !due || schedule(t, lost, s, room("a=0 b=1 c=9")) != "c" {
		t.Error("it stays in a cluster that left")
	}
}

func TestWorkloadsWithoutReplicasStayOnRequest(t *testing.T) {
	for name, test := range map[string]struct {
		binding workv1alpha2.Binding
		room    string
		want    string
	}{
		"clusters without a share have the workload":     {deployment(1, equally()), "", "a=1 b c"},
		"a workload scaled to nothing stays where it is": {placed(deployment(0, byAvailability()), "a=2 b=1"), "", "a b c"},
		"of the clusters chosen": {deployment(1, upTo(byAvailability(), 1, 2)), "a=1 b=3 c=4",
			"b c=1"},
		"packed":                             {deployment(3, restrictedTo(together(), "a", "b")), "a=3 b=3", "a=3 b"},
		"duplicated it is everywhere anyway": {deployment(2, policyv1alpha1.Placement{}), "", "a=2 b=2 c=2"},
	} {
		t.Run(name, func(t *testing.T) {
			kept := Settings{KeepEmpty: true}.Snapshot(named("a", "b", "c")).Next(named("c", "b", "a"))
			if got := schedule(t, test.binding, kept, room(test.room)); got != test.want {
				t.Fatalf("got %q, want %q", got, test.want)
			}
			placed(test.binding.(*workv1alpha2.ResourceBinding), test.want)
			if reason, due := Due(test.binding, kept); due {
				t.Errorf("due again, because %s", reason)
			}
			if again := schedule(t, test.binding, kept, room("")); again != test.want {
				t.Errorf("a second run gives %q", again)
			}
		})
	}
}

func TestTiesFollowTheWorkloadsUID(t *testing.T) {
	b := deployment(4, equally())
	b.Spec.Resource.UID = oddUID
	if got := schedule(t, b, fleet(named("a", "b", "c")...), nil); got != "a=1 b=1 c=2" {
		t.Errorf("got %q, want the last by name to have the remainder", got)
	}
}

func TestNotEnoughRoom(t *testing.T) {
	s := fleet(named("a", "b")...)
	for name, test := range map[string]struct {
		binding workv1alpha2.Binding
		room    string
		want    string
	}{
		"dynamic weights": {deployment(6, byAvailability()), "a=2 b=3",
			"Clusters available replicas 5 are not enough to schedule."},
		"aggregated": {deployment(6, together()), "a=2 b=3",
			"Clusters available replicas 5 are not enough to schedule."},
		"for what is added": {placed(deployment(6, byAvailability()), "a=2"), "a=1 b=2",
			"Clusters available replicas 3 are not enough to schedule."},
		"rebalanced, with what is there": {rebalanced(placed(deployment(6, byAvailability()), "a=2")), "a=1 b=2",
			"Clusters available replicas 5 are not enough to schedule."},
		"an estimator that says less than 0": {deployment(6, byAvailability()), "a=-7 b=3",
			"Clusters available replicas 3 are not enough to schedule."},
	} {
		t.Run(name, func(t *testing.T) {
			before := targetList(test.binding.BindingSpec().Clusters)
			r, err := Schedule(test.binding, s, room(test.room))
			var unschedulable *UnschedulableError
			if !errors.As(err, &unschedulable) || err.Error() != test.want {
				t.Fatalf("got %v, want %q", err, test.want)
			}
			if got := targetList(r.Clusters); got != before {
				t.Errorf("%q became %q: nothing is moved", before, got)
			}
		})
	}
}

func TestFreshRunAvoidsUnresponsiveClusters(t *testing.T) {
	dead := cluster("a")
	dead.Status.Conditions = append(dead.Status.Conditions, metav1.Condition{Type: clusterv1alpha1.ClusterConditionReady,
		Status: metav1.ConditionFalse})
	s := fleet(dead, cluster("b"), cluster("c"))
	for name, test := range map[string]struct {
		binding workv1alpha2.Binding
		room    string
		want    string
	}{
		"dynamic weights": {rebalanced(placed(deployment(6, byAvailability()), "a=2 b=4")), "b=3 c=1",
			"a=1 b=4 c=1"},
		"aggregated": {rebalanced(placed(deployment(6, together()), "a=2 b=4")), "b=1 c=1",
			"a=2 b=4"},
		"what is there stays where it is": {rebalanced(placed(deployment(6, byAvailability()), "a=6")), "b=0 c=0",
			"a=6"},
		"and goes where there is room": {rebalanced(placed(deployment(6, byAvailability()), "a=6")), "b=3 c=3",
			"a=3 b=2 c=1"},
		"and a run that only adds is no order": {placed(deployment(6, byAvailability()), "a=2 b=2"), "b=0 c=0", "a=4 b=2"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := schedule(t, test.binding, s, room(test.room)); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// world returns a fleet, its room, and a workload that divides its replicas, at random.
func world(r *rand.Rand) (Snapshot, map[string]int32, *workv1alpha2.ResourceBinding) {
	answers := map[string]int32{}
	var names []string
	for i := range 1 + r.IntN(8) {
		name := fmt.Sprintf("c%d", i)
		names = append(names, name)
		if r.IntN(8) > 0 {
			answers[name] = int32(r.IntN(30))
		}
	}
	placements := []policyv1alpha1.Placement{byAvailability(), together(), equally(), byWeight("c0=3 c1=2 c2=1"),
		upTo(byAvailability(), 0, 3), upTo(together(), 1, 2)}
	b := deployment(int32(1+r.IntN(60)), placements[r.IntN(len(placements))])
	b.Spec.Resource.UID = types.UID(fmt.Sprint(r.IntN(10)))
	return fleet(named(shuffled(r, names)...)...), answers, b
}

// take lowers the room by what was placed.
func take(answers map[string]int32, before, after []workv1alpha2.TargetCluster) {
	for _, t := range before {
		if n, known := answers[t.Name]; known {
			answers[t.Name] = n + t.Replicas
		}
	}
	for _, t := range after {
		if n, known := answers[t.Name]; known {
			answers[t.Name] = n - t.Replicas
		}
	}
}

func sum(list []workv1alpha2.TargetCluster) (n int32) {
	for _, t := range list {
		n += t.Replicas
	}
	return n
}

func replicasOf(list []workv1alpha2.TargetCluster, name string) int32 {
	for _, t := range list {
		if t.Name == name {
			return t.Replicas
		}
	}
	return 0
}

// TestScaling walks a workload up and down at random and checks after each step what must always hold.
func TestScaling(t *testing.T) {
	for seed := range uint64(4000) {
		r := rng(seed)
		s, answers, b := world(r)
		byRoom := strategyOf(&b.Spec).byRoom()
		for step := range 6 {
			at := fmt.Sprintf("seed %d, step %d: %d replicas over %q with room %v", seed, step, b.Spec.Replicas,
				targetList(b.Spec.Clusters), answers)
			anew := b.Status.LastScheduledTime != nil && r.IntN(4) == 0
			if anew {
				rebalanced(b)
			}
			before := b.Spec.Clusters
			result, err := Schedule(b, s, Answers(answers))
			if err != nil {
				var room *UnschedulableError
				if spreads(&b.Spec) || errors.As(err, &room) && room.Available < room.Wanted {
					break
				}
				t.Fatalf("%s: %v", at, err)
			}
			after := result.Clusters
			at += fmt.Sprintf(" became %q", targetList(after))
			if sum(after) != b.Spec.Replicas {
				t.Fatalf("%s: the shares add up to %d", at, sum(after))
			}
			for i := 1; i < len(after); i++ {
				if after[i-1].Name >= after[i].Name {
					t.Fatalf("%s: not sorted by name", at)
				}
			}
			for i := range s.members {
				name := s.members[i].cluster.Name
				was, is := replicasOf(before, name), replicasOf(after, name)
				if limit, known := answers[name]; byRoom && known && is > was+limit {
					t.Fatalf("%s: %s has room for %d more", at, name, limit)
				}
				if byRoom && !anew && !spreads(&b.Spec) && sum(before) >= b.Spec.Replicas && is > was {
					t.Fatalf("%s: scaling down raised %s", at, name)
				}
				if byRoom && !anew && !spreads(&b.Spec) && sum(before) <= b.Spec.Replicas && is < was {
					t.Fatalf("%s: scaling up lowered %s", at, name)
				}
			}

			var reordered []*Candidate
			candidates, _ := Feasible(b, s)
			for i := range candidates {
				reordered = append(reordered, &candidates[i])
			}
			var mixed []Candidate
			for _, c := range shuffled(r, reordered) {
				mixed = append(mixed, *c)
			}
			if other, _, err := decide(b, mixed, Answers(answers)); err != nil ||
				targetList(other) != targetList(after) {
				t.Fatalf("%s: candidates in another order give %q (%v)", at, targetList(other), err)
			}

			take(answers, before, after)
			record(b, result, nil, time.Unix(int64(1000*(step+1)), 0))
			b.Spec.RescheduleTriggeredAt = nil
			if reason, due := Due(b, s); due {
				t.Fatalf("%s: due again, because %s", at, reason)
			}
			if again := schedule(t, b, s, Answers(answers)); again != targetList(after) {
				t.Fatalf("%s: a second run gives %q", at, again)
			}
			b.Spec.Replicas = int32(1 + r.IntN(60))
		}
	}
}
