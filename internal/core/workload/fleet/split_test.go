package fleet

import (
	"math/rand"
	"slices"
	"testing"
)

// oneByOneSplit returns the definition, word for word.
func oneByOneSplit(total int64, seats []Seat) []int64 {
	shares := make([]int64, len(seats))
	var given, room int64
	for i, s := range seats {
		shares[i] = min(s.Floor, s.Cap)
		given += shares[i]
		room += s.Cap
	}
	for ; given < min(total, room); given++ {
		best := -1
		for i, s := range seats {
			if shares[i] < s.Cap && (best < 0 || s.Weight*(2*shares[best]+1) > seats[best].Weight*(2*shares[i]+1)) {
				best = i
			}
		}
		shares[best]++
	}
	return shares
}

func TestASplitIsExactAndMonotoneAndContinuesItself(t *testing.T) {
	rounds := int64(1000)
	if testing.Short() {
		rounds /= 10
	}
	for seed := range rounds {
		random := rand.New(rand.NewSource(seed))
		seats := make([]Seat, 1+random.Intn(6))
		var room int64
		for i := range seats {
			seats[i] = Seat{Weight: 1 + random.Int63n(20), Cap: random.Int63n(30)}
			if random.Intn(3) == 0 && seats[i].Cap > 0 {
				seats[i].Floor = random.Int63n(seats[i].Cap + 1)
			}
			room += seats[i].Cap
		}
		var before []int64
		for total := range room + 3 {
			got := Split(total, seats)
			if want := oneByOneSplit(total, seats); !slices.Equal(got, want) {
				t.Fatalf("seed %d: Split(%d, %v) is %v, want %v", seed, total, seats, got, want)
			}
			if n := sum(got); n != min(total, room) && total >= sum(Split(0, seats)) {
				t.Fatalf("seed %d: Split(%d, %v) adds up to %d", seed, total, seats, n)
			}
			for i := range before {
				if got[i] < before[i] {
					t.Fatalf("seed %d: of %d, seat %d of %v gets %d, and had %d of less", seed, total, i, seats, got[i], before[i])
				}
			}
			floored := slices.Clone(seats)
			for i := range before {
				floored[i].Floor = before[i]
			}
			if again := Split(total, floored); !slices.Equal(again, got) {
				t.Fatalf("seed %d: from %v on, %d of %v are %v, want %v", seed, before, total, seats, again, got)
			}
			before = got
		}
	}
}

func TestASplitOfHugeNumbersTakesFewRounds(t *testing.T) {
	const huge = 1<<31 - 1
	got := Split(huge, []Seat{{Weight: huge, Cap: huge}, {Weight: 1, Cap: 1}, {Weight: huge, Cap: 7}})
	if sum(got) != huge || got[2] != 7 {
		t.Errorf("shares are %v", got)
	}
	if got := Split(huge, []Seat{{Weight: 0, Cap: huge}, {Weight: 0, Cap: huge}}); sum(got) != huge || got[0]-got[1] > 1 {
		t.Errorf("without weights shares are %v, want halves", got)
	}
	if got := Split(5, nil); len(got) != 0 {
		t.Errorf("nobody gets %v", got)
	}
}
