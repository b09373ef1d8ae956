package propagate

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

// PauseAnnotation = "true" on a template has the hub neither write nor delete it in members, whatever becomes of
// template and policy; their statuses are followed on. What depends on the template, or points at it, is not paused
// with it.
const PauseAnnotation = "argosy.io/pause-management"

// Paused says whether the template is annotated so.
func Paused(template *unstructured.Unstructured) bool {
	return template.GetAnnotations()[PauseAnnotation] == "true"
}

// preservedByPause on a binding says that it preserves resources only because its template is paused: else that would
// look like what a binding that depends on it was granted, which stays.
const preservedByPause = "argosy.io/preserved-by-pause"

// pause suspends what a policy could suspend, so that Karmada's own tools see it, too; nothing is left of it when the
// template is paused no more.
func pause(b workv1alpha2.Binding, template *unstructured.Unstructured) {
	spec, mark := b.BindingSpec(), ""
	if paused := Paused(template); paused &&
		(spec.PreserveResourcesOnDeletion == nil || !*spec.PreserveResourcesOnDeletion) {
		mark = "true"
	}
	if annotations, changed := merged(b.GetAnnotations(), map[string]string{preservedByPause: mark}); changed {
		b.SetAnnotations(annotations)
	}
	if !Paused(template) {
		return
	}
	if spec.Suspension == nil {
		spec.Suspension = &workv1alpha2.Suspension{}
	}
	spec.Suspension.Dispatching, spec.Suspension.DispatchingOnClusters = new(true), nil
	spec.PreserveResourcesOnDeletion = new(true)
}
