package execute

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/identity"
	"github.com/argosy-io/argosy/internal/core/names"
)

// enclosed is how the names of bindings end whose templates enclose another object.
var enclosed = names.Binding("EnclosedManifest", "")

// belongs refuses the manifest of a Work that says to be a binding's and is not named as that binding names the Work of
// such an object. Dispatch writes none; a hub that did not hold overrides to their templates has, and the Work stands
// until it is written anew.
func belongs(w *workv1alpha1.Work, manifest *unstructured.Unstructured) error {
	namespace, binding := w.Annotations[workv1alpha2.ResourceBindingNamespaceAnnotation],
		w.Annotations[workv1alpha2.ResourceBindingNameAnnotation]
	if binding == "" {
		namespace, binding = "", w.Annotations[workv1alpha2.ClusterResourceBindingNameAnnotation]
	}
	if binding == "" || namespace == "" && strings.HasSuffix(binding, enclosed) {
		return nil
	}
	name := manifest.GetName()
	gk := manifest.GroupVersionKind().GroupKind()
	if manifest.GetNamespace() == namespace && presentName(w.Name, manifest) == names.WorkFor(binding, gk, name,
		namespace) {
		return nil
	}
	at := binding
	if namespace != "" {
		at = namespace + "/" + binding
	}
	return fmt.Errorf("work %s/%s belongs to binding %s, but its manifest, %s, is not the template of that binding: it is not applied; "+
		"correct the override policies that select the template", w.Namespace, w.Name, at, identity.Of(manifest))
}
