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

// rank sorts candidates in place: by affinity tier, then by score, then by capacity including the current replicas,
// then by name.
func rank(candidates []Candidate) {
	byName := func(a, b Candidate) int { return strings.Compare(a.Cluster.Name, b.Cluster.Name) }
	if !slices.IsSortedFunc(candidates, byName) {
		slices.SortFunc(candidates, byName)
	}
	// Sort small copies of the compared fields; the position breaks ties by name.
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
	// Apply the permutation in place, cycle by cycle.
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

// place is the position of a candidate, with the fields that rank it.
type place struct {
	tier  int
	score int32
	holds int64
	at    int
}

// places are reused by runs: the copies need as much memory as the rest of a small run.
var places = sync.Pool{New: func() any { return new([]place) }}

// holds returns how many replicas of the binding fit into the cluster in total.
func (c *Candidate) holds() int64 { return c.Available + int64(c.Assigned) }
