package fleet

import (
	"fmt"
	"math/rand"
	"slices"
	"testing"
)

func parsed(t testing.TB, all ...any) ordinals {
	t.Helper()
	o, err := parseOrdinals(all)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestOrdinalsAreNumbersAndRanges(t *testing.T) {
	o := parsed(t, int64(7), "3-5", int64(6), "0")
	if got := fmt.Sprint(o.texts()); got != "[0 3-7]" {
		t.Errorf("they are %s", got)
	}
	if got := fmt.Sprint(o.complement().texts()); got != "[1-2]" {
		t.Errorf("below are %s", got)
	}
	for _, wrong := range []any{"a", "5-3", "-1", int64(-1), 1.5, "1-2-3", true} {
		if _, err := parseOrdinals([]any{wrong}); err == nil {
			t.Errorf("%v is taken for an ordinal", wrong)
		}
	}
	if _, err := firstOrdinals(1<<31, nil); err == nil {
		t.Error("a set of two billions is worked out")
	}
	if got, err := firstOrdinals(3, parsed(t, "0-1999999999")); err != nil || got[0] != 2000000000 {
		t.Errorf("after a huge range: %v, %v", got, err)
	}
}

func TestFirstOrdinalsAreThoseNotReserved(t *testing.T) {
	for _, tt := range []struct {
		replicas int64
		reserved []any
		want     []int64
	}{
		{3, nil, []int64{0, 1, 2}},
		{0, nil, []int64{}},
		{3, []any{int64(1)}, []int64{0, 2, 3}},
		{2, []any{"0-2"}, []int64{3, 4}},
		{3, []any{"1-2", int64(0), "4"}, []int64{3, 5, 6}},
		{2, []any{"0-5", "3-8"}, []int64{9, 10}},
	} {
		if got, err := FirstOrdinals(tt.replicas, tt.reserved); err != nil || !slices.Equal(got, tt.want) {
			t.Errorf("%d without %v: %v, %v, want %v", tt.replicas, tt.reserved, got, err, tt.want)
		}
	}
	for _, wrong := range []any{"x", "3-1", "1-", ""} {
		if got, err := FirstOrdinals(1, []any{wrong}); err == nil {
			t.Errorf("%q is taken as %v", wrong, got)
		}
	}
}

func TestManyReservedOrdinalsAreRanges(t *testing.T) {
	if got := fmt.Sprint(parsed(t, "0-2", int64(5)).reserved()); got != "[0 1 2 5]" {
		t.Errorf("a few are %s", got)
	}
	if got := fmt.Sprint(parsed(t, "0-255", int64(300)).reserved()); got != "[0-255 300]" {
		t.Errorf("many are %s", got)
	}
	if got := (ordinals{}).reserved(); got == nil || len(got) != 0 {
		t.Errorf("none are %v", got)
	}
}

func TestTheExampleOfUniqueOrdinals(t *testing.T) {
	got, _ := assign([]owner{{replicas: 3}, {replicas: 2}}, nil, nil, mostOrdinals)
	if fmt.Sprint(got) != "[[0 1 2] [3 4]]" {
		t.Errorf("assigned are %v", got)
	}
	if reserve := setOf(got[1]).complement().texts(); fmt.Sprint(reserve) != "[0-2]" {
		t.Errorf("the second reserves %v", reserve)
	}
	if reserve := setOf(got[0]).complement().texts(); len(reserve) != 0 {
		t.Errorf("the first reserves %v", reserve)
	}
	// A replica moves: its ordinal goes, and comes back when no pod runs under it any more.
	moving, _ := assign([]owner{{2, got[0]}, {3, got[1]}}, nil, setOf([]int64{0, 1, 2, 3, 4}), mostOrdinals)
	if fmt.Sprint(moving) != "[[0 1] [3 4]]" {
		t.Errorf("while the pod may still run, assigned are %v", moving)
	}
	moved, _ := assign([]owner{{2, moving[0]}, {3, moving[1]}}, nil, setOf([]int64{0, 1, 3, 4}), mostOrdinals)
	if fmt.Sprint(moved) != "[[0 1] [2 3 4]]" {
		t.Errorf("then assigned are %v", moved)
	}
}

func TestOrdinalsAreUniqueAndStable(t *testing.T) {
	for seed := range int64(500) {
		random := rand.New(rand.NewSource(seed))
		owners := make([]owner, 1+random.Intn(4))
		reserved := setOf([]int64{random.Int63n(8), random.Int63n(8)})
		for step := range 20 {
			before := slices.Clone(owners)
			for i := range owners {
				if random.Intn(3) == 0 {
					owners[i].replicas = random.Int63n(7)
				}
			}
			assigned, short := assign(owners, reserved, nil, mostOrdinals)
			seen := map[int64]bool{}
			for i, numbers := range assigned {
				if int64(len(numbers)) != owners[i].replicas || short != 0 {
					t.Fatalf("seed %d, step %d: %v for %v", seed, step, assigned, owners)
				}
				// What OpenKruise makes of it is the same set.
				runs, err := firstOrdinals(owners[i].replicas, setOf(numbers).complement())
				if err != nil || !slices.Equal(runs, numbers) && len(numbers) > 0 {
					t.Fatalf("seed %d, step %d: %v is run as %v (%v)", seed, step, numbers, runs, err)
				}
				for _, n := range numbers {
					if seen[n] || reserved.contains(n) {
						t.Fatalf("seed %d, step %d: %d is there twice, or reserved: %v", seed, step, n, assigned)
					}
					seen[n] = true
				}
				stay := before[i].has[:min(int64(len(before[i].has)), owners[i].replicas)]
				if slices.ContainsFunc(stay, func(n int64) bool { return !slices.Contains(numbers, n) }) {
					t.Fatalf("seed %d, step %d: of %v stay %v", seed, step, stay, numbers)
				}
				owners[i].has = numbers
			}
		}
	}
}
