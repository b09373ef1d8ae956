package schedule

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// apportionNaively is the method by definition: one seat after the other, with exact fractions, comparing all shares.
func apportionNaively(total int32, shares []Share, uid types.UID) {
	for ; total > 0; total-- {
		best := -1
		for i := range shares {
			if shares[i].Weight > 0 && (best < 0 || turnBefore(shares[i], shares[best], lastFirst(uid))) {
				best = i
			}
		}
		if best < 0 {
			return
		}
		shares[best].Seats++
	}
}

func turnBefore(a, b Share, lastFirst bool) bool {
	quotient := func(s Share) *big.Rat { return big.NewRat(s.Weight, 2*int64(s.Seats)+1) }
	if c := quotient(a).Cmp(quotient(b)); c != 0 {
		return c > 0
	}
	if a.Seats != b.Seats {
		return a.Seats < b.Seats
	}
	if lastFirst {
		return a.Name > b.Name
	}
	return a.Name < b.Name
}

func randomShares(r *rand.Rand) []Share {
	shares := make([]Share, 1+r.IntN(12))
	largest := []int64{1, 3, 10, 1000, math.MaxInt32, math.MaxInt64}[r.IntN(6)]
	for i := range shares {
		shares[i] = Share{Name: fmt.Sprintf("c%02d", i), Weight: r.Int64N(largest) + int64(r.IntN(2))}
	}
	return shares
}

func seats(total int32, shares []Share, uid types.UID) map[string]int32 {
	Apportion(total, shares, uid)
	got := map[string]int32{}
	for _, s := range shares {
		got[s.Name] = s.Seats
	}
	return got
}

func TestApportionIsWebstersMethod(t *testing.T) {
	rounds := uint64(3000)
	if testing.Short() {
		rounds /= 10
	}
	for seed := range rounds {
		r := rng(seed)
		shares := randomShares(r)
		uid := types.UID(fmt.Sprint(r.IntN(9)))
		total := int32(r.IntN(200))

		want := append([]Share(nil), shares...)
		apportionNaively(total, want, uid)
		got := seats(total, shuffled(r, shares), uid)

		var sum, weights int64
		for _, s := range want {
			if got[s.Name] != s.Seats {
				t.Fatalf("seed %d: %d seats for %v: %s has %d, one by one it has %d", seed, total, shares, s.Name, got[s.Name],
					s.Seats)
			}
			sum += int64(s.Seats)
			weights |= s.Weight
		}
		if weights > 0 && sum != int64(total) {
			t.Fatalf("seed %d: the seats add up to %d of %d", seed, sum, total)
		}
		for name, n := range seats(total+1, shares, uid) {
			if n < got[name] {
				t.Fatalf("seed %d: %s loses a seat when there are %d instead of %d", seed, name, total+1, total)
			}
		}
	}
}

func TestApportionRespectsWeightsWhileSeatsSuffice(t *testing.T) {
	for seed := range uint64(1000) {
		r := rng(seed)
		shares := randomShares(r)
		var sum int64
		for i := range shares {
			shares[i].Weight %= 50
			sum += shares[i].Weight
		}
		Apportion(int32(r.Int64N(sum+1)), shares, "")
		for _, s := range shares {
			if int64(s.Seats) > s.Weight {
				t.Fatalf("seed %d: %s has %d seats of %d", seed, s.Name, s.Seats, s.Weight)
			}
		}
	}
}

func TestApportion(t *testing.T) {
	for name, test := range map[string]struct {
		total   int32
		weights string
		uid     types.UID
		want    string
	}{
		"eight seats for four parties, the textbook's example": {8, "a=100000 b=80000 c=30000 d=20000", evenUID,
			"a=3 b=3 c=1 d=1"},
		"a tie goes to the one with fewer seats":           {9, "a=3 b=2 c=1", oddUID, "a=4 b=3 c=2"},
		"a tie of as many seats goes to the first by name": {1, "a=1 b=1", evenUID, "a=1 b"},
		"... or to the last, as the UID has it":            {1, "a=1 b=1", oddUID, "a b=1"},
		"no weight, no seat":                               {5, "a=1 b=0", evenUID, "a=5 b"},
		"nobody has weight":                                {5, "a=0 b=0", evenUID, "a b"},
		"a million seats":                                  {1_000_000, "a=1 b=2", evenUID, "a=333333 b=666667"},
	} {
		t.Run(name, func(t *testing.T) {
			var shares []Share
			for _, w := range targets(test.weights) {
				shares = append(shares, Share{Name: w.Name, Weight: int64(w.Replicas)})
			}
			got := seats(test.total, shares, test.uid)
			for _, want := range targets(test.want) {
				if got[want.Name] != want.Replicas {
					t.Errorf("%s has %d seats, want %d", want.Name, got[want.Name], want.Replicas)
				}
			}
		})
	}
}

func TestApportionOfWeightsBeyondArithmetic(t *testing.T) {
	shares := []Share{{Name: "a", Weight: math.MaxInt64}, {Name: "b", Weight: math.MaxInt64},
		{Name: "c", Weight: math.MaxInt64 / 2}}
	if got := seats(5, shares, evenUID); got["a"] != 2 || got["b"] != 2 || got["c"] != 1 {
		t.Errorf("got %v, want 2, 2 and 1", got)
	}
}
