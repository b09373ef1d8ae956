package propagate

import (
	"errors"
	"fmt"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/object/text"
)

// ErrReference reports that a binding must not refer to its object, whoever wrote it.
var ErrReference = errors.New("a binding must not refer to it")

// CheckReference returns why a binding of the namespace, empty for a ClusterResourceBinding, must not refer to ref;
// nil if it may. A binding has the rights of its namespace: it may refer only to an object there that can be a
// template.
func CheckReference(namespace string, ref workv1alpha2.ObjectReference) error {
	what := text.Object(match.GroupKind(ref.APIVersion, ref.Kind).String(), ref.Namespace, ref.Name)
	switch {
	case ref.Namespace == namespace &&
		!Excluded(match.Template{APIVersion: ref.APIVersion, Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name}):
		return nil
	case ref.Namespace == namespace:
		return fmt.Errorf("%s belongs to the control plane and cannot be propagated: %w", what, ErrReference)
	case namespace == "":
		return fmt.Errorf("%s is namespaced, and a ClusterResourceBinding can only refer to cluster-scoped objects: %w", what,
			ErrReference)
	case ref.Namespace == "":
		return fmt.Errorf("%s has no namespace, and a ResourceBinding can only refer to objects in its own namespace, %s: %w",
			what, namespace, ErrReference)
	}
	return fmt.Errorf("%s is not in the namespace of the ResourceBinding, %s: %w", what, namespace, ErrReference)
}

// Misdirected returns why a stored binding must not refer to its object; nil if it may. Admission rejects such
// bindings, but one may be older than that check or come from a backup.
func Misdirected(b workv1alpha2.Binding) error {
	if err := CheckReference(b.GetNamespace(), b.BindingSpec().Resource); err != nil {
		return fmt.Errorf("spec.resource: %w: nothing is dispatched to members for this binding; delete it", err)
	}
	return nil
}
