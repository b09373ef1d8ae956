package schedule

import (
	"testing"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

// scaledTo returns the binding of a Deployment of as many replicas, placed as listed, that autoscalers of the members
// have scaled.
func scaledTo(b *workv1alpha2.ResourceBinding, list, made string, replicas int32) *workv1alpha2.ResourceBinding {
	placed(b, list)
	b.Spec.Replicas = replicas
	has := map[string]int32{}
	for _, t := range targets(made) {
		has[t.Name] = t.Replicas
	}
	SetScaled(b, "web", has)
	return b
}

func TestReplicasFollowTheMembersAutoscalers(t *testing.T) {
	three := fleet(named("a", "b", "c")...)
	weight := func(name string, n int64) policyv1alpha1.StaticClusterWeight {
		return policyv1alpha1.StaticClusterWeight{TargetCluster: policyv1alpha1.ClusterAffinity{ClusterNames: []string{name}},
			Weight: n}
	}
	toTwo := divided(policyv1alpha1.ReplicaDivisionPreferenceWeighted, &policyv1alpha1.ClusterPreferences{
		StaticWeightList: []policyv1alpha1.StaticClusterWeight{weight("a", 1), weight("b", 1), weight("c", 0)}})
	forgotten := scaledTo(deployment(9, equally()), "a=3 b=3 c=3", "a=7 b=1 c=1", 9)
	SetScaled(forgotten, "", nil)
	forgotten.Spec.Replicas = 12
	broken := placed(deployment(8, equally()), "a=3 b=3 c=3")
	broken.Annotations[wellknown.ScaledByMembersAnnotation] = "{"
	for name, test := range map[string]struct {
		binding workv1alpha2.Binding
		want    string
	}{
		"more, in one cluster": {scaledTo(deployment(9, equally()), "a=3 b=3 c=3", "a=7 b=3 c=3", 13),
			"a=7 b=3 c=3"},
		"fewer, against the weights": {scaledTo(deployment(9, equally()), "a=3 b=3 c=3", "a=1 b=1 c=3", 5),
			"a=1 b=1 c=3"},
		"more than there is room for": {scaledTo(deployment(9, byAvailability()), "a=3 b=3 c=3",
			"a=30 b=3 c=3", 36), "a=30 b=3 c=3"},
		"of another number of replicas nothing said": {scaledTo(deployment(9, equally()), "a=3 b=3 c=3", "a=7 b=3 c=3", 12),
			"a=4 b=4 c=4"},
		"in a cluster that is gone": {scaledTo(deployment(9, equally()), "a=3 b=3 gone=3", "a=3 b=3 gone=6",
			12), "a=4 b=4 c=4"},
		"when all may move": {rebalanced(scaledTo(deployment(9, equally()), "a=3 b=3 c=3",
			"a=10 b=1 c=1", 12)), "a=4 b=4 c=4"},
		"when the hub scales again": {forgotten, "a=4 b=4 c=4"},
		"with a cluster that has joined": {scaledTo(deployment(6, equally()), "a=3 b=3", "a=5 b=1", 6),
			"a=2 b=2 c=2"},
		"one that got none before keeps none": {scaledTo(deployment(6, equally()), "a=3 b=3", "a=5 b=1 c=0", 6),
			"a=5 b=1"},
		"one that got none and is gone": {scaledTo(deployment(6, restrictedTo(equally(), "a", "b")), "a=3 b=3",
			"a=5 b=1 c=0", 6), "a=5 b=1"},
		"one that has no weight does not join": {scaledTo(deployment(6, toTwo), "a=3 b=3", "a=5 b=1", 6), "a=5 b=1"},
		"an annotation that somebody broke":    {broken, "a=3 b=3 c=2"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := schedule(t, test.binding, three, room("a=9 b=9 c=9")); got != test.want {
				t.Errorf("placed is %s, want %s", got, test.want)
			}
		})
	}
}

func TestJoinedClustersGetReplicasOnce(t *testing.T) {
	fleet := fleet(named("a", "b", "c", "d", "e")...)
	// One replica was in a, where an autoscaler scaled up to three: the other clusters join, and two of them get some.
	b := scaledTo(deployment(1, equally()), "a=1", "a=3", 3)
	run := func() Result {
		t.Helper()
		r, err := Schedule(b, fleet, room(""))
		if err != nil {
			t.Fatal(err)
		}
		record(b, r, nil, b.Status.LastScheduledTime.Add(1))
		if r.Scaled != "" {
			b.Annotations[wellknown.ScaledByMembersAnnotation] = r.Scaled
		}
		return r
	}
	if r := run(); targetList(r.Clusters) != "a=1 b=1 c=1" || r.Scaled != `{"a":3,"b":1,"c":1,"d":0,"e":0}` {
		t.Fatalf("placed is %s, and the annotation becomes %s", targetList(r.Clusters), r.Scaled)
	}
	if reason, due := Due(b, fleet); due {
		t.Errorf("it is due again: %s", reason)
	}
	// a keeps the replicas of its autoscaler, and the template follows: no other cluster joins.
	SetScaled(b, "web", map[string]int32{"a": 3, "b": 1, "c": 1})
	b.Spec.Replicas = 5
	if r := run(); targetList(r.Clusters) != "a=3 b=1 c=1" || r.Scaled != "" {
		t.Errorf("placed is %s, and the annotation becomes %s", targetList(r.Clusters), r.Scaled)
	}
}

func TestReplicasMovedBetweenMembersAreFollowed(t *testing.T) {
	two := fleet(named("a", "b")...)
	for name, test := range map[string]struct {
		binding workv1alpha2.Binding
		want    Reason
	}{
		"as many as before, elsewhere":   {scaledTo(deployment(10, equally()), "a=5 b=5", "a=8 b=2", 10), ScaledElsewhere},
		"where they are":                 {scaledTo(deployment(10, equally()), "a=8 b=2", "a=8 b=2", 10), notDue},
		"of another number nothing said": {scaledTo(deployment(10, equally()), "a=5 b=5", "a=8 b=3", 10), notDue},
		"in a cluster that has none":     {scaledTo(deployment(10, equally()), "a=5 b=5", "a=8 gone=2", 10), notDue},
		"nobody scales":                  {placed(deployment(10, equally()), "a=5 b=5"), notDue},
	} {
		if got, _ := Due(test.binding, two); got != test.want {
			t.Errorf("%s: due because %q, want %q", name, got, test.want)
		}
	}
}
