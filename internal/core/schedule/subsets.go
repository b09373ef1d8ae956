package schedule

import "slices"

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
		q := &subsetQueue{n: n}
		first := subset{last: n - 1}
		for i := range n {
			q.positions = append(q.positions, i)
			first.merit = first.merit.plus(all[i].merit)
		}
		push := func(from subset, i int) {
			at := q.at(from)
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
			for i, at := range q.at(best) {
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
	// start is where its positions are.
	start int
	// last is the position that was moved last.
	last int
	merit
}

// subsetQueue is a heap of subsets of n groups, the best on top. It is not container/heap's, which makes an object of
// each.
type subsetQueue struct {
	n         int
	positions []int // of all there ever were
	heap      []subset
}

func (q *subsetQueue) at(s subset) []int { return q.positions[s.start : s.start+q.n : s.start+q.n] }

func (q *subsetQueue) less(i, j int) bool {
	if better := prefers(q.heap[i].merit, q.heap[j].merit); better != 0 {
		return better < 0
	}
	return slices.Compare(q.at(q.heap[i]), q.at(q.heap[j])) < 0
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
