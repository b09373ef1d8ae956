package propagate

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

// PauseAnnotation = "true" on a template has the hub neither write nor delete it in members, whatever becomes of template and policy;
// their statuses are followed on. What depends on the template, or points at it, is not paused with it.
const PauseAnnotation = "argosy.io/pause-management"

// Paused says whether the template is annotated so.
func Paused(template *unstructured.Unstructured) bool {
	return template.GetAnnotations()[PauseAnnotation] == "true"
}

// pause suspends what a policy could suspend, so that Karmada's own tools see it, too.
func pause(spec *workv1alpha2.ResourceBindingSpec) {
	if spec.Suspension == nil {
		spec.Suspension = &workv1alpha2.Suspension{}
	}
	spec.Suspension.Dispatching, spec.Suspension.DispatchingOnClusters = new(true), nil
	spec.PreserveResourcesOnDeletion = new(true)
}
