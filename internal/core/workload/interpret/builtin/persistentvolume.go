package builtin

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// volumePhases are sorted by urgency, most urgent first.
var volumePhases = []string{"Failed", "Pending", "Available", "Bound", "Released"}

func persistentVolume() *interpret.Hooks {
	return &interpret.Hooks{
		Retain: retainFields([]string{"spec", "claimRef"}),
		Health: func(_ context.Context, observed *unstructured.Unstructured) (interpret.Health, error) {
			switch text(observed.Object, "status", "phase") {
			case "Available", "Bound", "Released":
				return interpret.Healthy, nil
			case "Failed":
				return interpret.Degraded, nil
			default:
				return interpret.Progressing, nil
			}
		},
		Aggregate: aggregatePhase(volumePhases, "Pending"),
	}
}
