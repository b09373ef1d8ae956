package builtin

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// reflectNoting is reflectWhole with an additional condition from note, if any.
func reflectNoting(note func(observed *unstructured.Unstructured) map[string]any) reflector {
	return func(ctx context.Context, observed *unstructured.Unstructured) (map[string]any, error) {
		status, err := reflectWhole(ctx, observed)
		if err != nil || status == nil {
			return status, err
		}
		if c := note(observed); c != nil {
			status["conditions"] = append(slices.Clone(list(status, "conditions")), c)
		}
		return status, nil
	}
}

// noMatchedPods reports a SidecarSet without pods, which looks healthy but may be a problem.
func noMatchedPods(observed *unstructured.Unstructured) map[string]any {
	if !fresh(observed) || number(observed.Object, "status", "matchedPods") > 0 {
		return nil
	}
	return map[string]any{
		"type": interpret.NoMatchedPods, "status": "True", "reason": interpret.NoMatchedPods,
		"message": "it is not injected into any pod: no matching pod was created since then, or the injection webhook does not work",
	}
}

// podsReserved reports subsets with unschedulable pods.
func podsReserved(observed *unstructured.Unstructured) map[string]any {
	total := number(observed.Object, "status", "reservedPods")
	if total <= 0 {
		return nil
	}
	var in []string
	subsets := objects(observed.Object, "status", "subsetStatuses")
	slices.SortFunc(subsets, func(a, b map[string]any) int { return cmp.Compare(text(a, "name"), text(b, "name")) })
	for _, s := range subsets {
		if n := number(s, "reservedPods"); n > 0 {
			in = append(in, fmt.Sprintf("%d in subset %s", n, text(s, "name")))
		}
	}
	return map[string]any{
		"type": interpret.PodsReserved, "status": "True", "reason": interpret.PodsReserved,
		"message": "pods are unschedulable and were temporarily replaced elsewhere: " +
			cmp.Or(strings.Join(in, ", "), fmt.Sprint(total)),
	}
}
