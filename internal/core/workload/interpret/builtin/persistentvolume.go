package builtin

import (
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// volumePhases are sorted by urgency, most urgent first.
var volumePhases = []string{"Failed", "Pending", "Available", "Bound", "Released"}

func persistentVolume() *interpret.Hooks {
	return &interpret.Hooks{
		Retain:    retainFields([]string{"spec", "claimRef"}),
		Health:    byPhase("Failed", "Available", "Bound", "Released"),
		Aggregate: aggregatePhase(volumePhases, "Pending"),
	}
}
