package dependency

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/match"
)

// Depth limits the chain of dependencies, such as Workflow templates that refer to each other.
const Depth = 8

// leading are the kinds whose own dependencies belong to the dependent too: templates that are part of a Workflow, and
// service accounts with image pull secrets for pods.
var leading = map[schema.GroupKind]bool{
	{Kind: "ServiceAccount"}:                                true,
	{Group: "argoproj.io", Kind: "WorkflowTemplate"}:        true,
	{Group: "argoproj.io", Kind: "ClusterWorkflowTemplate"}: true,
}

// LeadsOn reports whether the dependencies of a dependency are needed too.
func LeadsOn(ref configv1alpha1.DependentObjectReference) bool {
	return ref.LabelSelector == nil && leading[match.GroupKind(ref.APIVersion, ref.Kind)]
}
