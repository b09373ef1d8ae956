package dispatch

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/propagate"
)

// End is the known state of a binding that is being deleted, besides the binding itself.
type End struct {
	// DefinitionGoes is true if the CRD of bindings is being deleted; NamespaceGoes if the binding's namespace is.
	DefinitionGoes, NamespaceGoes bool
	// Template is the binding's, nil if there is none.
	Template *unstructured.Unstructured
	// Unserved is true if the hub does not serve the template's kind, so the template may or may not exist.
	Unserved bool
}

// Ordered reports whether the deletion of a binding deletes its Works. It does not while the template exists and a
// policy claims it, or while other bindings need it: the binding is created again and adopts the Works, so deleting a
// binding by hand removes nothing from a member. The deletion of a namespace deletes all templates in it, perhaps
// after their bindings. known is false while the template cannot be read.
func Ordered(b workv1alpha2.Binding, e End) (ordered, known bool) {
	switch {
	case e.DefinitionGoes:
		return false, true
	case e.NamespaceGoes:
		return true, true
	case e.Unserved:
		return false, false
	case e.Template == nil || e.Template.GetDeletionTimestamp() != nil:
		return true, true
	}
	if uid := b.BindingSpec().Resource.UID; uid != "" && uid != e.Template.GetUID() {
		return true, true // the template was created again, and so is the binding
	}
	if len(b.BindingSpec().RequiredBy) > 0 {
		return false, true // other bindings need it; the dependency controller updates the binding when they no longer do
	}
	if propagate.ManagedElsewhere(match.TemplateOf(e.Template)) {
		return false, true // a MultiClusterService has it, and lets go of it, or makes it again
	}
	_, claimed := propagate.Claimed(e.Template)
	return !claimed, true
}
