package schedule

import (
	"errors"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

func TestOurs(t *testing.T) {
	type binding = *workv1alpha2.ResourceBinding
	yes := true
	for name, test := range map[string]struct {
		change func(binding)
		want   bool
	}{
		"a policy's binding": {func(binding) {}, true},
		"a cluster policy's": {func(b binding) {
			b.Labels = map[string]string{policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel: "id"}
		}, true},
		"another component's": {func(b binding) {
			b.Labels = map[string]string{workv1alpha2.BindingManagedByLabel: "MultiClusterService"}
		}, true},
		"nobody's":       {func(b binding) { b.Labels = nil }, false},
		"a dependency's": {func(b binding) { b.Spec.Placement = nil }, false},
		"one that names the scheduler": {func(b binding) { b.Spec.SchedulerName = policyv1alpha1.DefaultSchedulerName },
			true},
		"one that names another scheduler": {func(b binding) { b.Spec.SchedulerName = "batch" }, false},
		"one whose scheduling is suspended": {func(b binding) {
			b.Spec.Suspension = &workv1alpha2.Suspension{
				Scheduling: &yes}
		}, false},
		"one whose dispatching is suspended": {func(b binding) {
			b.Spec.Suspension = &workv1alpha2.Suspension{Suspension: policyv1alpha1.Suspension{Dispatching: &yes}}
		}, true},
		"one that is being deleted": {func(b binding) { b.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := deployment(1, policyv1alpha1.Placement{})
			test.change(b)
			if got := PlacedBy(b, policyv1alpha1.DefaultSchedulerName); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
	if PlacedBy(deployment(1, policyv1alpha1.Placement{}), "batch") {
		t.Error("a binding without a scheduler's name belongs to the default scheduler only")
	}
}

func TestAffinityTerms(t *testing.T) {
	terms := func(p policyv1alpha1.Placement) policyv1alpha1.Placement {
		p.ClusterAffinities = []policyv1alpha1.ClusterAffinityTerm{
			{AffinityName: "own", ClusterAffinity: policyv1alpha1.ClusterAffinity{ClusterNames: []string{"a"}}},
			{AffinityName: "rented", ClusterAffinity: policyv1alpha1.ClusterAffinity{ClusterNames: []string{"b"}}},
			{AffinityName: "cloud", ClusterAffinity: policyv1alpha1.ClusterAffinity{ClusterNames: []string{"c"}}},
		}
		return p
	}
	using := func(b *workv1alpha2.ResourceBinding, name string) *workv1alpha2.ResourceBinding {
		b.Status.SchedulerObservedAffinityName = name
		return b
	}
	down := tainted("down", corev1.TaintEffectNoSchedule)
	all := []*clusterv1alpha1.Cluster{cluster("a"), cluster("b"), cluster("c")}
	withoutA := []*clusterv1alpha1.Cluster{cluster("a", down), cluster("b"), cluster("c")}
	none := []*clusterv1alpha1.Cluster{cluster("a", down), cluster("b", down), cluster("c", down)}

	for name, test := range map[string]struct {
		binding        *workv1alpha2.ResourceBinding
		clusters       []*clusterv1alpha1.Cluster
		room           string
		want, wantTerm string
		reason         string
	}{
		"the first that can be satisfied": {configMap(terms(policyv1alpha1.Placement{})), all, "", "a",
			"own", "Success"},
		"the next, when the first has no cluster": {configMap(terms(policyv1alpha1.Placement{})), withoutA, "",
			"b", "rented", "Success"},
		"the next, when the first has no room": {deployment(5, terms(byAvailability())), all, "a=1 b=1 c=9",
			"c=5", "cloud", "Success"},
		"it starts at the term in use and does not look back": {using(placed(configMap(terms(policyv1alpha1.Placement{})),
			"b"), "rented"), all, "", "b", "rented", "Success"},
		"a rebalancing starts over": {rebalanced(
			using(placed(configMap(terms(policyv1alpha1.Placement{})), "b"), "rented")), all, "", "a", "own", "Success"},
		"a term that was removed starts over": {using(placed(configMap(terms(policyv1alpha1.Placement{})),
			"b"), "leased"), all, "", "a", "own", "Success"},
		"none: the error is the first one's": {configMap(terms(policyv1alpha1.Placement{})), none, "", "",
			"", "NoClusterFit"},
		"none has room: what is placed stays": {placed(deployment(5, terms(byAvailability())), "a=2"), all,
			"a=1 b=1 c=1", "a=2", "", "Unschedulable"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := Schedule(test.binding, fleet(test.clusters...), room(test.room))
			if got := Condition(err).Reason; got != test.reason {
				t.Fatalf("reason %s (%v), want %s", got, err, test.reason)
			}
			if targetList(r.Clusters) != test.want || r.AffinityName != test.wantTerm {
				t.Errorf("%q by %q, want %q by %q", targetList(r.Clusters), r.AffinityName, test.want, test.wantTerm)
			}
		})
	}
}

func TestTheMoreUrgentComesFirst(t *testing.T) {
	var want, got []string
	var list []workv1alpha2.Binding
	for _, w := range []struct {
		name     string
		priority int32
		created  int64
	}{{"high", 100, 9}, {"old", 0, 1}, {"a", 0, 5}, {"b", 0, 5}, {"low", -1, 0}} {
		b := deployment(1, policyv1alpha1.Placement{})
		b.Name, b.CreationTimestamp = w.name, metav1.Unix(w.created, 0)
		if w.priority != 0 {
			b.Spec.SchedulePriority = &workv1alpha2.SchedulePriority{Priority: w.priority}
		}
		list, want = append(list, b), append(want, w.name)
	}
	for seed := range uint64(50) {
		mixed := shuffled(rng(seed), list)
		slices.SortFunc(mixed, Urgency)
		got = nil
		for _, b := range mixed {
			got = append(got, b.GetName())
		}
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d: %v, want %v", seed, got, want)
		}
	}
}

// TestStandbyIsUntouchedWhileTheActiveOnesFit: for any placement and room, what goes to the standby clusters is nothing
// as long as a run over the active ones alone succeeds, and the result is then that run's.
func TestStandbyIsUntouchedWhileTheActiveOnesFit(t *testing.T) {
	var fits, fails int
	for seed := range uint64(3000) {
		r := rng(seed)
		clusters, answers, b := spreadWorld(r)
		if len(clusters) < 2 {
			continue
		}
		var names []string
		for _, c := range clusters {
			if names = append(names, c.Name); r.IntN(5) == 0 {
				tainted("down", corev1.TaintEffectNoSchedule)(c)
			}
		}
		cut := 1 + r.IntN(len(names)-1)
		active, standby := policyv1alpha1.ClusterAffinity{ClusterNames: names[:cut]},
			policyv1alpha1.ClusterAffinity{ClusterNames: names[cut:]}
		alone := b.DeepCopy()
		alone.Spec.Placement.ClusterAffinity = &active
		b.Spec.Placement.ClusterAffinities = []policyv1alpha1.ClusterAffinityTerm{
			{AffinityName: "active", ClusterAffinity: active}, {AffinityName: "standby", ClusterAffinity: standby},
		}
		s := fleet(clusters...)
		want, wantErr := Schedule(alone, s, Answers(answers))
		got, err := Schedule(b, s, Answers(answers))
		if wantErr == nil {
			fits++
			if err != nil || targetList(got.Clusters) != targetList(want.Clusters) || got.AffinityName != "active" {
				t.Fatalf("seed %d: %q by %q (%v), though the active clusters alone give %q", seed, targetList(got.Clusters),
					got.AffinityName, err, targetList(want.Clusters))
			}
			continue
		}
		fails++
		for _, target := range got.Clusters {
			if err == nil && !slices.Contains(standby.ClusterNames, target.Name) {
				t.Fatalf("seed %d: %q, though the active clusters cannot: %v", seed, targetList(got.Clusters), wantErr)
			}
		}
	}
	if fits < 500 || fails < 500 {
		t.Errorf("the active clusters fitted %d times and did not %d times", fits, fails)
	}
}

func TestFailedRunKeepsResult(t *testing.T) {
	t.Run("nothing, when nothing fits", func(t *testing.T) {
		r, err := Schedule(placed(configMap(restrictedTo(policyv1alpha1.Placement{}, "x")), "a"), fleet(named("a")...), nil)
		if c := Condition(err); len(r.Clusters) != 0 || c.Reason != workv1alpha2.ReasonNoClusterFit ||
			c.Status != metav1.ConditionFalse {
			t.Errorf("%q with %v", targetList(r.Clusters), c)
		}
	})
	t.Run("what was there, without clusters that left, when there is no room", func(t *testing.T) {
		r, err := Schedule(placed(deployment(9, byAvailability()), "a=2 gone=3"), fleet(named("a")...), room("a=1"))
		if c := Condition(err); targetList(r.Clusters) != "a=2" || c.Reason != workv1alpha2.ReasonUnschedulable {
			t.Errorf("%q with %v", targetList(r.Clusters), c)
		}
	})
	t.Run("no candidates", func(t *testing.T) {
		if _, _, err := decide(configMap(policyv1alpha1.Placement{}), nil, nil); !errors.Is(err, errNoClusters) {
			t.Errorf("got %v", err)
		}
	})
}

func TestBothScopesAreScheduledAlike(t *testing.T) {
	namespaced := deployment(5, byWeight("a=2 b=1"))
	clusterScoped := &workv1alpha2.ClusterResourceBinding{ObjectMeta: namespaced.ObjectMeta, Spec: namespaced.Spec}
	clusterScoped.Namespace = ""
	s := fleet(named("a", "b")...)
	if one, other := schedule(t, namespaced, s, nil), schedule(t, clusterScoped, s, nil); one != other {
		t.Errorf("%q and %q", one, other)
	}
}

func TestRunDoesNotChangeItsInput(t *testing.T) {
	b := placed(deployment(9, upTo(byAvailability(), 1, 2)), "b=2 a=1")
	before := b.DeepCopy()
	clusters := named("c", "b", "a", "d")
	s := fleet(clusters...)
	schedule(t, b, s, room("a=5 b=1 c=9 d=9"))
	if targetList(b.Spec.Clusters) != targetList(before.Spec.Clusters) {
		t.Errorf("the binding's clusters became %q", targetList(b.Spec.Clusters))
	}
	if clusters[0].Name != "c" {
		t.Error("the list of clusters was sorted in place")
	}
}
