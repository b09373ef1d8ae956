package migrate

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/object/names"
)

// TemplateOf returns the object of a Work if it is the Work of a template, which has the same kind and name. It returns
// nil for the Work of a ManifestWork or of an addon, and for one that a user created.
func TemplateOf(work *workv1alpha1.Work) *unstructured.Unstructured {
	notes := work.Annotations
	namespace, binding := notes[workv1alpha2.ResourceBindingNamespaceAnnotation],
		notes[workv1alpha2.ResourceBindingNameAnnotation]
	if binding == "" {
		namespace, binding = "", notes[workv1alpha2.ClusterResourceBindingNameAnnotation]
	}
	if binding == "" || notes[wellknown.ManifestWorkAnnotation] != "" {
		return nil
	}
	obj, err := execute.Manifest(work)
	if err != nil || obj.GetNamespace() != namespace ||
		!slices.Contains(names.Either(names.WorkFor(binding, obj.GroupVersionKind().GroupKind(), obj.GetName(), namespace),
			obj.GroupVersionKind().GroupKind(), obj.GetName(), namespace), work.Name) {
		return nil
	}
	return obj
}

// StateOf returns the state of a cluster as its Work alone shows it. It cannot tell Verifying from Own.
func StateOf(work *workv1alpha1.Work) State {
	switch {
	case work.DeletionTimestamp != nil || work.Annotations[wellknown.LeavingAnnotation] == "true":
		return Leaving
	case execute.Suspended(work):
		return Shadow
	}
	return Own
}
