package builtin

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// secret keeps a service account token that the member created. The hub's would be invalid there.
func secret() *interpret.Hooks {
	keep := retainFields([]string{"data"}, []string{"metadata", "annotations", corev1.ServiceAccountUIDKey})
	return &interpret.Hooks{
		Retain: func(ctx context.Context, desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
			if text(desired.Object, "type") != string(corev1.SecretTypeServiceAccountToken) {
				return desired, nil
			}
			return keep(ctx, desired, observed)
		},
	}
}
