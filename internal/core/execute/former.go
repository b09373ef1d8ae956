package execute

import (
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/names"
)

// Before store format 2, Works had other names. A store may still have such Works, and objects in members name them
// until they are written for another reason.

// renamedWork is the present name of the Work that the hub calls work and that has the object named; work itself if
// that is no former name.
func renamedWork(work string, gk schema.GroupKind, namespace, name, clusterBinding string) string {
	kind := gk.Kind
	if enclosing, is := strings.CutSuffix(clusterBinding, enclosed); is {
		kind, namespace, name = releasev1alpha1.EnclosedManifestKind.Kind, "", enclosing
	}
	if work == names.FormerWork(kind, name, namespace) {
		return names.Work(kind, name, namespace)
	}
	return work
}

// presentName is renamedWork for the Work of an object, which is a manifest or a member's.
func presentName(work string, obj *unstructured.Unstructured) string {
	return renamedWork(work, obj.GroupVersionKind().GroupKind(), obj.GetNamespace(), obj.GetName(),
		field(obj, "annotations", workv1alpha2.ClusterResourceBindingNameAnnotation))
}

// MarkedWork is the Work that the marks of an object name, by its present name; empty if they name none.
func MarkedWork(obj *unstructured.Unstructured) types.NamespacedName {
	key := types.NamespacedName{Namespace: field(obj, "annotations", workv1alpha2.WorkNamespaceAnnotation),
		Name: field(obj, "annotations", workv1alpha2.WorkNameAnnotation)}
	if key.Name != "" {
		key.Name = presentName(key.Name, obj)
	}
	return key
}

// FormerName says whether w, whose manifest is given, has a former name, and which name it has now.
func FormerName(w *workv1alpha1.Work, manifest *unstructured.Unstructured) (present string, former bool) {
	present = presentName(w.Name, manifest)
	return present, present != w.Name
}

// Renamed is a copy of w, which has a former name, under its present name, with its status. It is to be created before
// w is removed from the store, and makes no difference to the member.
func Renamed(w *workv1alpha1.Work, name string) (*workv1alpha1.Work, error) {
	m, err := Manifest(w)
	if err != nil {
		return nil, err
	}
	out := w.DeepCopy()
	out.ObjectMeta.Reset()
	out.Namespace, out.Name = w.Namespace, name
	out.Labels, out.Annotations, out.Finalizers, out.OwnerReferences = w.DeepCopy().Labels, w.DeepCopy().Annotations,
		w.DeepCopy().Finalizers, w.DeepCopy().OwnerReferences
	child(child(m.Object, "metadata"), "annotations")[workv1alpha2.WorkNameAnnotation] = name
	raw, err := json.Marshal(m.Object)
	if err != nil {
		return nil, fmt.Errorf("write the manifest of work %s/%s: %w", w.Namespace, name, err)
	}
	out.Spec.Workload.Manifests[0].Raw = raw

	// The generation of the copy is 1.
	if applied := appliedGeneration(w); applied > 0 && applied < w.Generation {
		// It was applied, but not as it is now. Until dispatch writes it, which makes it generation 2, nothing is applied.
		out.Spec.SuspendDispatching = new(true)
	}
	for i := range out.Status.Conditions {
		if c := &out.Status.Conditions[i]; c.ObservedGeneration > 0 {
			c.ObservedGeneration = 1
		}
	}
	return out, nil
}

// keepFormerName has desired name w as observed does, by a former name: that is no difference. An apply for another
// reason names it anew.
func keepFormerName(w *workv1alpha1.Work, desired, observed *unstructured.Unstructured) {
	if observed == nil {
		return
	}
	was := field(observed, "annotations", workv1alpha2.WorkNameAnnotation)
	if was != "" && was != w.Name && presentName(was, desired) == w.Name {
		child(child(desired.Object, "metadata"), "annotations")[workv1alpha2.WorkNameAnnotation] = was
	}
}
