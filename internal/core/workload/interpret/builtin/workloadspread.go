package builtin

import (
	"cmp"
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// workloadSpread is OpenKruise's WorkloadSpread, v1alpha1 and v1beta1. Its webhook records each pod in the status. That
// and its copies per revision are specific to the cluster and not reported, so a rollout causes no writes.
func workloadSpread() *interpret.Hooks {
	return &interpret.Hooks{
		Reflect: func(_ context.Context, observed *unstructured.Unstructured) (map[string]any, error) {
			status := interpret.WholeStatus(observed)
			if status == nil {
				return nil, nil
			}
			delete(status, "versionedSubsetStatuses")
			for _, subset := range objects(status, "subsetStatuses") {
				delete(subset, "creatingPods")
				delete(subset, "deletingPods")
			}
			return interpret.WithOrigin(status, observed), nil
		},
		Health: func(_ context.Context, observed *unstructured.Unstructured) (interpret.Health, error) {
			if !fresh(observed) {
				return interpret.Progressing, nil
			}
			for _, subset := range objects(observed.Object, "status", "subsetStatuses") {
				if conditionText(subset, "Schedulable", "status") == "False" && number(subset, "missingReplicas") != 0 {
					return interpret.Progressing, nil
				}
			}
			return interpret.Healthy, nil
		},
		Aggregate: folding(func(template *unstructured.Unstructured, rs []report) map[string]any {
			status := map[string]any{"observedGeneration": observedGeneration(template, rs, false)}
			if subsets := spreadSubsets(template, rs); subsets != nil {
				status["subsetStatuses"] = subsets
			}
			return status
		}),
	}
}

// unlimited is the missingReplicas of a subset without maxReplicas.
const unlimited = -1

// spreadSubsets aggregates the subsets by name, in the order of the template.
func spreadSubsets(template *unstructured.Unstructured, rs []report) []any {
	var subsets []any
	for name, of := range byName(rs, func(r report) []map[string]any { return objects(r.status, "subsetStatuses") }) {
		subset := sums(of, "replicas", "missingReplicas")
		subset["name"] = name
		if lowest, _, _ := least(of, "missingReplicas"); lowest == unlimited {
			subset["missingReplicas"] = int64(unlimited)
		}
		setConditions(subset, of, func(string) bool { return false }, "lastTransitionTime")
		subsets = append(subsets, subset)
	}
	order := map[string]int{}
	for i, subset := range objects(template.Object, "spec", "subsets") {
		// subsets that the template does not name (0) come last
		order[text(subset, "name")] = i - len(list(template.Object, "spec", "subsets"))
	}
	slices.SortFunc(subsets, func(a, b any) int {
		x, y := text(a.(map[string]any), "name"), text(b.(map[string]any), "name")
		return cmp.Or(cmp.Compare(order[x], order[y]), cmp.Compare(x, y))
	})
	return subsets
}
