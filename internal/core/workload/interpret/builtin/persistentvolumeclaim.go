package builtin

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// claimPhases are sorted worst first: a claim is bound if it is bound in all clusters.
var claimPhases = []string{"Lost", "Pending", "Bound"}

func persistentVolumeClaim() *interpret.Hooks {
	return &interpret.Hooks{
		Retain: retainFields([]string{"spec", "volumeName"}),
		Health: func(_ context.Context, observed *unstructured.Unstructured) (interpret.Health, error) {
			switch text(observed.Object, "status", "phase") {
			case "Bound":
				return interpret.Healthy, nil
			case "Lost":
				return interpret.Degraded, nil
			default:
				return interpret.Progressing, nil
			}
		},
		Aggregate: aggregatePhase(claimPhases, "Pending"),
	}
}

// aggregatePhase sets status.phase to the first of the phases that any cluster is in, or to the initial one.
func aggregatePhase(phases []string, initial string) aggregator {
	return foldingNative(func(_ *unstructured.Unstructured, rs []report) map[string]any {
		return map[string]any{"phase": firstOf(phases, initial, rs)}
	})
}
