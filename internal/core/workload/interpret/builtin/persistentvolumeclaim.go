package builtin

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// claimPhases are sorted worst first: a claim is bound if it is bound in all clusters.
var claimPhases = []string{"Lost", "Pending", "Bound"}

func persistentVolumeClaim() *interpret.Hooks {
	return &interpret.Hooks{
		Retain: retainFields([]string{"spec", "volumeName"}),
		Health: func(_ context.Context, observed *unstructured.Unstructured) (interpret.Health, error) {
			switch text(observed.Object, "status", "phase") {
			case "Bound":
				return interpret.Healthy, nil
			case "Lost":
				return interpret.Degraded, nil
			default:
				return interpret.Progressing, nil
			}
		},
		Aggregate: aggregatePhase(claimPhases, "Pending"),
	}
}

// aggregatePhase sets status.phase to the first of the phases that any cluster is in, or to the initial one.
func aggregatePhase(phases []string,
	initial string) func(context.Context, *unstructured.Unstructured,
	[]workv1alpha2.AggregatedStatusItem) (*unstructured.Unstructured, error) {
	return func(_ context.Context, template *unstructured.Unstructured,
		items []workv1alpha2.AggregatedStatusItem) (*unstructured.Unstructured, error) {
		rs, err := reports(items)
		if err != nil {
			return nil, err
		}
		return settledNative(template, map[string]any{"phase": firstOf(phases, initial, rs)}), nil
	}
}
