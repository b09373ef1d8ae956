package execute

import (
	"errors"
	"fmt"
	"maps"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/internal/core/object/identity"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// Retain returns desired with those values of observed that belong to the member, as in interpret.Interpreter.
type Retain func(desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error)

// Manifest decodes the only manifest of w.
func Manifest(w *workv1alpha1.Work) (*unstructured.Unstructured, error) {
	if n := len(w.Spec.Workload.Manifests); n != 1 {
		return nil, fmt.Errorf("work %s/%s has %d manifests, not one", w.Namespace, w.Name, n)
	}
	raw := w.Spec.Workload.Manifests[0].Raw
	if len(raw) == 0 {
		return nil, fmt.Errorf("work %s/%s has an empty manifest", w.Namespace, w.Name)
	}
	m := &unstructured.Unstructured{}
	if err := m.UnmarshalJSON(raw); err != nil {
		return nil, fmt.Errorf("read manifest of work %s/%s: %w", w.Namespace, w.Name, err)
	}
	if m.GetName() == "" {
		return nil, fmt.Errorf("manifest of work %s/%s: %w", w.Namespace, w.Name, errors.New("metadata.name is empty"))
	}
	return m, nil
}

// Desired returns the object to apply for w: its manifest, marked, with the values that Retain takes from observed,
// which is nil if the object is absent. It never has a status, which belongs to controllers in the member.
//
// If Retain took a value, the result has observed's resourceVersion: an apply to a later version must fail and be
// planned again.
func Desired(w *workv1alpha1.Work, observed *unstructured.Unstructured,
	retain Retain) (*unstructured.Unstructured, error) {
	manifest, err := Manifest(w)
	if err != nil {
		return nil, err
	}
	if err := belongs(w, manifest); err != nil {
		return nil, err
	}
	interpret.NoteSuspension(manifest)
	interpret.NoteEntries(manifest)
	noteCreation(manifest, observed)
	if annotations, ok := fields.Ensure(manifest.Object, "metadata")["annotations"].(map[string]any); ok {
		delete(annotations, wellknown.HubAnnotation) // only HubID.Plan sets it
	}
	strip(manifest)
	Mark(manifest, w)
	if observed == nil || retain == nil {
		return manifest, nil
	}
	desired, err := retain(manifest, observed)
	if err != nil {
		return nil, err
	}
	if desired == manifest {
		return manifest, nil
	}
	if err := identity.FromManifest(manifest).Keeps(desired); err != nil {
		return nil, err
	}
	// The result may share memory with observed, which is read-only.
	desired = desired.DeepCopy()
	strip(desired)
	Mark(desired, w)
	if !reflect.DeepEqual(desired.Object, manifest.Object) {
		desired.SetResourceVersion(observed.GetResourceVersion())
	}
	return desired, nil
}

// strip removes, in place, the status, metadata that the member's API server and controllers own, and
// wellknown.HandsOffAnnotation. A finalizer from Retain would come back after its controller removed it.
func strip(m *unstructured.Unstructured) {
	delete(m.Object, "status")
	if metadata, ok := m.Object["metadata"].(map[string]any); ok {
		maps.DeleteFunc(metadata, func(key string, _ any) bool { return interpret.SetByServer(key) })
		if annotations, ok := metadata["annotations"].(map[string]any); ok {
			delete(annotations, wellknown.HandsOffAnnotation)
		}
	}
}
