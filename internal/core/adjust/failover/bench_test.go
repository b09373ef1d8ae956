package failover

import (
	"fmt"
	"testing"
	"time"
)

// BenchmarkPlan plans the loss of one of ten clusters with a thousand bindings, of ten thousand.
func BenchmarkPlan(b *testing.B) {
	var names []string
	for i := range 10 {
		names = append(names, fmt.Sprintf("m%d", i))
	}
	w := newWorld(&testing.T{}, names...)
	for i := range 10_000 {
		w.deployment(fmt.Sprintf("w%d", i), fmt.Sprintf("m%d=2", i%10), upTo(byRoom(), 1))
	}
	w.lose("m0")
	w.pass(10 * time.Minute)
	for b.Loop() {
		if p := w.plan(); len(p.Evictions) != 1000 {
			b.Fatalf("%d evictions", len(p.Evictions))
		}
	}
}
