package builtin

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// cronWorkflow is Argo's CronWorkflow. Like a Workflow it has no status subresource, and it goes to one cluster,
// because otherwise each cluster would run it.
func cronWorkflow() *interpret.Hooks {
	return &interpret.Hooks{
		Components: workflowComponents("spec", "workflowSpec"),
		Retain: func(_ context.Context, desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
			return retainSuspension(desired, observed), nil
		},
		Health: func(_ context.Context, observed *unstructured.Unstructured) (interpret.Health, error) {
			status := object(observed.Object, "status")
			switch {
			case isTrue(status, "SpecError"), isTrue(status, "SubmissionError"):
				return interpret.Degraded, nil
			case yes(observed.Object, "spec", "suspend"), text(status, "phase") == "Stopped":
				return interpret.Suspended, nil
			}
			return interpret.Healthy, nil
		},
		Aggregate: folded(func(rs []report) map[string]any {
			status := map[string]any{}
			answered := false
			for _, r := range rs {
				answered = answered || r.status != nil
			}
			if !answered {
				return status
			}
			status = sums(rs, "succeeded", "failed")
			setText(status, "phase", firstOf([]string{"Active", "", "Stopped"}, "", rs))
			gather(status, rs, "active", asIs)
			setText(status, "lastScheduledTime", latest(textsOf(rs, "lastScheduledTime")...))
			if c := conditions(rs, func(string) bool { return true }); c != nil {
				status["conditions"] = c
			}
			return status
		}),
		Dependencies: workflowDependencies("spec", "workflowSpec"),
	}
}
