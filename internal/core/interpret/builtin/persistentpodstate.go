package builtin

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argosy-io/argosy/internal/core/interpret"
)

// persistentPodState is OpenKruise's PersistentPodState, v1alpha1 and v1beta1. Which pod stood on which node is each
// cluster's own, where pods of the same names may stand elsewhere: the template's list stays empty, and the binding has
// it by cluster.
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
