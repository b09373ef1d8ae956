package propagate

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/object/fields"
)

// Paused reports whether the template is annotated so.
func Paused(template *unstructured.Unstructured) bool {
	return template.GetAnnotations()[wellknown.PauseManagementAnnotation] == "true"
}

// pause suspends what a policy could suspend, so that Karmada's tools show it, too. It is removed when the template is
// no longer paused.
func pause(b workv1alpha2.Binding, template *unstructured.Unstructured) {
	spec, mark := b.BindingSpec(), ""
	if Paused(template) && !ptr.Deref(spec.PreserveResourcesOnDeletion, false) {
		mark = "true"
	}
	fields.PutAnnotation(b, wellknown.PreservedByPauseAnnotation, mark)
	if !Paused(template) {
		return
	}
	if spec.Suspension == nil {
		spec.Suspension = &workv1alpha2.Suspension{}
	}
	spec.Suspension.Dispatching, spec.Suspension.DispatchingOnClusters = new(true), nil
	spec.PreserveResourcesOnDeletion = new(true)
}
