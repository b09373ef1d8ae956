package fleet

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"
)

const nativeSet = `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: x, annotations: {argosy.io/unique-ordinals: "true"}}, spec: {template: {a: 1}, updateStrategy: {rollingUpdate: {partition: 4}}}}`

// upAll has every member report as many pods as its Work asks for.
func (h *hub) upAll() {
	h.t.Helper()
	all := make([]string, len(h.in.Members))
	for i, n := range strings.Fields(h.fieldValues("spec", "replicas")) {
		all[i] = "replicas: " + n
	}
	h.report(all...)
	h.look()
}

func TestKubernetesStatefulSetsHaveRangesOfOrdinals(t *testing.T) {
	const replicas, start = "spec.replicas=", "spec.ordinals.start="
	h := newHub(t, nativeSet, 3, 2, 2)
	h.expect("one after the other", replicas+"3 2 2", start+"0 3 5", "spec.updateStrategy.rollingUpdate.partition=4 4 4")
	h.upAll()
	h.in.Members[2].Replicas = 4
	h.expect("the last grows at its end", replicas+"3 2 4", start+"0 3 5")
	h.upAll()
	h.in.Members[1].Replicas = 1
	h.expect("one shrinks at its end", replicas+"3 1 4", start+"0 3 5")
	h.in.Members[2].Replicas = 5
	h.expect("another grows", replicas+"3 1 5", start+"0 3 5")
	h.upAll()
	h.in.Members[0].Replicas = 4
	h.expect("one that has no room moves, having no volumes", replicas+"4 1 5", start+"10 3 5")

	h.edit([]any{map[string]any{"metadata": map[string]any{"name": "data"}}}, "spec", "volumeClaimTemplates")
	h.look()
	h.upAll()
	h.in.Members[1].Replicas = 9
	h.look()
	h.expectConditions("with volumes", "OrdinalsUnassigned: 4 replicas are not running, because their ranges cannot grow")
	starts, sizes := h.fieldValues("spec", "ordinals", "start"), h.fieldValues("spec", "replicas")
	if got := starts + ", " + sizes; got != "10 0 5, 4 5 5" {
		t.Errorf("with volumes, it grows as far as there is room: %s", got)
	}
	h.in.Members[1].Kubernetes = "v1.26.3"
	if _, err := Shares(h.in); err == nil || !strings.Contains(err.Error(), `Kubernetes v1.26.3 in cluster "c2"`) {
		t.Errorf("an old member gives %v", err)
	}
}

// Whatever is scaled, and whoever reports when: no two clusters may run the same ordinal, and all replicas end up
// somewhere.
func TestRangesAreUnique(t *testing.T) {
	rounds := int64(200)
	if testing.Short() {
		rounds /= 10
	}
	for seed := range rounds {
		random := rand.New(rand.NewSource(seed))
		h := newHub(t, nativeSet, 2, 2, 2)
		runs := make([][]int64, 3)
		for step := range 12 {
			for i := range h.in.Members {
				if random.Intn(3) == 0 {
					h.in.Members[i].Replicas = random.Int63n(6)
				}
			}
			h.look()
			seen := map[int64]int{}
			for i, m := range h.in.Members {
				observed, err := observe(m)
				if err != nil {
					t.Fatal(err)
				}
				n, start := number(observed.before.Object, "spec", "replicas"),
					number(observed.before.Object, "spec", "ordinals", "start")
				var now []int64
				for k := range n {
					now = append(now, start+k)
				}
				// Until it reports, it may run what it ran before as well.
				if runs[i] = append(runs[i], now...); random.Intn(2) == 0 {
					runs[i] = now
					all := slices.Repeat([]string{silent}, i+1)
					all[i] = fmt.Sprintf("replicas: %d", n)
					h.report(all...)
				}
				for _, o := range slices.Compact(slices.Sorted(slices.Values(runs[i]))) {
					if other, twice := seen[o]; twice {
						t.Fatalf("seed %d, step %d: %d may run in c%d and in c%d: %v", seed, step, o, other+1, i+1, runs)
					}
					seen[o] = i
				}
			}
		}
		for range 4 {
			h.upAll()
		}
		for i, n := range strings.Fields(h.fieldValues("spec", "replicas")) {
			if n != fmt.Sprint(h.in.Members[i].Replicas) {
				t.Fatalf("seed %d: in the end c%d has %s of %d", seed, i+1, n, h.in.Members[i].Replicas)
			}
		}
	}
}
