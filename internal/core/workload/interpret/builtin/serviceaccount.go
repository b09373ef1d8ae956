package builtin

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// serviceAccount keeps the secrets that the member added to the account, such as tokens and pull secrets. It depends on
// its pull secrets and mountable secrets, except tokens, which each cluster creates itself.
func serviceAccount() *interpret.Hooks {
	return &interpret.Hooks{
		Retain: func(_ context.Context, desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
			return interpret.RetainEntries(desired, observed), nil
		},
		Dependencies: func(_ context.Context, obj *unstructured.Unstructured) ([]configv1alpha1.DependentObjectReference,
			error) {
			var names []any
			for _, s := range append(objects(obj.Object, "imagePullSecrets"), objects(obj.Object, "secrets")...) {
				if name := text(s, "name"); !strings.HasPrefix(name, obj.GetName()+"-token-") {
					names = append(names, name)
				}
			}
			return interpret.SortDependencies(secretsNamed(obj, names)), nil
		},
	}
}
