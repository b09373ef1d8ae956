package builtin

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

func ingress() *interpret.Hooks {
	return &interpret.Hooks{
		Reflect: func(_ context.Context, observed *unstructured.Unstructured) (map[string]any, error) {
			return reflectLoadBalancer(observed), nil
		},
		Health: func(_ context.Context, observed *unstructured.Unstructured) (interpret.Health, error) {
			if !hasAddress(observed) {
				return interpret.Progressing, nil
			}
			return interpret.Healthy, nil
		},
		Aggregate: aggregateLoadBalancer,
		// The TLS Secrets.
		Dependencies: func(_ context.Context, obj *unstructured.Unstructured) ([]configv1alpha1.DependentObjectReference,
			error) {
			var names []any
			for _, tls := range objects(obj.Object, "spec", "tls") {
				names = append(names, text(tls, "secretName"))
			}
			return interpret.SortDependencies(secretsNamed(obj, names)), nil
		},
	}
}
