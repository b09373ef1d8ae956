package schedule

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

// TestDifferencesFromKarmada lists where Karmada's scheduler has unwanted behaviour, each with ours and the reason.
// All else should be the same: see TestDivisionByRoomAgainstItsNaiveTwin.
func TestDifferencesFromKarmada(t *testing.T) {
	none := policyv1alpha1.Placement{}
	s := fleet(
		cluster("a", located("acme", "eu", "eu-1"), labelled("rack", "1")),
		cluster("b", located("acme", "eu", "eu-2"), labelled("rack", "1")),
		cluster("c", located("zeta", "us", "us-1"), labelled("rack", "2")),
	)

	t.Run("maxGroups unset is no limit", func(t *testing.T) {
		// There it chooses min(clusters, 0), so that what its own defaulting lets through fits nowhere.
		for what, test := range map[string]struct {
			b    workv1alpha2.Binding
			want string
		}{
			"duplicated":     {configMap(upTo(none, 1, 0)), "a b c"},
			"by room":        {deployment(6, upTo(byAvailability(), 1, 0)), "a=2 b=2 c=2"},
			"aggregated":     {deployment(6, upTo(together(), 1, 0)), "a=6"},
			"regions":        {configMap(spreadBy(none, "region", 1, 0)), "a b c"},
			"regions needed": {deployment(6, spreadBy(together(), "region", 2, 0)), "a=5 c=1"},
		} {
			if got := schedule(t, test.b, s, nil); got != test.want {
				t.Errorf("%s: got %q, want %q", what, got, test.want)
			}
		}
	})
	t.Run("zones, providers and labels spread, and are not ignored or refused", func(t *testing.T) {
		// Karmada validates zone and provider but ignores them, and spreadByLabel fails only in the scheduler.
		for what, want := range map[string]string{"zone": "a b", "provider": "a c", "rack": "a c"} {
			if got := schedule(t, configMap(upTo(spreadBy(none, what, 2, 2), 2, 2)), s, nil); got != want {
				t.Errorf("by %s: got %q, want %q", what, got, want)
			}
		}
	})
	t.Run("constraints hold beside static weights", func(t *testing.T) {
		// There they are ignored, so that "at most one region" is three, and "at least two" may be one.
		if got := schedule(t, deployment(6, spreadBy(byWeight("a=3 b=2 c=1"), "region", 1, 1)), s, nil); got != "a=4 b=2" {
			t.Errorf("at most one region: got %q", got)
		}
		if got := schedule(t, deployment(2, spreadBy(byWeight("a=9 b=9 c=1"), "region", 2, 2)), s, nil); got != "a=1 c=1" {
			t.Errorf("at least two regions: got %q", got)
		}
	})
	t.Run("minGroups holds in the result", func(t *testing.T) {
		// There two regions are chosen, and packing then leaves one of them without a replica.
		if got := schedule(t, deployment(6, spreadBy(together(), "region", 2, 2)), s, room("a=9 b=9 c=9")); got != "a=5 c=1" {
			t.Errorf("got %q", got)
		}
	})
	t.Run("a cluster that cannot say what room it has makes only itself unknown", func(t *testing.T) {
		// In Karmada, one failing estimator discards the answers of the others.
		estimators := Least(room("a=1 b=2"), room("b=7 c=9"))
		if got := schedule(t, deployment(12, byAvailability()), s, estimators); got != "a=1 b=2 c=9" {
			t.Errorf("got %q", got)
		}
	})
	t.Run("room, labels and fields that change wake who waits for them at once", func(t *testing.T) {
		// There what found no room waits for five minutes, and a label taken away is not seen.
		waits := deployment(9, byAvailability())
		record(waits, Result{}, &UnschedulableError{}, time.Unix(100, 0))
		if !Affects(waits, cluster("a", free("cpu=1")), cluster("a", free("cpu=9")), Plugins{}) {
			t.Error("room that appears wakes nobody")
		}
		p := policyv1alpha1.Placement{ClusterAffinity: &policyv1alpha1.ClusterAffinity{LabelSelector: &metav1.LabelSelector{
			MatchLabels: map[string]string{"rack": "1"}}}}
		b := placed(configMap(p), "a b")
		if !Affects(b, cluster("b", labelled("rack", "1")), cluster("b"), Plugins{}) {
			t.Error("a label taken away wakes nobody")
		}
		if _, due := Due(b, fleet(cluster("a", labelled("rack", "1")), cluster("b"))); !due {
			t.Error("a target without its label is left there")
		}
	})
	t.Run("what was just written is not scheduled again", func(t *testing.T) {
		// There the write of a duplicated workload's clusters starts a second whole run, and a third write.
		for _, b := range []workv1alpha2.Binding{placed(configMap(none), "a b c"), placed(deployment(2, none), "a=2 b=2 c=2"),
			placed(deployment(2, equally()), "a=1 b=1")} {
			if reason, due := Due(b, s); due {
				t.Errorf("%s is due, because %s", AppliedPlacement(b.BindingSpec().Placement), reason)
			}
		}
	})
	t.Run("amounts are of one unit, however they are written", func(t *testing.T) {
		// There thousandths of decimal quantities are compared with units of binary ones.
		big := fleet(cluster("a", free("cpu=2 memory=2Gi example.com/disk=10")))
		for _, requests := range []string{"cpu=200m memory=100Mi", "cpu=0.2 memory=104857600",
			"cpu=100m memory=214748364000m", "example.com/disk=1", "example.com/disk=1000m"} {
			b := deployment(1, byAvailability())
			b.Spec.ReplicaRequirements = &workv1alpha2.ReplicaRequirements{ResourceRequest: quantities(requests)}
			if n, known := big.Room(b)("a"); n != 10 || !known {
				t.Errorf("%s: room for %d, want 10", requests, n)
			}
		}
	})
	t.Run("several components need no constraint to one cluster", func(t *testing.T) {
		// There a workload with several components is refused unless it goes to exactly one.
		if got := schedule(t, components(deployment(0, none)), s, nil); got != "a b c" {
			t.Errorf("got %q", got)
		}
	})
}

// TestARebalancingStartsAtTheFirstAffinity, and so does nothing else: what moved to the second stays there, as in
// Karmada.
func TestARebalancingStartsAtTheFirstAffinity(t *testing.T) {
	p := byAvailability()
	for _, name := range []string{"a", "b"} {
		p.ClusterAffinities = append(p.ClusterAffinities, policyv1alpha1.ClusterAffinityTerm{AffinityName: "in-" + name,
			ClusterAffinity: policyv1alpha1.ClusterAffinity{ClusterNames: []string{name}}})
	}
	s := fleet(named("a", "b")...)
	b := placed(deployment(4, p), "b=4")
	b.Status.SchedulerObservedAffinityName = "in-b"
	b.Spec.Replicas = 6
	r, err := Schedule(b, s, room("a=99 b=99"))
	if err != nil || targetList(r.Clusters) != "b=6" || r.AffinityName != "in-b" {
		t.Errorf("scaled: %q by %q (%v), want b=6 by in-b", targetList(r.Clusters), r.AffinityName, err)
	}
	r, err = Schedule(rebalanced(b), s, room("a=99 b=99"))
	if err != nil || targetList(r.Clusters) != "a=6" || r.AffinityName != "in-a" {
		t.Errorf("rebalanced: %q by %q (%v), want a=6 by in-a", targetList(r.Clusters), r.AffinityName, err)
	}
	r, err = Schedule(rebalanced(b), s, room("a=3 b=99"))
	if err != nil || targetList(r.Clusters) != "b=6" || r.AffinityName != "in-b" {
		t.Errorf("rebalanced without room: %q by %q (%v), want b=6 by in-b", targetList(r.Clusters), r.AffinityName, err)
	}
}
