package dependency

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/propagate"
)

// ErrElsewhere says that a template depends on what is in another namespace.
var ErrElsewhere = errors.New("is in another namespace; only dependencies in the namespace of the template are propagated with it")

// Within are those of the dependencies of a template in a namespace, empty for none, that may follow it: of its own
// namespace, and in none. Scripts and webhooks read out of templates what these depend on, so that their users say it:
// a template must not bring along the Secrets of others. What is in no namespace is written by who may name those of
// any. elsewhere is an ErrElsewhere for each of the rest.
func Within(namespace string, refs []configv1alpha1.DependentObjectReference) (within []configv1alpha1.DependentObjectReference, elsewhere []error) {
	if !slices.ContainsFunc(refs, func(ref configv1alpha1.DependentObjectReference) bool {
		return !reaches(namespace, ref.Namespace)
	}) {
		return refs, nil
	}
	for _, ref := range refs {
		if reaches(namespace, ref.Namespace) {
			within = append(within, ref)
			continue
		}
		name := ref.Name
		if name == "" {
			name = "(selected by labels)"
		}
		elsewhere = append(elsewhere, fmt.Errorf("%s %s/%s %w", propagate.GroupKind(ref.APIVersion, ref.Kind), ref.Namespace,
			name, ErrElsewhere))
	}
	return within, elsewhere
}

// MayFollow says whether an object that a reference selects may follow a template in a namespace, empty for none: a
// reference without a namespace selects in all of them.
func MayFollow(namespace string, dep *unstructured.Unstructured) bool {
	return reaches(namespace, dep.GetNamespace())
}

func reaches(namespace, of string) bool { return namespace == "" || of == "" || of == namespace }
