package builtin

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// podDisruptionBudget omits disruptedPods, because pod names are valid only in one cluster.
func podDisruptionBudget() *interpret.Hooks {
	counters := []string{"currentHealthy", "desiredHealthy", "disruptionsAllowed", "expectedPods"}
	return &interpret.Hooks{
		Reflect:   reflectFields(append(counters, "observedGeneration")...),
		Health:    kept("currentHealthy", "desiredHealthy"),
		Aggregate: counting(settledNative, counters, unknown),
	}
}

// kept returns the health of a budget: Degraded while fewer pods are healthy than required.
func kept(current, desired string) func(context.Context, *unstructured.Unstructured) (interpret.Health, error) {
	return func(_ context.Context, observed *unstructured.Unstructured) (interpret.Health, error) {
		status := object(observed.Object, "status")
		switch {
		case !fresh(observed):
			return interpret.Progressing, nil
		case number(status, current) < number(status, desired):
			return interpret.Degraded, nil
		}
		return interpret.Healthy, nil
	}
}
