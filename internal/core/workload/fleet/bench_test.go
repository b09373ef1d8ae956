package fleet

import (
	"testing"
)

// One look at a CloneSet over a hundred clusters, in the middle of its rollout.
func BenchmarkSharesOfAHundredClusters(b *testing.B) {
	replicas := make([]int64, 100)
	statuses := make([]string, 100)
	for i := range replicas {
		replicas[i], statuses[i] = 10, up(10, 10)
	}
	h := newHub(b, plainCloneSet, replicas...)
	h.look()
	h.report(statuses...)
	h.edit(int64(2), "spec", "template", "a")
	h.look()
	for i := range statuses {
		statuses[i] = up(10, int64(i%11))
	}
	h.report(statuses...)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Shares(h.in); err != nil {
			b.Fatal(err)
		}
	}
}
