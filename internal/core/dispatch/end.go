package dispatch

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/propagate"
)

// End is what is known of the end of a binding that is being deleted, beside the binding itself.
type End struct {
	// DefinitionGoes says that the definition of bindings is being deleted, NamespaceGoes that the binding's namespace is.
	DefinitionGoes, NamespaceGoes bool
	// Template is the binding's, nil if there is none.
	Template *unstructured.Unstructured
}

// Ordered says whether the end of a binding is one of its Works. It is not while its template stands and a policy holds it, or
// other bindings need it: the binding is made again then, and takes the Works over, and nothing leaves a member because somebody deleted what the hub keeps for
// itself. A namespace takes all templates along that are in it, though perhaps after their bindings.
func Ordered(b workv1alpha2.Binding, e End) bool {
	if e.DefinitionGoes {
		return false
	}
	if e.NamespaceGoes || e.Template == nil || e.Template.GetDeletionTimestamp() != nil {
		return true
	}
	if uid := b.BindingSpec().Resource.UID; uid != "" && uid != e.Template.GetUID() {
		return true // the template was made anew, and so is the binding
	}
	if len(b.BindingSpec().RequiredBy) > 0 {
		return false // others need it; when they do no more, dependency says so on the binding before it deletes it
	}
	if propagate.ManagedElsewhere(propagate.TemplateOf(e.Template)) {
		return false // a MultiClusterService has it, and lets go of it, or makes it again
	}
	_, held := propagate.Claimed(e.Template)
	return !held
}
