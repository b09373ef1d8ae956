package builtin

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// A simulated OpenKruise updates pods up to the partition, one at a time, and each is available some time later.
// Whatever the order: the workload is Progressing until it rests, then Suspended if a partition holds pods back and
// Healthy if not; it never needs failover. So do the versions, which keep the partition in different places.
func TestRolloutIsProgressingUntilFinished(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 0))
		wanted := 1 + r.Int64N(6)
		partition := r.Int64N(wanted + 2)
		held := min(partition, wanted)
		var updated, available int64
		for rests := false; !rests; {
			switch {
			case available < updated && r.IntN(2) == 0:
				available++
			case updated < wanted-held:
				updated++
			case available < updated:
				available++
			default:
				rests = true
			}
			status := fmt.Sprintf(`{observedGeneration: 2, replicas: %d, availableReplicas: %d, updatedReplicas: %d, updatedReadyReplicas: %d, updatedAvailableReplicas: %d}`,
				wanted, wanted-updated+available, updated, available, available)
			want := interpret.Progressing
			if available == wanted-held {
				want = interpret.Healthy
				if updated < wanted {
					want = interpret.Suspended
				}
			}
			for kind, spec := range map[string]string{
				"v1alpha1, kind: CloneSet": fmt.Sprintf(
					`{replicas: %d, updateStrategy: {partition: %d, maxUnavailable: "100%%"}}`, wanted, partition),
				"v1beta1, kind: CloneSet": fmt.Sprintf(
					`{replicas: %d, updateStrategy: {rollingUpdate: {partition: %d, maxUnavailable: "100%%"}}}`, wanted, partition),
				"v1beta1, kind: StatefulSet": fmt.Sprintf(`{replicas: %d, updateStrategy: {rollingUpdate: {partition: %d}}}`,
					wanted, partition),
			} {
				obj := read(t, `{apiVersion: apps.kruise.io/`+kind+`, metadata: {generation: 2}, spec: `+spec+`, status: `+status+
					`}`)
				if got, err := interpreter.Health(t.Context(), obj); err != nil || got != want {
					t.Fatalf("seed %d, %s %s\n%s: %s, %v; want %s", seed, kind, spec, status, got, err, want)
				}
			}
		}
	}
}
