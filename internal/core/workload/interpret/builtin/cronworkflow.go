package builtin

import (
	"context"
	"slices"

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
			if !slices.ContainsFunc(rs, func(r report) bool { return r.status != nil }) {
				return map[string]any{}
			}
			status := sums(rs, "succeeded", "failed")
			setText(status, "phase", firstOf([]string{"Active", "", "Stopped"}, "", rs))
			gather(status, rs, "active", asIs)
			setText(status, "lastScheduledTime", latest(textsOf(rs, "lastScheduledTime")...))
			setConditions(status, rs, func(string) bool { return true })
			return status
		}),
		Dependencies: workflowDependencies("spec", "workflowSpec"),
	}
}
