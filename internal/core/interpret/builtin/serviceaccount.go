package builtin

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/interpret"
)

// serviceAccount keeps the secrets that the member added to the account, its tokens and pull secrets among them. It
// depends on those that it pulls images with and on those that its pods may mount, but for the tokens, which every
// cluster makes by itself.
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
			return interpret.SortDependencies(pullSecrets(obj, names)), nil
		},
	}
}
