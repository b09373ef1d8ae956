package schedule

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

// divideNaively returns the division by room as users of Karmada know it, step by step and over all clusters, without
// tiers or spread constraints. ok is false when there is not room enough.
//
//	steady, fewer replicas   what is placed is the weight, and nothing is added
//	steady, more replicas    what is new is divided by the room left, and added
//	fresh                    everything is divided by the room with what is placed counted as free
//	aggregated               the same, over the first clusters by room that suffice; growing, those in use come first
func divideNaively(b *workv1alpha2.ResourceBinding, names []string, answers map[string]int32,
	fresh bool) (want map[string]int32, ok bool) {
	type one struct {
		name           string
		weight, placed int64
	}
	placed, wanted := int64(0), int64(b.Spec.Replicas)
	var all []one
	for _, name := range names {
		c := one{name: name, placed: int64(replicasOf(b.Spec.Clusters, name))}
		placed += c.placed
		all = append(all, c)
	}
	room := func(name string) int64 {
		if n, known := answers[name]; known {
			return int64(max(0, n))
		}
		return int64(b.Spec.Replicas) // unknown is trusted with all that is asked for
	}
	keep := false
	switch {
	case fresh:
		for i := range all {
			all[i].weight = room(all[i].name) + all[i].placed
		}
	case wanted == placed:
		want = map[string]int32{}
		for _, c := range all {
			want[c.name] = int32(c.placed)
		}
		return want, true
	case wanted < placed:
		for i := range all {
			all[i].weight = all[i].placed
		}
	default:
		for i := range all {
			all[i].weight = room(all[i].name)
		}
		wanted, keep = wanted-placed, true
	}
	if b.Spec.Placement.ReplicaScheduling.ReplicaDivisionPreference == policyv1alpha1.ReplicaDivisionPreferenceAggregated {
		slices.SortFunc(all, func(x, y one) int {
			if first := keep && (x.placed > 0) != (y.placed > 0); first && x.placed > 0 {
				return -1
			} else if first {
				return 1
			}
			if x.weight != y.weight {
				return int(y.weight - x.weight)
			}
			return strings.Compare(x.name, y.name)
		})
		var sum int64
		for i := range all {
			if sum >= wanted {
				all[i].weight = 0
			}
			sum += all[i].weight
		}
	}
	var shares []Share
	var sum int64
	for _, c := range all {
		shares = append(shares, Share{Name: c.name, Weight: c.weight})
		sum += c.weight
	}
	if sum < wanted {
		return nil, false
	}
	apportionNaively(int32(wanted), shares, b.Spec.Resource.UID)
	want = map[string]int32{}
	for _, s := range shares {
		want[s.Name] = s.Seats
		if keep {
			want[s.Name] += replicasOf(b.Spec.Clusters, s.Name)
		}
	}
	return want, true
}

func TestDivisionByRoomAgainstItsNaiveTwin(t *testing.T) {
	var divided, refused int
	for seed := range uint64(3000) {
		r := rng(seed)
		s, answers, b := world(r)
		if !strategyOf(&b.Spec).byRoom() {
			continue
		}
		b.Spec.Placement.SpreadConstraints = nil
		names := s.Names()
		for step := range 5 {
			anew := step > 0 && r.IntN(3) == 0
			if b.Spec.RescheduleTriggeredAt = nil; anew {
				rebalanced(b)
			}
			at := fmt.Sprintf("seed %d, step %d: %d replicas over %q with room %v, fresh %v", seed, step, b.Spec.Replicas,
				targetList(b.Spec.Clusters), answers, anew)
			want, ok := divideNaively(b, names, answers, anew)
			result, err := Schedule(b, s, Answers(answers))
			if ok != (err == nil) {
				t.Fatalf("%s: %v, but step by step it works: %v", at, err, ok)
			}
			if !ok {
				refused++
				break
			}
			divided++
			for _, name := range names {
				if got := replicasOf(result.Clusters, name); got != want[name] {
					t.Fatalf("%s: %s has %d, step by step %d", at, name, got, want[name])
				}
			}
			take(answers, b.Spec.Clusters, result.Clusters)
			record(b, result, nil, time.Unix(int64(1000*(step+1)), 0))
			b.Spec.Replicas = int32(1 + r.IntN(60))
		}
	}
	if divided < 2000 || refused < 200 {
		t.Errorf("%d were divided and %d refused: the test looks at one side only", divided, refused)
	}
}

// TestNothingMovesWithoutAReason: clusters outside the targets join, leave and change, room changes, and targets get
// taints that do not evict and unused labels. None of that makes a placement due, and a run removes no replica.
func TestNothingMovesWithoutAReason(t *testing.T) {
	var looked int
	for seed := range uint64(4000) {
		r := rng(seed)
		clusters, answers, b := spreadWorld(r)
		result, err := Schedule(b, fleet(clusters...), Answers(answers))
		if err != nil {
			continue
		}
		record(b, result, nil, time.Unix(100, 0))
		take(answers, nil, result.Clusters)
		strategy := strategyOf(&b.Spec)
		at := fmt.Sprintf("seed %d: %d replicas by %s in %q", seed, b.Spec.Replicas, AppliedPlacement(b.Spec.Placement),
			targetList(result.Clusters))

		for i := 0; i < len(clusters); i++ {
			c := clusters[i].DeepCopy()
			clusters[i] = c
			target := workv1alpha2.HasTarget(result.Clusters, c.Name)
			switch r.IntN(5) {
			case 0:
				tainted("full", corev1.TaintEffectNoSchedule)(c)
				at += "; " + c.Name + " tainted"
			case 1:
				labelled("noise", fmt.Sprint(seed))(c)
			case 2:
				if !target {
					at += "; " + c.Name + " gone"
					clusters = slices.Delete(clusters, i, i+1)
					i--
				}
			case 3:
				answers[c.Name] = int32(r.IntN(40))
			}
		}
		if r.IntN(2) == 0 {
			clusters = append(clusters, cluster("new", located("p1", "r1", "z1"), labelled("rack", "1")))
			at += "; new joined"
		}
		s := fleet(clusters...)
		if reason, due := Due(b, s); due && strategy.divided() {
			t.Fatalf("%s: due, because %s", at, reason)
		}
		if strategy == static {
			continue // is shared out anew whenever there is a reason to run at all
		}
		next, err := Schedule(b, s, Answers(answers))
		if strategy.divided() && slices.ContainsFunc(b.Spec.Placement.SpreadConstraints,
			func(c policyv1alpha1.SpreadConstraint) bool { return c.MinGroups > int(b.Spec.Replicas) }) {
			continue // few replicas are in fewer clusters than had to fit, and that one of these is gone is a reason
		}
		if err != nil {
			t.Fatalf("%s: fails: %v (%s)", at, err, Help(err))
		}
		looked++
		for _, was := range result.Clusters {
			if !slices.ContainsFunc(next.Clusters, func(is workv1alpha2.TargetCluster) bool {
				return is.Name == was.Name && is.Replicas >= was.Replicas
			}) {
				t.Fatalf("%s: became %q", at, targetList(next.Clusters))
			}
		}
	}
	if looked < 1000 {
		t.Errorf("only %d worlds were looked at", looked)
	}
}
