package commit

import (
	"testing"
	"time"
)

func TestABurstIsToldUpToItsBoundAndThenAtItsRate(t *testing.T) {
	b, now := Burst{Most: 100, Rate: 10}, time.Now()
	told := func(n int) (told int) {
		for range n {
			if b.Tell(now) {
				told++
			}
		}
		return told
	}
	for _, step := range []struct {
		after   time.Duration
		n, want int
	}{{0, 60, 60}, {0, 60, 40}, {time.Second, 60, 10}, {-time.Second, 60, 0}, {time.Hour, 200, 100}} {
		now = now.Add(step.after)
		if got := told(step.n); got != step.want {
			t.Errorf("%v later, of %d are told %d, want %d", step.after, step.n, got, step.want)
		}
	}
}
