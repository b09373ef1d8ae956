package builtin

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// workflowTemplate is Argo's WorkflowTemplate or ClusterWorkflowTemplate. It has no status.
func workflowTemplate() *interpret.Hooks {
	return &interpret.Hooks{
		Health: func(context.Context, *unstructured.Unstructured) (interpret.Health, error) {
			return interpret.Healthy, nil
		},
		Dependencies: workflowDependencies("spec"),
	}
}
