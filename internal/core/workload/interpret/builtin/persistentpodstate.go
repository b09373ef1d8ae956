package builtin

import (
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// persistentPodState is OpenKruise's PersistentPodState, v1alpha1 and v1beta1. The nodes of pods are specific to each
// cluster, and pod names may repeat, so the template's list stays empty. The binding has the lists per cluster.
func persistentPodState() *interpret.Hooks {
	return &interpret.Hooks{
		Reflect:   reflectWhole,
		Health:    alwaysHealthy,
		Aggregate: counting(settled, nil, unknown),
	}
}
