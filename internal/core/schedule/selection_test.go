package schedule

import (
	"fmt"
	"slices"
	"testing"
)

// TestSubsetsComeBestFirstAndOnceEach: as many as are looked at, in the order of what they are worth together.
func TestSubsetsComeBestFirstAndOnceEach(t *testing.T) {
	for seed := range uint64(500) {
		r := rng(seed)
		all := make([]group, 1+r.IntN(9))
		for i := range all {
			all[i] = group{number: i, name: fmt.Sprint(i),
				merit: merit{used: r.IntN(2), tier: r.IntN(2), score: int64(r.IntN(4)), clusters: 1 + r.IntN(3)}}
		}
		slices.SortFunc(all, func(a, b group) int { return prefers(a.merit, b.merit) })
		n := 1 + r.IntN(len(all))
		want := 1
		for i := range n { // n of all
			want = want * (len(all) - i) / (i + 1)
		}
		seen := map[string]bool{}
		var before *merit
		for subset := range subsets(all, n) {
			var together merit
			var key string
			for i := range subset {
				together = together.plus(subset[i].merit)
				key += subset[i].name + " "
			}
			if len(subset) != n || seen[key] {
				t.Fatalf("seed %d: %s of %d groups comes a second time", seed, key, n)
			}
			if before != nil && prefers(*before, together) > 0 {
				t.Fatalf("seed %d: %s, worth %+v, comes after what is worth %+v", seed, key, together, *before)
			}
			seen[key], before = true, &together
		}
		if len(seen) != min(want, maxSubsets+1) {
			t.Fatalf("seed %d: %d sets of %d of %d groups, want %d", seed, len(seen), n, len(all), want)
		}
	}
}

// Groups that a search skips because of their bounds have no choice of clusters that satisfies the constraints.
func TestSkippedGroupsHaveNoSolution(t *testing.T) {
	var passed, hopeless int
	for seed := range uint64(6000) {
		r := rng(seed)
		clusters, answers, b := spreadWorld(r)
		candidates, _ := Feasible(b, fleet(clusters...))
		limits := boundsOf(b.Spec.Placement)
		if len(limits.groupings) == 0 || len(candidates) == 0 {
			continue
		}
		if strategyOf(&b.Spec) == static {
			candidates = weighted(&b.Spec, candidates)
		} else {
			estimate(&b.Spec, candidates, Answers(answers))
		}
		rank(candidates)
		s := newSelection(&b.Spec, limits, candidates, false)
		everything := make([]int, len(candidates))
		for i := range everything {
			everything[i] = i
		}
		all := s.groups(0, everything)
		if len(all) == 0 {
			continue
		}
		limit := s.ceiling(0, all)
		check := func(subset []group, what string) {
			if chosen := anyChoice(s, s.within(0, everything, subset)); chosen != nil {
				t.Fatalf("seed %d: %s is passed over, though %v of %s would do, by %s", seed, what, chosen,
					targetList(uniformTargets(candidates, 0)), AppliedPlacement(b.Spec.Placement))
			}
		}
		subset := slices.DeleteFunc(slices.Clone(all), func(group) bool { return r.IntN(2) == 0 })
		if len(subset) > 0 && !limit.allows(subset) {
			passed++
			check(subset, fmt.Sprintf("a set of %d groups", len(subset)))
		}
		if n := 1 + r.IntN(len(all)); limit.hopeless(all, n) {
			hopeless++
			for set := range 1 << len(all) {
				var subset []group
				for i := range all {
					if set&(1<<i) != 0 {
						subset = append(subset, all[i])
					}
				}
				if len(subset) == n {
					check(subset, fmt.Sprintf("every set of %d groups", n))
				}
			}
		}
	}
	if passed < 300 || hopeless < 200 {
		t.Errorf("only %d sets and %d times all sets were passed over", passed, hopeless)
	}
}

// anyChoice returns a choice of the members that satisfies all constraints; nil if there is none.
func anyChoice(s *selection, members []int) []int {
	for set := 1; set < 1<<len(members); set++ {
		var chosen []int
		for i, m := range members {
			if set&(1<<i) != 0 {
				chosen = append(chosen, m)
			}
		}
		if (s.clusters.MaxGroups == 0 || len(chosen) <= s.clusters.MaxGroups) && s.holds(chosen) {
			return chosen
		}
	}
	return nil
}

// TestRankIsTheOrderOfItsContract: whatever order candidates come in.
func TestRankIsTheOrderOfItsContract(t *testing.T) {
	before := func(a, b Candidate) bool {
		switch {
		case a.Tier != b.Tier:
			return a.Tier < b.Tier
		case a.Score != b.Score:
			return a.Score > b.Score
		case a.holds() != b.holds():
			return a.holds() > b.holds()
		}
		return a.Cluster.Name < b.Cluster.Name
	}
	for seed := range uint64(300) {
		r := rng(seed)
		var list []Candidate
		for i := range 1 + r.IntN(30) {
			list = append(list, Candidate{Cluster: cluster(fmt.Sprintf("c%02d", i)), Tier: r.IntN(2),
				Score: int32(r.IntN(2) * maxScore), Available: int64(r.IntN(3)), Assigned: int32(r.IntN(2))})
		}
		if r.IntN(2) == 0 {
			list = shuffled(r, list)
		}
		rank(list)
		for i := 1; i < len(list); i++ {
			if !before(list[i-1], list[i]) {
				t.Fatalf("seed %d: %+v before %+v", seed, list[i-1], list[i])
			}
		}
	}
}
