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
	"github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/internal/core/object/identity"
	"github.com/argosy-io/argosy/internal/core/object/names"
)

// Before store format 2, Works had other names. A store may still have such Works, and objects in members name them
// until they are written for another reason.

// renamedWork returns the present name of a Work of the named object; work itself if that is no former name.
func renamedWork(work string, gk schema.GroupKind, namespace, name, clusterBinding string) string {
	of := templateOf(gk, namespace, name, clusterBinding)
	if work == names.FormerWork(of.Kind, of.Name, of.Namespace) {
		return names.Work(of.Kind, of.Name, of.Namespace)
	}
	return work
}

// templateOf returns the template of the named object, which may enclose it.
func templateOf(gk schema.GroupKind, namespace, name, clusterBinding string) identity.Object {
	if enclosing, is := strings.CutSuffix(clusterBinding, enclosed); is {
		return identity.Object{Group: releasev1alpha1.GroupVersion.Group, Kind: releasev1alpha1.EnclosedManifestKind.Kind,
			Name: enclosing}
	}
	return identity.Object{Group: gk.Group, Kind: gk.Kind, Namespace: namespace, Name: name}
}

// sameWork reports whether two names are of one Work of obj, which is a manifest or a member's object: in a store that
// was restored, the Work may have the longer name that it did not need before, or the other way around.
func sameWork(a, b string, obj *unstructured.Unstructured) bool {
	if a, b = presentName(a, obj), presentName(b, obj); a == b {
		return true
	}
	of := templateOf(obj.GroupVersionKind().GroupKind(), obj.GetNamespace(), obj.GetName(),
		field(obj, "annotations", workv1alpha2.ClusterResourceBindingNameAnnotation))
	return names.Longer(a, of.GroupKind(), of.Name, of.Namespace) == b ||
		names.Longer(b, of.GroupKind(), of.Name, of.Namespace) == a
}

// presentName is renamedWork for a Work of obj, which is a manifest or a member's object.
func presentName(work string, obj *unstructured.Unstructured) string {
	return renamedWork(work, obj.GroupVersionKind().GroupKind(), obj.GetNamespace(), obj.GetName(),
		field(obj, "annotations", workv1alpha2.ClusterResourceBindingNameAnnotation))
}

// MarkedWork returns the Work that the marks of an object name, by its present name; empty for none.
func MarkedWork(obj *unstructured.Unstructured) types.NamespacedName {
	key := types.NamespacedName{Namespace: field(obj, "annotations", workv1alpha2.WorkNamespaceAnnotation),
		Name: field(obj, "annotations", workv1alpha2.WorkNameAnnotation)}
	if key.Name != "" {
		key.Name = presentName(key.Name, obj)
	}
	return key
}

// FormerName reports whether w, with this manifest, has a former name, and returns its present name.
func FormerName(w *workv1alpha1.Work, manifest *unstructured.Unstructured) (present string, former bool) {
	present = presentName(w.Name, manifest)
	return present, present != w.Name
}

// Renamed returns a copy of w, status included, under its present name. Create it before w is removed from the store;
// then nothing changes in the member.
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
	fields.Ensure(m.Object, "metadata", "annotations")[workv1alpha2.WorkNameAnnotation] = name
	raw, err := json.Marshal(m.Object)
	if err != nil {
		return nil, fmt.Errorf("write the manifest of work %s/%s: %w", w.Namespace, name, err)
	}
	out.Spec.Workload.Manifests[0].Raw = raw

	// The generation of the copy is 1.
	if applied := appliedGeneration(w); applied > 0 && applied < w.Generation {
		// The present generation was not applied. Apply nothing until dispatch writes the copy, which makes it generation 2.
		out.Spec.SuspendDispatching = new(true)
	}
	for i := range out.Status.Conditions {
		if c := &out.Status.Conditions[i]; c.ObservedGeneration > 0 {
			c.ObservedGeneration = 1
		}
	}
	return out, nil
}

// keepFormerName keeps a former name of w in the marks of observed: it is no difference. The next apply for another
// reason replaces it.
func keepFormerName(w *workv1alpha1.Work, desired, observed *unstructured.Unstructured) {
	if observed == nil {
		return
	}
	was := field(observed, "annotations", workv1alpha2.WorkNameAnnotation)
	if was != "" && was != w.Name && presentName(was, desired) == w.Name {
		fields.Ensure(desired.Object, "metadata", "annotations")[workv1alpha2.WorkNameAnnotation] = was
	}
}
