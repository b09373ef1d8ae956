package fleet

import (
	"fmt"
	"math/rand"
	"testing"
)

func TestTheExamplesOfSubsets(t *testing.T) {
	for _, c := range []struct {
		rows, columns []int64
		want          string
	}{
		{[]int64{2, 2}, []int64{2, 2}, "[[1 1] [1 1]]"},
		{[]int64{3, 1}, []int64{2, 2}, "[[2 1] [0 1]]"},
		{[]int64{0, 0}, []int64{0, 0}, "[[0 0] [0 0]]"},
		{[]int64{5}, []int64{2, 3}, "[[2 3]]"},
	} {
		if got := fmt.Sprint(Matrix(c.rows, c.columns, nil)); got != c.want {
			t.Errorf("%v by %v is %s, want %s", c.rows, c.columns, got, c.want)
		}
	}
}

func TestAMatrixHasItsSumsAndRoundsEachCellAndStays(t *testing.T) {
	for seed := range int64(1000) {
		random := rand.New(rand.NewSource(seed))
		rows, columns := make([]int64, 1+random.Intn(6)), make([]int64, 1+random.Intn(6))
		var total int64
		for c := range rows {
			rows[c] = random.Int63n(12)
			total += rows[c]
		}
		left := total
		for k := range columns {
			columns[k] = random.Int63n(left + 1)
			left -= columns[k]
		}
		columns[0] += left
		check := func(cells [][]int64) {
			t.Helper()
			for c := range rows {
				if n := sum(cells[c]); n != rows[c] {
					t.Fatalf("seed %d: row %d of %v is %d, want %d", seed, c, cells, n, rows[c])
				}
				for k := range columns {
					if total > 0 && (cells[c][k]*total < rows[c]*columns[k]-total+1 || cells[c][k]*total > rows[c]*columns[k]+
						total-1) {
						t.Fatalf("seed %d: cell %d,%d of %v is not rounded from %d·%d/%d", seed, c, k, cells, rows[c], columns[k], total)
					}
				}
			}
			for k := range columns {
				n := int64(0)
				for c := range rows {
					n += cells[c][k]
				}
				if n != columns[k] {
					t.Fatalf("seed %d: column %d of %v is %d, want %d", seed, k, cells, n, columns[k])
				}
			}
		}
		first := Matrix(rows, columns, nil)
		check(first)
		if again := Matrix(rows, columns, first); fmt.Sprint(again) != fmt.Sprint(first) {
			t.Fatalf("seed %d: %v becomes %v", seed, first, again)
		}
		// Another cluster's replica more: still exact, and whoever nothing happened to stays where that is possible.
		rows[random.Intn(len(rows))]++
		columns[random.Intn(len(columns))]++
		total++
		check(Matrix(rows, columns, first))
	}
}
