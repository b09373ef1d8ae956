package admission

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/interpret"
)

// mutateWork makes a Work that somebody wrote by hand what our own controllers write: with an id, its manifests without what
// a server had set, and marked. A manifest with marks has been through that; to prune it again would fight an override.
func (o *objects) mutateWork(_ context.Context, r request) error {
	identify(r.obj, r.old, workv1alpha2.WorkPermanentIDLabel)
	r.disown()
	manifests, _, _ := unstructured.NestedFieldNoCopy(r.obj.Object, "spec", "workload", "manifests")
	list, _ := manifests.([]any)
	var w *workv1alpha1.Work
	for i := range list {
		m, ok := list[i].(map[string]any)
		if !ok {
			continue
		}
		metadata, ok := m["metadata"].(map[string]any)
		if !ok {
			continue
		}
		annotations, _ := metadata["annotations"].(map[string]any)
		if annotations[workv1alpha2.ManagedAnnotationsAnnotation] != nil {
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
