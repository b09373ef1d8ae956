package admission

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/execute"
	values "github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// mutateWork gives a Work that a user wrote what the hub's controllers write: an id, the finalizer that deletes its
// object with it, and manifests that are pruned and marked. A manifest with marks was pruned already; to prune it
// again could undo an override.
func (o *objects) mutateWork(_ context.Context, r request) error {
	identify(r.obj, r.old, workv1alpha2.WorkPermanentIDLabel)
	r.disown()
	r.unorder()
	r.endOrder()
	if _, err := names.ClusterOf(r.GetNamespace()); err == nil && r.creating() { // elsewhere no controller removes it
		controllerutil.AddFinalizer(r.obj, workv1alpha2.ExecutionFinalizer)
	}
	var w *workv1alpha1.Work
	for _, m := range values.Objects(r.obj.Object, "spec", "workload", "manifests") {
		metadata := values.Object(m, "metadata")
		if metadata == nil || values.Value(metadata, "annotations", workv1alpha2.ManagedAnnotationsAnnotation) != nil {
			continue
		}
		if w == nil {
			w = &workv1alpha1.Work{}
			w.Namespace, w.Name = r.GetNamespace(), r.obj.GetName()
			w.Labels, w.Annotations = r.obj.GetLabels(), r.obj.GetAnnotations()
		}
		manifest := &unstructured.Unstructured{Object: m}
		interpret.Prune(manifest)
		execute.Mark(manifest, w)
	}
	return nil
}

// unorder removes the mark of a deletion request from a Work: only the hub may set it.
func (r request) unorder() {
	had := r.old != nil && slices.Contains(r.old.GetFinalizers(), execute.OrderedFinalizer)
	if finalizers := r.obj.GetFinalizers(); !had && slices.Contains(finalizers, execute.OrderedFinalizer) {
		r.obj.SetFinalizers(slices.DeleteFunc(finalizers, func(f string) bool { return f == execute.OrderedFinalizer }))
	}
}

// endOrder removes the mark of a deletion request together with the last other finalizer, so that the Work ends. An
// agent of Karmada removes its own finalizer only.
func (r request) endOrder() {
	if finalizers := r.obj.GetFinalizers(); len(finalizers) == 1 && finalizers[0] == execute.OrderedFinalizer {
		r.obj.SetFinalizers(nil)
	}
}

// validateWork rejects manifests that are not Kubernetes objects. The schema cannot: if it declared them as objects,
// the server would process their metadata at every read and write.
func (o *objects) validateWork(_ context.Context, r request) error {
	var errs field.ErrorList
	path := field.NewPath("spec", "workload", "manifests")
	for i, manifest := range values.List(r.obj.Object, "spec", "workload", "manifests") {
		m, _ := manifest.(map[string]any)
		metadata, _ := m["metadata"].(map[string]any)
		for _, required := range []struct {
			value any
			path  *field.Path
		}{
			{m["apiVersion"], path.Index(i).Child("apiVersion")},
			{m["kind"], path.Index(i).Child("kind")},
			{metadata["name"], path.Index(i).Child("metadata", "name")},
		} {
			if text, ok := required.value.(string); !ok || text == "" {
				errs = append(errs, field.Required(required.path, "must not be empty"))
			}
		}
	}
	return r.refuse(errs)
}
