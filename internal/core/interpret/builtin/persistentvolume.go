package builtin

import "github.com/argosy-io/argosy/internal/core/interpret"

// volumePhases, the one that needs a look most first.
var volumePhases = []string{"Failed", "Pending", "Available", "Bound", "Released"}

func persistentVolume() *interpret.Hooks {
	return &interpret.Hooks{
		Retain:    retainFields([]string{"spec", "claimRef"}),
		Aggregate: aggregatePhase(volumePhases, "Pending"),
	}
}
