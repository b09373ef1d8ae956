package fleet

import (
	"math/bits"
)

// Seat is one receiver of a Split. No field is negative.
type Seat struct {
	// Weight relative to those of the other seats.
	Weight int64
	// Cap is the largest share.
	Cap int64
	// Floor is the smallest share, for example what the receiver has already. Cap takes precedence.
	Floor int64
}

// Split divides total among seats, given in the order in which ties are broken. It starts from the floors, and gives
// one unit after the other to the seat below its cap with the largest Weight/(2·units+1) (Webster's, or Sainte-Laguë's,
// method).
//
// The shares add up to min(total, ΣCap), or to the floors if these are more. A larger total never lowers a share. So
// the shares of one Split can be the floors of the next one with a larger total.
func Split(total int64, seats []Seat) []int64 {
	shares := make([]int64, len(seats))
	left := total
	for i, s := range seats {
		shares[i] = min(s.Floor, s.Cap)
		left -= shares[i]
	}
	if left <= 0 {
		return shares
	}
	left -= fill(left, seats, shares, func(s Seat) int64 { return s.Weight })
	// Seats without weight share the rest equally.
	fill(left, seats, shares, func(s Seat) int64 {
		if s.Weight > 0 {
			return 0
		}
		return 1
	})
	return shares
}

// fill adds up to left units to the shares of those with weight, and returns how many.
func fill(left int64, seats []Seat, shares []int64, weight func(Seat) int64) int64 {
	var sum, given int64
	for _, s := range seats {
		sum += weight(s)
	}
	if sum == 0 || left <= 0 {
		return 0
	}
	// 1. Units whose quotient is at least sum/(2·m) come before all others. Give them at once, for the largest m that does
	//    not exceed the total: one by one, a total of millions would take millions of rounds.
	at := func(i int, m uint64) int64 {
		hi, lo := bits.Mul64(2*uint64(weight(seats[i])), m)
		lo, carry := bits.Add64(lo, uint64(sum), 0)
		units, _ := bits.Div64(hi+carry, lo, 2*uint64(sum))
		return max(shares[i], int64(min(units, uint64(max(seats[i].Cap, 0)))))
	}
	extra := func(m uint64) (n int64) {
		for i := range seats {
			if weight(seats[i]) > 0 {
				n += at(i, m) - shares[i]
			}
		}
		return n
	}
	var m uint64
	for bit := uint64(1) << 61; bit > 0; bit >>= 1 {
		if extra(m+bit) <= left {
			m += bit
		}
	}
	given = extra(m)
	for i := range seats {
		if weight(seats[i]) > 0 {
			shares[i] = at(i, m)
		}
	}
	// 2. The rest, at most one for each, one by one.
	for ; given < left; given++ {
		best := -1
		for i, s := range seats {
			if weight(s) == 0 || shares[i] >= s.Cap {
				continue
			}
			if best < 0 || greater(weight(s), shares[i], weight(seats[best]), shares[best]) {
				best = i
			}
		}
		if best < 0 {
			break
		}
		shares[best]++
	}
	return given
}

// greater reports whether w/(2a+1) > v/(2b+1), exactly.
func greater(w, a, v, b int64) bool {
	xHi, xLo := bits.Mul64(uint64(w), 2*uint64(b)+1)
	yHi, yLo := bits.Mul64(uint64(v), 2*uint64(a)+1)
	return xHi > yHi || xHi == yHi && xLo > yLo
}

// inOrder fills the seats one after the other, up to their caps, above the floors.
func inOrder(total int64, seats []Seat) []int64 {
	shares := make([]int64, len(seats))
	left := total
	for i, s := range seats {
		shares[i] = min(s.Floor, s.Cap)
		left -= shares[i]
	}
	for i, s := range seats {
		n := max(0, min(left, s.Cap-shares[i]))
		shares[i] += n
		left -= n
	}
	return shares
}

// proportional returns the shares of total by weight, each at most its weight.
func proportional(total int64, weights []int64) []int64 {
	seats := make([]Seat, len(weights))
	for i, w := range weights {
		seats[i] = Seat{Weight: w, Cap: w}
	}
	return Split(total, seats)
}

func sum(numbers []int64) (n int64) {
	for _, v := range numbers {
		n += v
	}
	return n
}
