package fleet

import (
	"slices"
	"time"
)

// budgetTurn is how long an idle cluster keeps its disruption budget while others wait for one. The hub does not know
// where a node will be drained, so all clusters take turns.
const budgetTurn = time.Minute

// holder is a cluster's part in a budget of pods that may be unavailable.
type holder struct {
	// matched are the pods that the budget protects there, down those of them that are unavailable.
	matched, down int64
	// before is what its Work grants; using is the most that it may be granting, as long as it is not seen to grant that.
	before, using int64
	// still is true if its Work stays as it is: it is not sent, or the cluster does not answer.
	still bool
	// turn is when it was last given something, or gave it back; zero for never.
	turn time.Time
}

// tokens are what each holder may have unavailable, of a budget of all. They keep
//
//	Σ max(granted, down) ≤ budget
//
// where a grant counts until the cluster is seen to grant less, and where pods that are down for other reasons stop
// evictions elsewhere: nothing is granted for them, and what idle clusters have is taken back. Where a cluster's share
// would be nothing, one that is idle hands over after its turn to the one that has waited longest. after is when that
// is due; 0 for never. The order of the holders breaks ties.
func tokens(budget int64, holders []holder, now time.Time) (granted []int64, after time.Duration) {
	// 1. What each should have. Shares that stand and add up stay: a pod more or less moves nothing.
	want, after := wanted(budget, holders, now)

	// 2. What is given back is given back at once.
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

	// 3. What is given waits until it is free. As much as is down there already costs nothing.
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

// wanted is what each holder should have when all that is under way has been seen.
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
	short := slices.ContainsFunc(indexes(fair), func(i int) bool { return fair[i] == 0 && matched[i] > 0 })
	want = Split(budget, had)
	switch {
	case sum(want) == 0 && !(short && began):
		return fair, 0
	case !short && fits && sum(want) == sum(fair):
		return want, 0
	case !short:
		return fair, 0
	}
	// Somebody has nothing: what is free goes to the one that has waited longest.
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
			continue // one that has pods down is being drained, or ill: it goes on
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

func indexes(of []int64) []int {
	all := make([]int, len(of))
	for i := range all {
		all[i] = i
	}
	return all
}
