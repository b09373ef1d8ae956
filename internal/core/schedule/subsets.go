package schedule

import "slices"

// maxSubsets bounds the sets of groups that are tried.
const maxSubsets = 300

// subsets yields sets of n of the groups, the best first, up to a maximum. Groups are sorted best first, also within a
// set, which is valid until the next one.
func subsets(all []group, n int) func(yield func([]group) bool) {
	return func(yield func([]group) bool) {
		if !yield(all[:n]) || n == len(all) {
			return
		}
		// Each subset is created from the subset in which the last moved position is one place earlier. So each is created
		// once, and never before a better one. Positions before the last moved one are at their start.
		q := &subsetQueue{n: n}
		first := subset{last: n - 1}
		for i := range n {
			q.positions = append(q.positions, i)
			first.merit = first.merit.plus(all[i].merit)
		}
		push := func(from subset, i int) {
			at := q.positionsOf(from)
			next := at[i] + 1
			if next == len(all) || i+1 < n && next == at[i+1] {
				return
			}
			s := subset{start: len(q.positions), last: i, merit: from.merit.plus(all[next].merit).minus(all[next-1].merit)}
			q.positions = append(q.positions, at...)
			q.positions[s.start+i] = next
			q.push(s)
		}
		push(first, n-1)
		chosen := make([]group, n)
		for range maxSubsets {
			if len(q.heap) == 0 {
				return
			}
			best := q.pop()
			for i, at := range q.positionsOf(best) {
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

// subset has positions of groups, ascending, and their merit together.
type subset struct {
	// start is the index of its positions.
	start int
	// last is the position that was moved last.
	last int
	merit
}

// subsetQueue is a heap of subsets of n groups, the best on top. container/heap would allocate an object for each.
type subsetQueue struct {
	n         int
	positions []int // of all subsets so far
	heap      []subset
}

func (q *subsetQueue) positionsOf(s subset) []int {
	return q.positions[s.start : s.start+q.n : s.start+q.n]
}

func (q *subsetQueue) less(i, j int) bool {
	if better := prefers(q.heap[i].merit, q.heap[j].merit); better != 0 {
		return better < 0
	}
	return slices.Compare(q.positionsOf(q.heap[i]), q.positionsOf(q.heap[j])) < 0
}

func (q *subsetQueue) push(s subset) {
	q.heap = append(q.heap, s)
	for i := len(q.heap) - 1; i > 0; {
		up := (i - 1) / 2
		if !q.less(i, up) {
			return
		}
		q.heap[i], q.heap[up] = q.heap[up], q.heap[i]
		i = up
	}
}

func (q *subsetQueue) pop() subset {
	best, last := q.heap[0], len(q.heap)-1
	q.heap[0], q.heap = q.heap[last], q.heap[:last]
	for i := 0; ; {
		down := 2*i + 1
		if down >= last {
			return best
		}
		if down+1 < last && q.less(down+1, down) {
			down++
		}
		if !q.less(down, i) {
			return best
		}
		q.heap[i], q.heap[down] = q.heap[down], q.heap[i]
		i = down
	}
}
