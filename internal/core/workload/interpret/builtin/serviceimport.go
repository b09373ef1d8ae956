package builtin

import (
	"context"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// serviceImport depends on the derived Service and its EndpointSlices.
func serviceImport() *interpret.Hooks {
	return &interpret.Hooks{
		Dependencies: func(_ context.Context, obj *unstructured.Unstructured) ([]configv1alpha1.DependentObjectReference,
			error) {
			derived := names.DerivedService(obj.GetName())
			return interpret.SortDependencies([]configv1alpha1.DependentObjectReference{
				{APIVersion: "v1", Kind: "Service", Namespace: obj.GetNamespace(), Name: derived},
				{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice", Namespace: obj.GetNamespace(),
					LabelSelector: &metav1.LabelSelector{
						MatchLabels: map[string]string{discoveryv1.LabelServiceName: derived},
					}},
			}), nil
		},
	}
}
