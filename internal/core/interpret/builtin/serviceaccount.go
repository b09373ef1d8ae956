package builtin

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/interpret"
)

// serviceAccount keeps the secrets that the member added to the account, its tokens among them. It depends on those that it pulls
// images with and on those that its pods may mount, but for the tokens, which every cluster makes by itself.
func serviceAccount() *interpret.Hooks {
	return &interpret.Hooks{
		Retain: func(_ context.Context, desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
			secrets := slices.Clone(list(desired.Object, "secrets"))
			for _, s := range objects(observed.Object, "secrets") {
				known := slices.ContainsFunc(objects(desired.Object, "secrets"), func(d map[string]any) bool {
					return text(d, "name") == text(s, "name")
				})
				if !known {
					secrets = append(secrets, runtime.DeepCopyJSON(s))
				}
			}
			if len(secrets) == len(list(desired.Object, "secrets")) {
				return desired, nil
			}
			retained := desired.DeepCopy()
			retained.Object["secrets"] = runtime.DeepCopyJSONValue(secrets)
			return retained, nil
		},
		Dependencies: func(_ context.Context, obj *unstructured.Unstructured) ([]configv1alpha1.DependentObjectReference, error) {
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
