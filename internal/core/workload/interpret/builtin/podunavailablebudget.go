package builtin

import (
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// podUnavailableBudget is OpenKruise's PodUnavailableBudget, v1alpha1 and v1beta1. It omits the pods in its status,
// which are specific to a cluster and change with every eviction.
func podUnavailableBudget() *interpret.Hooks {
	counters := []string{"unavailableAllowed", "currentAvailable", "desiredAvailable", "totalReplicas"}
	return &interpret.Hooks{
		Reflect:   reflectFields(append(counters, "observedGeneration")...),
		Health:    kept("currentAvailable", "desiredAvailable"),
		Aggregate: counting(settled, counters, unknown),
	}
}
