package execute

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/object/names"
)

// NewWork returns a Work of a cluster with a permanent id, or without one, that has no manifest yet; see Seal.
func NewWork(cluster, name, id string) *workv1alpha1.Work {
	w := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: names.ExecutionSpace(cluster), Name: name,
		Finalizers: []string{workv1alpha2.ExecutionFinalizer}, Labels: map[string]string{},
		Annotations: map[string]string{}}}
	if id != "" {
		w.Labels[workv1alpha2.WorkPermanentIDLabel] = id
	}
	return w
}

// PermanentID returns the permanent id of a Work, or a new one if there is no Work. newID is nil in a rehearsal.
func PermanentID(existing *workv1alpha1.Work, newID func() string) string {
	if existing != nil && existing.Labels[workv1alpha2.WorkPermanentIDLabel] != "" {
		return existing.Labels[workv1alpha2.WorkPermanentIDLabel]
	}
	if newID == nil {
		return ""
	}
	return newID()
}

// Seal marks a manifest as the object of a Work, and stores it there.
func Seal(w *workv1alpha1.Work, manifest *unstructured.Unstructured) error {
	Mark(manifest, w)
	raw, err := json.Marshal(manifest.Object)
	if err != nil {
		return fmt.Errorf("write the manifest of work %s/%s: %w", w.Namespace, w.Name, err)
	}
	w.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: raw}}}
	return nil
}
