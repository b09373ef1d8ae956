package schedule

import (
	"cmp"
	"slices"
	"strings"
	"sync"
)

// maxScore is the score of a cluster that nothing is preferred to.
const maxScore = 100

// clusterLocality keeps templates where they are.
func clusterLocality(target bool) int32 {
	if target {
		return maxScore
	}
	return 0
}

// rank orders candidates in place: the earlier affinity tier first, then the higher score, then the more room for what
// is there and what is to come, then by name.
func rank(candidates []Candidate) {
	byName := func(a, b Candidate) int { return strings.Compare(a.Cluster.Name, b.Cluster.Name) }
	if !slices.IsSortedFunc(candidates, byName) {
		slices.SortFunc(candidates, byName)
	}
	// What is compared is sorted apart, which is smaller, and the position stands for the name.
	scratch := places.Get().(*[]place)
	defer places.Put(scratch)
	order := (*scratch)[:0]
	for i := range candidates {
		c := &candidates[i]
		order = append(order, place{c.Tier, c.Score, c.holds(), i})
	}
	*scratch = order
	slices.SortFunc(order, func(a, b place) int {
		switch {
		case a.tier != b.tier:
			return cmp.Compare(a.tier, b.tier)
		case a.score != b.score:
			return cmp.Compare(b.score, a.score)
		case a.holds != b.holds:
			return cmp.Compare(b.holds, a.holds)
		}
		return a.at - b.at
	})
	// Each goes to its place, and who was there to its own, until the first one's is reached again.
	for i := range order {
		first := candidates[i]
		for to := i; order[to].at >= 0; {
			from := order[to].at
			order[to].at = -1
			if from == i {
				candidates[to] = first
				break
			}
			candidates[to] = candidates[from]
			to = from
		}
	}
}

// place is where a candidate was, with what it is ranked by.
type place struct {
	tier  int
	score int32
	holds int64
	at    int
}

// places are reused by runs: ranking takes as much as all else of a small one.
var places = sync.Pool{New: func() any { return new([]place) }}

// holds is how many replicas of the binding fit into the cluster altogether.
func (c *Candidate) holds() int64 { return c.Available + int64(c.Assigned) }
