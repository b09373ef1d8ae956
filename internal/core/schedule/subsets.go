package schedule

import (
	"container/heap"
	"slices"
)

// maxSubsets bounds how many sets of groups are looked at.
const maxSubsets = 300

// subsets are those of n of the groups, the best together first; of many only the first. Groups come best first, and so
// they are in each subset, which is valid until the next.
func subsets(all []group, n int) func(yield func([]group) bool) {
	return func(yield func([]group) bool) {
		if !yield(all[:n]) || n == len(all) {
			return
		}
		// A subset is made of the one that has the position moved last one place earlier: so each is made once, and none
		// before one that is better. Positions before the one moved last are where they were at first.
		first := subset{at: make([]int, n), last: n - 1}
		for i := range first.at {
			first.at[i] = i
			first.merit = first.merit.plus(all[i].merit)
		}
		q := &subsetQueue{}
		push := func(from subset, i int) {
			next := from.at[i] + 1
			if next == len(all) || i+1 < n && next == from.at[i+1] {
				return
			}
			s := subset{at: slices.Clone(from.at), last: i, merit: from.merit.plus(all[next].merit).minus(all[next-1].merit)}
			s.at[i] = next
			heap.Push(q, s)
		}
		push(first, n-1)
		chosen := make([]group, n)
		for range maxSubsets {
			if q.Len() == 0 {
				return
			}
			best := heap.Pop(q).(subset)
			for i, at := range best.at {
				chosen[i] = all[at]
			}
			if !yield(chosen) {
				return
			}
			push(best, best.last)
			if best.last > 0 {
				push(best, best.last-1)
			}
		}
	}
}

// subset is positions of groups, ascending, and what they are worth together.
type subset struct {
	at []int
	// last is the position that was moved last.
	last int
	merit
}

// subsetQueue is a heap, the best on top.
type subsetQueue []subset

func (q subsetQueue) Len() int { return len(q) }
func (q subsetQueue) Less(i, j int) bool {
	if better := prefers(q[i].merit, q[j].merit); better != 0 {
		return better < 0
	}
	return slices.Compare(q[i].at, q[j].at) < 0
}
func (q subsetQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *subsetQueue) Push(x any)   { *q = append(*q, x.(subset)) }
func (q *subsetQueue) Pop() any {
	old := *q
	last := old[len(old)-1]
	*q = old[:len(old)-1]
	return last
}
