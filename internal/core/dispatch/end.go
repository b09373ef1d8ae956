package dispatch

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/propagate"
)

// End is what is known of the end of a binding that is being deleted, beside the binding itself.
type End struct {
	// DefinitionGoes says that the definition of bindings is being deleted, NamespaceGoes that the binding's namespace is.
	DefinitionGoes, NamespaceGoes bool
	// Template is the binding's, nil if there is none.
	Template *unstructured.Unstructured
	// Unserved says that the hub does not serve the template's kind, so that nobody knows whether there is one.
	Unserved bool
}

// Ordered returns whether the end of a binding is one of its Works. It is not while its template stands and a policy
// holds it, or other bindings need it: the binding is made again then, and takes the Works over, and nothing leaves a
// member because somebody deleted what the hub keeps for itself. A namespace takes all templates along that are in it,
// though perhaps after their bindings. known is false while that cannot be said: what nobody can see is not gone.
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
		return true, true // the template was made anew, and so is the binding
	}
	if len(b.BindingSpec().RequiredBy) > 0 {
		return false, true // others need it; when they do no more, dependency says so on the binding before it deletes it
	}
	if propagate.ManagedElsewhere(match.TemplateOf(e.Template)) {
		return false, true // a MultiClusterService has it, and lets go of it, or makes it again
	}
	_, held := propagate.Claimed(e.Template)
	return !held, true
}
