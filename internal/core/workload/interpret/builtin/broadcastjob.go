package builtin

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	words "github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// broadcastJob is OpenKruise's BroadcastJob, v1alpha1 and v1beta1, with equal fields here. It runs a pod on every
// matching node, so there is nothing to divide. Parallelism is per cluster.
func broadcastJob() *interpret.Hooks {
	return &interpret.Hooks{
		Health: broadcastJobHealth,
		Aggregate: folding(func(_ *unstructured.Unstructured, rs []report) map[string]any {
			status := sums(rs, "active", "succeeded", "failed", "desired")
			setPhase(status, []string{"failed", "running", "paused", "completed"}, "running", rs)
			span(status, rs, "startTime", "completionTime")
			var conditions []any
			if trueInAll(rs, "Complete") {
				conditions = append(conditions, jobCondition("Complete", rs, latest))
			}
			if failed := whereTrue(rs, "Failed"); len(failed) > 0 {
				conditions = append(conditions, jobCondition("Failed", failed, earliest))
			}
			if conditions != nil {
				status["conditions"] = conditions
			}
			return status
		}),
	}
}

// jobCondition returns a condition that is True in the named clusters, with a time from them.
func jobCondition(kind string, rs []report, when func(times ...string) string) map[string]any {
	clusters, reason := make([]string, len(rs)), ""
	for i, r := range rs {
		clusters[i] = r.cluster
		if reason == "" {
			reason = conditionText(r.status, kind, "reason")
		}
	}
	c := map[string]any{"type": kind, "status": "True", "message": kind + " in " + words.Names(clusters, maxMessages)}
	setText(c, "reason", reason)
	for _, t := range []string{"lastProbeTime", "lastTransitionTime"} {
		var times []string
		for _, r := range rs {
			times = append(times, conditionText(r.status, kind, t))
		}
		setText(c, t, when(times...))
	}
	return c
}

// broadcastJobHealth uses the phase, which depends on the failure policy: with Continue a failed pod is only counted. A
// job that never completes is healthy while no pod has failed.
func broadcastJobHealth(_ context.Context, observed *unstructured.Unstructured) (interpret.Health, error) {
	spec, status := object(observed.Object, "spec"), object(observed.Object, "status")
	phase := text(status, "phase")
	lasting := text(spec, "completionPolicy", "type") == "Never"
	tolerant := text(spec, "failurePolicy", "type") == "Continue"
	switch {
	case phase == "failed", isTrue(status, "Failed"):
		return interpret.Degraded, nil
	case phase == "completed", isTrue(status, "Complete"):
		return interpret.Healthy, nil
	case text(spec, "failurePolicy", "type") == "Pause" && phase == "paused" && number(status, "failed") > 0:
		return interpret.Degraded, nil // the controller paused it because of the failure
	case yes(spec, "paused"), phase == "paused":
		return interpret.Suspended, nil
	case status == nil:
		return interpret.Progressing, nil
	case lasting && (tolerant || number(status, "failed") == 0):
		return interpret.Healthy, nil
	case text(status, "startTime") != "" && number(status, "desired") == 0:
		return interpret.Healthy, nil // no node matches
	}
	return interpret.Progressing, nil
}
