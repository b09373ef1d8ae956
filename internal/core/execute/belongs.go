package execute

import (
	"fmt"
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

// belongs refuses a manifest that is not the template of the Work's binding. Dispatch writes no such Work. An earlier
// version of the hub did, as it let overrides change the identity of an object.
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
	return fmt.Errorf("work %s/%s belongs to binding %s, but its manifest, %s, is not the template of that binding: it is not applied; "+
		"correct the override policies that select the template", w.Namespace, w.Name, text.Path(namespace, binding),
		identity.FromManifest(manifest))
}
