package builtin

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// ephemeralJob is OpenKruise's EphemeralJob. Each cluster counts the pods that its selector matches. A cluster deletes
// the object half an hour after it finished, also without a TTL.
func ephemeralJob() *interpret.Hooks {
	return &interpret.Hooks{
		Health: ephemeralJobHealth,
		Aggregate: folding(func(_ *unstructured.Unstructured, rs []report) map[string]any {
			status := sums(rs, "match", "running", "succeeded", "waiting", "failed")
			setPhase(status, []string{"Error", "Failed", "Unknown", "Running", "Paused", "Waiting", "Succeeded"}, "Waiting", rs)
			span(status, rs, "startTime", "completionTime")
			bad := func(kind string) bool { return kind != "JobSucceeded" && kind != "Initialized" }
			setConditions(status, rs, bad, "lastProbeTime", "lastTransitionTime")
			return status
		}),
	}
}

func ephemeralJobHealth(_ context.Context, observed *unstructured.Unstructured) (interpret.Health, error) {
	status := object(observed.Object, "status")
	switch phase := text(status, "phase"); {
	case number(status, "failed") > 0, phase == "Failed", phase == "Error":
		return interpret.Degraded, nil
	case phase == "Succeeded":
		return interpret.Healthy, nil
	case yes(observed.Object, "spec", "paused"), phase == "Paused":
		return interpret.Suspended, nil
	}
	return interpret.Progressing, nil
}
