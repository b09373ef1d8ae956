package dependency

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/propagate"
)

// Depth bounds how many dependencies may lead to one another: templates of Workflows that refer to each other.
const Depth = 8

// leading are the kinds whose own dependencies are those of whoever depends on them: what a Workflow's template says is
// part of the Workflow, and the secrets that an account pulls images with are those of its pods.
var leading = map[schema.GroupKind]bool{
	{Kind: "ServiceAccount"}:                                true,
	{Group: "argoproj.io", Kind: "WorkflowTemplate"}:        true,
	{Group: "argoproj.io", Kind: "ClusterWorkflowTemplate"}: true,
}

// LeadsOn says whether what a dependency depends on has to follow as well.
func LeadsOn(ref configv1alpha1.DependentObjectReference) bool {
	return ref.LabelSelector == nil && leading[propagate.GroupKind(ref.APIVersion, ref.Kind)]
}
