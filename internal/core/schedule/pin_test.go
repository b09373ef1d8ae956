package schedule

import (
	"testing"

	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

// pinnedTo returns the binding of a Deployment placed as listed, of which the template asks for fewer, and names where
// they go.
func pinnedTo(b *workv1alpha2.ResourceBinding, list, leave string, replicas int32) *workv1alpha2.ResourceBinding {
	placed(b, list)
	b.Spec.Replicas = replicas
	leaving := map[string]int32{}
	for _, t := range targets(leave) {
		leaving[t.Name] = t.Replicas
	}
	SetPin(b, leaving)
	return b
}

func TestNamedReplicasLeaveTheirOwnClusters(t *testing.T) {
	three := fleet(named("a", "b", "c")...)
	again := pinnedTo(deployment(9, equally()), "a=3 b=3 c=3", "c=1", 8)
	again.Spec.Replicas = 7 // somebody else's change
	stale := pinnedTo(deployment(9, equally()), "a=3 b=3 c=3", "c=1", 8)
	stale.Spec.Clusters = targets("a=3 b=3 c=2") // it was carried out
	broken := placed(deployment(8, equally()), "a=3 b=3 c=3")
	broken.Annotations[wellknown.PinnedScaleDownAnnotation] = "{"
	for name, test := range map[string]struct {
		binding workv1alpha2.Binding
		want    string
	}{
		"one, against the order of ties": {pinnedTo(deployment(9, equally()), "a=3 b=3 c=3", "a=1", 8),
			"a=2 b=3 c=3"},
		"all of one cluster": {pinnedTo(deployment(9, equally()), "a=3 b=3 c=3", "b=3", 6),
			"a=3 c=3"},
		"by room": {pinnedTo(deployment(9, byAvailability()), "a=6 b=2 c=1", "c=1 b=1",
			7), "a=6 b=1"},
		"together in few clusters": {pinnedTo(deployment(9, together()), "a=8 b=1", "b=1", 8), "a=8"},
		"the rest goes in proportion to what is left": {pinnedTo(deployment(9, equally()), "a=3 b=3 c=3", "a=1", 4),
			"a=1 b=2 c=1"},
		"without a pin, by weight": {pinnedTo(deployment(9, equally()), "a=3 b=3 c=3", "", 8),
			"a=3 b=3 c=2"},
		"a pin of another change says nothing":  {again, "a=3 b=2 c=2"},
		"one that was carried out says nothing": {stale, "a=3 b=3 c=2"},
		"a cluster that has not as many": {pinnedTo(deployment(9, equally()), "a=3 b=3 c=3", "a=4", 5),
			"a=2 b=2 c=1"},
		"a cluster that is gone": {pinnedTo(deployment(9, equally()), "a=3 b=3 gone=3", "gone=1", 8),
			"a=3 b=3 c=2"},
		"when all may move, nothing is pinned": {rebalanced(pinnedTo(deployment(9, equally()), "a=3 b=3 c=3", "a=1",
			8)), "a=3 b=3 c=2"},
		"an annotation that somebody broke says nothing": {broken, "a=3 b=3 c=2"},
		"in one cluster alone": {pinnedTo(deployment(9, restrictedTo(equally(), "a")), "a=9", "a=1", 8),
			"a=8"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := schedule(t, test.binding, three, room("a=9 b=9 c=9")); got != test.want {
				t.Errorf("placed is %s, want %s", got, test.want)
			}
		})
	}
}

// For any number and any names: the sum is right, no cluster gains, and named clusters lose at least what was named.
func TestAPinnedScaleDownIsExactAndMovesNothing(t *testing.T) {
	three := fleet(named("a", "b", "c")...)
	for seed := range uint64(300) {
		r := rng(seed)
		has := targets("a=1 b=1 c=1")
		var all int32
		for i := range has {
			has[i].Replicas += r.Int32N(9)
			all += has[i].Replicas
		}
		var leave []workv1alpha2.TargetCluster
		var named int32
		for _, h := range has {
			if n := r.Int32N(h.Replicas + 1); n > 0 {
				leave = append(leave, workv1alpha2.TargetCluster{Name: h.Name, Replicas: n})
				named += n
			}
		}
		to := r.Int32N(all - named + 1)
		if to == 0 {
			continue
		}
		got := targets(schedule(t, pinnedTo(deployment(all, byAvailability()), targetList(has), targetList(leave), to), three,
			room("a=9 b=9 c=9")))
		left := map[string]int32{}
		var sum int32
		for _, g := range got {
			left[g.Name] = g.Replicas
			sum += g.Replicas
		}
		if sum != to {
			t.Fatalf("seed %d: %v are %d, want %d", seed, got, sum, to)
		}
		for _, h := range has {
			most := h.Replicas
			for _, l := range leave {
				if l.Name == h.Name {
					most -= l.Replicas
				}
			}
			if left[h.Name] > most {
				t.Fatalf("seed %d: %s has %d of %d, of which %v go", seed, h.Name, left[h.Name], h.Replicas, leave)
			}
		}
	}
}
