package builtin

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

func TestSharesOfATotal(t *testing.T) {
	for _, c := range []struct {
		v                 any
		total             int64
		up, down, halfUp  int64
		partition, reason string // what a CloneSet keeps back, and why if that is not up
	}{
		{v: int64(3), total: 9, up: 3, down: 3, halfUp: 3, partition: "3"},
		{v: 3.0, total: 9, up: 3, down: 3, halfUp: 3, partition: "3"},
		{v: int64(12), total: 9, up: 12, down: 12, halfUp: 12, partition: "9", reason: "there are no more"},
		{v: int64(-1), total: 9, up: -1, down: -1, halfUp: -1, partition: "0", reason: "there are no fewer than none"},
		{v: "0%", total: 9, partition: "0"},
		{v: "10%", total: 9, up: 1, down: 0, halfUp: 1, partition: "1"},
		{v: "50%", total: 9, up: 5, down: 4, halfUp: 5, partition: "5"},
		{v: "50%", total: 3, up: 2, down: 1, halfUp: 2, partition: "2"},
		{v: "90%", total: 3, up: 3, down: 2, halfUp: 3, partition: "2", reason: "only 100% is all of several"},
		{v: "90%", total: 1, up: 1, down: 0, halfUp: 1, partition: "1"},
		{v: "100%", total: 3, up: 3, down: 3, halfUp: 3, partition: "3"},
		{v: "0.5%", total: 200, up: 1, down: 1, halfUp: 1, partition: "1"},
		{v: "0.5%", total: 201, up: 2, down: 1, halfUp: 1, partition: "2"},
		{v: "16.1%", total: 1000, up: 161, down: 161, halfUp: 161, partition: "161"}, // 16.1 has no float
		{v: "33.33%", total: 3, up: 1, down: 0, halfUp: 1, partition: "1"},
		{v: "5", total: 9, partition: "error"},
		{v: "%", total: 9, partition: "error"},
		{v: "5.%", total: 9, partition: "error"},
		{v: ".5%", total: 9, partition: "error"},
		{v: "+5%", total: 9, partition: "error"},
		{v: "1e1%", total: 9, partition: "error"},
		{v: "0x1%", total: 9, partition: "error"},
		{v: "Inf%", total: 9, partition: "error"},
		{v: "1234567890123%", total: 9, partition: "error"},
		{v: true, total: 9, partition: "error"},
		{v: 0.5, total: 9, partition: "error"},
	} {
		up, err := share(c.v, c.total, true, nil)
		down, err2 := share(c.v, c.total, false, nil)
		halfUp, err3 := nearest(c.v, c.total)
		partition, err4 := partitionOf(c.v, c.total)
		if c.partition == "error" {
			if err == nil || err2 == nil || err3 == nil || err4 == nil {
				t.Errorf("%v of %d: got %v, %v, %v, %v; want errors", c.v, c.total, err, err2, err3, err4)
			}
			continue
		}
		if err != nil || err2 != nil || err3 != nil || err4 != nil || up != c.up || down != c.down || halfUp != c.halfUp ||
			fmt.Sprint(partition) != c.partition {
			t.Errorf("%v of %d: up %d, down %d, half up %d, partition %d; want %d, %d, %d, %s %s", c.v, c.total, up, down,
				halfUp, partition, c.up, c.down, c.halfUp, c.partition, c.reason)
		}
	}
}

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
