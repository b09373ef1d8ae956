package dependency

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/match"
)

// ErrElsewhere reports a dependency in another namespace.
var ErrElsewhere = errors.New("is in another namespace; only dependencies in the namespace of the template are propagated with it")

// Within returns the dependencies that may follow a template in a namespace (empty for cluster-scoped): those in the
// same namespace or in none. Dependencies come from the content of templates, so users choose them, and a template must
// not propagate Secrets of other namespaces. Authors of cluster-scoped templates may name any namespace. elsewhere has
// an ErrElsewhere for each of the rest.
func Within(
	namespace string, refs []configv1alpha1.DependentObjectReference,
) (within []configv1alpha1.DependentObjectReference, elsewhere []error) {
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
		elsewhere = append(elsewhere, fmt.Errorf("%s %s/%s %w", match.GroupKind(ref.APIVersion, ref.Kind), ref.Namespace,
			name, ErrElsewhere))
	}
	return within, elsewhere
}

// MayFollow reports whether an object may follow a template in a namespace. It is needed for references without a
// namespace, which select in all namespaces.
func MayFollow(namespace string, dep *unstructured.Unstructured) bool {
	return reaches(namespace, dep.GetNamespace())
}

func reaches(namespace, of string) bool { return namespace == "" || of == "" || of == namespace }
