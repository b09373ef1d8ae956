package execute

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/object/identity"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/object/text"
)

// enclosed is the suffix of bindings whose templates enclose another object.
var enclosed = names.Binding("EnclosedManifest", "")

// boundTo returns the binding that a Work is of; empty for none.
func boundTo(w *workv1alpha1.Work) (namespace, binding string) {
	if binding = w.Annotations[workv1alpha2.ResourceBindingNameAnnotation]; binding != "" {
		return w.Annotations[workv1alpha2.ResourceBindingNamespaceAnnotation], binding
	}
	return "", w.Annotations[workv1alpha2.ClusterResourceBindingNameAnnotation]
}

// IsOf reports whether a Work is that of an object, which is the template of its binding, or in its manifest. Works of
// other objects may have the same name. A Work without binding whose manifest is unreadable counts too.
func IsOf(w *workv1alpha1.Work, of identity.Object) bool {
	namespace, binding := boundTo(w)
	if binding != "" && namespace == of.Namespace && slices.Contains(names.Bindings(of.GroupKind(), of.Name), binding) {
		return true
	}
	m, err := Manifest(w)
	if err != nil {
		return binding == ""
	}
	return identity.FromManifest(m) == of
}

// ObjectOf returns the object in the manifest of a Work; none if it cannot be read.
func ObjectOf(w *workv1alpha1.Work) identity.Object {
	m, err := Manifest(w)
	if err != nil {
		return identity.Object{}
	}
	return identity.FromManifest(m)
}

// belongs refuses a manifest that is not the template of the Work's binding. Dispatch writes no such Work. An earlier
// version of the hub did, as it let overrides change the identity of an object.
func belongs(w *workv1alpha1.Work, manifest *unstructured.Unstructured) error {
	namespace, binding := boundTo(w)
	if binding == "" || namespace == "" && strings.HasSuffix(binding, enclosed) {
		return nil
	}
	name := manifest.GetName()
	gk := manifest.GroupVersionKind().GroupKind()
	if manifest.GetNamespace() == namespace && slices.Contains(names.Either(names.WorkFor(binding, gk, name, namespace),
		gk, name, namespace), w.Name) {
		return nil
	}
	return fmt.Errorf("work %s/%s belongs to binding %s, but its manifest, %s, is not the template of that binding: it is not applied; "+
		"correct the override policies that select the template", w.Namespace, w.Name, text.Path(namespace, binding),
		identity.FromManifest(manifest))
}
