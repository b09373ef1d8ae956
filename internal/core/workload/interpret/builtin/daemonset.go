package builtin

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// daemonSet has no replicas to divide: nodes decide the number.
func daemonSet() *interpret.Hooks {
	counters := []string{
		"currentNumberScheduled", "desiredNumberScheduled", "numberAvailable", "numberMisscheduled",
		"numberReady", "numberUnavailable", "updatedNumberScheduled",
	}
	return &interpret.Hooks{
		Reflect: reflectFields(append(counters, "observedGeneration")...),
		Health:  daemonSetHealth,
		Aggregate: foldingNative(func(template *unstructured.Unstructured, rs []report) map[string]any {
			status := sumsOf(template, rs, counters...)
			desired := number(status, "desiredNumberScheduled")
			done := number(status, "updatedNumberScheduled") >= desired && number(status, "numberAvailable") >= desired
			status["observedGeneration"] = observedGeneration(template, rs, done)
			return status
		}),
	}
}

func daemonSetHealth(_ context.Context, observed *unstructured.Unstructured) (interpret.Health, error) {
	status := object(observed.Object, "status")
	desired := number(status, "desiredNumberScheduled")
	onDelete := text(observed.Object, "spec", "updateStrategy", "type") == "OnDelete"
	switch {
	case !fresh(observed),
		!onDelete && number(status, "updatedNumberScheduled") < desired,
		number(status, "numberAvailable") < desired:
		return interpret.Progressing, nil
	}
	return interpret.Healthy, nil
}
