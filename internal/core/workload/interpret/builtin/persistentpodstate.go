package builtin

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// persistentPodState is OpenKruise's PersistentPodState, v1alpha1 and v1beta1. The nodes of pods are specific to each
// cluster, and pod names may repeat, so the template's list stays empty. The binding has the lists per cluster.
func persistentPodState() *interpret.Hooks {
	return &interpret.Hooks{
		Reflect: reflectWhole,
		Health: func(context.Context, *unstructured.Unstructured) (interpret.Health, error) {
			return interpret.Healthy, nil
		},
		Aggregate: folding(func(template *unstructured.Unstructured, rs []report) map[string]any {
			return map[string]any{"observedGeneration": observedGeneration(template, rs, false)}
		}),
	}
}
