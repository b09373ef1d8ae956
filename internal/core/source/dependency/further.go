package dependency

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/kind"
	"github.com/argosy-io/argosy/internal/core/match"
)

// Depth limits the chain of dependencies, such as Workflow templates that refer to each other.
const Depth = 8

// LeadsOn reports whether the dependencies of a dependency are needed too: those of templates that are part of a
// Workflow, and of service accounts with image pull secrets for pods.
func LeadsOn(ref configv1alpha1.DependentObjectReference) bool {
	gk := match.GroupKind(ref.APIVersion, ref.Kind)
	of := kind.Lookup(gk)
	return ref.LabelSelector == nil && (gk == schema.GroupKind{Kind: "ServiceAccount"} ||
		of.Workflow != nil && !of.RunsSteps())
}
