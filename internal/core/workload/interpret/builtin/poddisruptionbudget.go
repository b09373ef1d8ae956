package builtin

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// podDisruptionBudget omits disruptedPods, because pod names are valid only in one cluster.
func podDisruptionBudget() *interpret.Hooks {
	counters := []string{"currentHealthy", "desiredHealthy", "disruptionsAllowed", "expectedPods"}
	return &interpret.Hooks{
		Reflect: reflectFields(append(counters, "observedGeneration")...),
		Health:  kept("currentHealthy", "desiredHealthy"),
		Aggregate: func(_ context.Context, template *unstructured.Unstructured,
			items []workv1alpha2.AggregatedStatusItem) (*unstructured.Unstructured, error) {
			rs, err := reports(items)
			if err != nil {
				return nil, err
			}
			status := sums(rs, counters...)
			status["observedGeneration"] = observedGeneration(template, rs, false)
			return settledNative(template, status), nil
		},
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
