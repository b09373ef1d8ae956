package builtin

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/argosy-io/argosy/internal/core/interpret"
)

// serviceAccount keeps the secrets that the member added to the account, its tokens among them.
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
	}
}
