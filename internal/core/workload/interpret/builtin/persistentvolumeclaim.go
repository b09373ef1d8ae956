package builtin

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// claimPhases are sorted worst first: a claim is bound if it is bound in all clusters.
var claimPhases = []string{"Lost", "Pending", "Bound"}

func persistentVolumeClaim() *interpret.Hooks {
	return &interpret.Hooks{
		Retain:    retainFields([]string{"spec", "volumeName"}),
		Health:    byPhase("Lost", "Bound"),
		Aggregate: aggregatePhase(claimPhases, "Pending"),
	}
}

// byPhase returns the health by status.phase. In all other phases it is Progressing.
func byPhase(degraded string, healthy ...string) func(context.Context, *unstructured.Unstructured) (interpret.Health,
	error) {
	return func(_ context.Context, observed *unstructured.Unstructured) (interpret.Health, error) {
		switch phase := text(observed.Object, "status", "phase"); {
		case phase == degraded:
			return interpret.Degraded, nil
		case slices.Contains(healthy, phase):
			return interpret.Healthy, nil
		}
		return interpret.Progressing, nil
	}
}

// aggregatePhase sets status.phase to the first of the phases that any cluster is in, or to the initial one.
func aggregatePhase(phases []string, initial string) aggregator {
	return foldingNative(func(_ *unstructured.Unstructured, rs []report) map[string]any {
		return map[string]any{"phase": firstOf(phases, initial, rs)}
	})
}
