package server

import (
	selectors "k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
)

// hubQuotas selects the ResourceQuotas that bind on the hub: those that no policy claims. One that a policy claims
// binds in members, and its status is theirs; who may have it claimed is judged by admission.
func hubQuotas() selectors.Selector {
	selector := selectors.NewSelector()
	for _, claim := range []string{policyv1alpha1.PropagationPolicyPermanentIDLabel,
		policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel} {
		unclaimed, err := selectors.NewRequirement(claim, selection.DoesNotExist, nil)
		if err != nil {
			panic(err) // the labels are constants
		}
		selector = selector.Add(*unclaimed)
	}
	return selector
}
