package fleet

import "time"

// budgetTurn is how long an idle cluster keeps its disruption budget while others wait for one. The hub does not know
// where a node will be drained, so all clusters take turns.
const budgetTurn = time.Minute

// holder is a cluster with its share of a budget of unavailable pods.
type holder struct {
	// matched is the number of protected pods in the cluster, down the number of unavailable ones of them.
	matched, down int64
	// before is the grant in its Work. using is the largest grant that may be in force in the member.
	before, using int64
	// still is true if its Work must not change: the Work is suspended, or the cluster does not respond.
	still bool
	// turn is when it last got or returned a grant; zero for never.
	turn time.Time
}

// tokens divides a budget of unavailable pods among holders. It keeps
//
//	Σ max(granted, down) ≤ budget
//
// where a grant counts until the cluster reports a lower one. Pods that are down for other reasons stop evictions in
// other clusters: they get no grant, and idle clusters lose theirs. If the budget is too small for all, an idle cluster
// hands its grant after its turn to the cluster that has waited longest. after is the time until then; 0 for never. The
// order of the holders breaks ties.
func tokens(budget int64, holders []holder, now time.Time) (granted []int64, after time.Duration) {
	// 1. The wanted shares. Present shares with the right sum stay: small changes of pods move nothing.
	want, after := wanted(budget, holders, now)

	// 2. Reductions apply at once.
	granted = make([]int64, len(holders))
	var end int64
	for i, h := range holders {
		granted[i] = min(want[i], h.before)
		if h.still {
			granted[i] = h.before
		}
		end += max(granted[i], h.down)
	}
	for i := len(holders) - 1; i >= 0 && end > budget; i-- {
		if h := holders[i]; !h.still && granted[i] > h.down {
			less := min(end-budget, granted[i]-h.down)
			granted[i] -= less
			end -= less
		}
	}

	// 3. Increases wait for free budget. A grant up to the number of unavailable pods costs nothing.
	var used int64
	for i, h := range holders {
		used += max(h.using, granted[i], h.down)
	}
	for i, h := range holders {
		base := max(h.using, granted[i], h.down)
		next := min(want[i], base+max(0, budget-used))
		if h.still || next <= granted[i] || granted[i] < h.before {
			continue
		}
		granted[i] = next
		used += max(0, next-base)
	}
	return granted, after
}

// wanted returns the share of each holder once all pending changes have been observed.
func wanted(budget int64, holders []holder, now time.Time) (want []int64, after time.Duration) {
	matched, had := make([]int64, len(holders)), make([]Seat, len(holders))
	fits, began := true, false
	for i, h := range holders {
		began = began || !h.turn.IsZero()
		matched[i] = h.matched
		had[i] = Seat{Weight: h.before, Cap: min(h.before, h.matched)}
		fits = fits && h.before <= h.matched
	}
	fair := proportional(budget, matched)
	short := false
	for i := range fair {
		short = short || fair[i] == 0 && matched[i] > 0
	}
	want = Split(budget, had)
	switch {
	case sum(want) == 0 && !(short && began):
		return fair, 0
	case !short && fits && sum(want) == sum(fair):
		return want, 0
	case !short:
		return fair, 0
	}
	// A holder has nothing: the free budget goes to the holder that has waited longest.
	next := func() int {
		best := -1
		for i, h := range holders {
			if want[i] == 0 && h.before == 0 && h.matched > 0 && !h.still && (best < 0 || h.turn.Before(holders[best].turn)) {
				best = i
			}
		}
		return best
	}
	give := func() bool {
		to := next()
		if to >= 0 {
			want[to] = 1
		}
		return to >= 0
	}
	for free := sum(fair) - sum(want); free > 0 && give(); free-- {
	}
	if now.IsZero() {
		return want, 0
	}
	for i, h := range holders {
		if want[i] == 0 || h.before == 0 || h.still || h.down > 0 {
			continue // its pods are being drained or unhealthy: it keeps its turn
		}
		began := h.turn
		if began.IsZero() {
			began = now // what all were given at first
		}
		if left := began.Add(budgetTurn).Sub(now); left > 0 {
			if next() >= 0 && (after == 0 || left < after) {
				after = left
			}
			continue
		}
		for want[i] > 0 && give() {
			want[i]--
		}
	}
	return want, after
}
