package schedule

import (
	"hash/fnv"
	"math/bits"

	"k8s.io/apimachinery/pkg/types"
)

// Share is the weight of a participant, and its seats.
type Share struct {
	// Name is unique among the shares.
	Name string
	// Weight is relative to the others'. Without a positive weight there are no seats.
	Weight int64
	// Seats is the result.
	Seats int32
}

// Apportion divides seats by weight with Webster's (Sainte-Laguë's) method: each seat goes to the largest
// weight/(2·seats+1). Ties go to the share with fewer seats, then to the first or the last by name, depending on the
// workload's UID: so reruns for one workload agree, and the remainders of many workloads even out. The seats add up to
// total if any weight is positive. A higher total never takes a seat away from a share.
func Apportion(total int32, shares []Share, uid types.UID) {
	queue := make([]*Share, 0, len(shares))
	for i := range shares {
		shares[i].Seats = 0
		if shares[i].Weight > 0 {
			queue = append(queue, &shares[i])
		}
	}
	if len(queue) == 0 || total <= 0 {
		return
	}
	q := seating{queue: queue, lastFirst: lastFirst(uid)}
	left := total - q.head(total)
	for i := len(queue)/2 - 1; i >= 0; i-- {
		q.sink(i)
	}
	for ; left > 0; left-- {
		queue[0].Seats++
		q.sink(0)
	}
}

// lastFirst reports whether ties go to the last by name: where the hash is odd. (FNV-1 and FNV-1a agree on that.)
func lastFirst(uid types.UID) bool {
	h := fnv.New32()
	// fnv never fails to write.
	_, _ = h.Write([]byte(uid))
	return h.Sum32()%2 == 1
}

// OtherTies returns a UID with which ties go the other way.
func OtherTies(uid types.UID) types.UID {
	return uid + "1" // an odd byte changes the parity of the hash
}

// seating is a heap of shares; the next one to get a seat is on top.
type seating struct {
	queue     []*Share
	lastFirst bool
}

// head assigns at once the seats of all shares whose quotient is at least sum/(2·m), for the largest m that is
// certainly not too large. The method assigns these first, in any order. Then at most one seat per share is left. It
// returns the number of assigned seats.
func (q *seating) head(total int32) int32 {
	m := uint64(max(0, int(total)-(len(q.queue)+1)/2))
	var sum uint64
	for _, s := range q.queue {
		var carry uint64
		if sum, carry = bits.Add64(sum, uint64(s.Weight), 0); carry > 0 || sum>>63 > 0 {
			// With such large weights the products could overflow; all seats are assigned one by one.
			return 0
		}
	}
	var given int32
	for _, s := range q.queue {
		// seats = ⌊weight·m/sum + 1/2⌋, at most m because weight ≤ sum.
		hi, lo := bits.Mul64(2*uint64(s.Weight), m)
		lo, carry := bits.Add64(lo, sum, 0)
		seats, _ := bits.Div64(hi+carry, lo, 2*sum)
		s.Seats = int32(seats)
		given += s.Seats
	}
	return given
}

// before reports whether a's turn is before b's: a total order, because names differ.
func (q *seating) before(a, b *Share) bool {
	// a.Weight/(2·a.Seats+1) against b.Weight/(2·b.Seats+1), exactly.
	aHi, aLo := bits.Mul64(uint64(a.Weight), 2*uint64(b.Seats)+1)
	bHi, bLo := bits.Mul64(uint64(b.Weight), 2*uint64(a.Seats)+1)
	switch {
	case aHi != bHi:
		return aHi > bHi
	case aLo != bLo:
		return aLo > bLo
	case a.Seats != b.Seats:
		return a.Seats < b.Seats
	}
	return (a.Name < b.Name) != q.lastFirst
}

// sink restores the heap below i.
func (q *seating) sink(i int) {
	for {
		first := 2*i + 1
		if first >= len(q.queue) {
			return
		}
		if second := first + 1; second < len(q.queue) && q.before(q.queue[second], q.queue[first]) {
			first = second
		}
		if !q.before(q.queue[first], q.queue[i]) {
			return
		}
		q.queue[i], q.queue[first] = q.queue[first], q.queue[i]
		i = first
	}
}
