package builtin

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// podProbeMarker is OpenKruise's PodProbeMarker.
func podProbeMarker() *interpret.Hooks {
	return &interpret.Hooks{
		Reflect: reflectWhole,
		Health: func(_ context.Context, observed *unstructured.Unstructured) (interpret.Health, error) {
			if !fresh(observed) {
				return interpret.Progressing, nil
			}
			return interpret.Healthy, nil
		},
		Aggregate: counting(settled, []string{"matchedPods"}, unknown),
	}
}
