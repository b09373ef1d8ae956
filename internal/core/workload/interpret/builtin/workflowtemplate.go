package builtin

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// workflowTemplate is Argo's WorkflowTemplate or ClusterWorkflowTemplate. It has no status.
func workflowTemplate() *interpret.Hooks {
	return &interpret.Hooks{
		Health:       alwaysHealthy,
		Dependencies: workflowDependencies("spec"),
	}
}

func alwaysHealthy(context.Context, *unstructured.Unstructured) (interpret.Health, error) {
	return interpret.Healthy, nil
}
