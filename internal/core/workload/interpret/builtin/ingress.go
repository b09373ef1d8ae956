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
			var deps []configv1alpha1.DependentObjectReference
			for _, tls := range objects(obj.Object, "spec", "tls") {
				if name := text(tls, "secretName"); name != "" {
					deps = append(deps, configv1alpha1.DependentObjectReference{
						APIVersion: "v1", Kind: "Secret", Namespace: obj.GetNamespace(), Name: name,
					})
				}
			}
			return interpret.SortDependencies(deps), nil
		},
	}
}
