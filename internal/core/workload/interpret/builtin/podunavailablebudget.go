package builtin

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// podUnavailableBudget is OpenKruise's PodUnavailableBudget, v1alpha1 and v1beta1. It omits the pods in its status,
// which are specific to a cluster and change with every eviction.
func podUnavailableBudget() *interpret.Hooks {
	counters := []string{"unavailableAllowed", "currentAvailable", "desiredAvailable", "totalReplicas"}
	return &interpret.Hooks{
		Reflect: reflectFields(append(counters, "observedGeneration")...),
		Health:  kept("currentAvailable", "desiredAvailable"),
		Aggregate: folding(func(template *unstructured.Unstructured, rs []report) map[string]any {
			status := sums(rs, counters...)
			status["observedGeneration"] = observedGeneration(template, rs, false)
			return status
		}),
	}
}
