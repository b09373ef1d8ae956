package server

import (
	selectors "k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
)

// hubQuotas selects the ResourceQuotas that apply on the hub: those that no policy has claimed. A claimed one applies
// in members, and its status comes from them; admission decides who may have one claimed.
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
