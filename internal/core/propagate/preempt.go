package propagate

import (
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/match"
)

// Preempt returns the policy that takes t from the policy claiming, among policies in any order; false if claiming
// keeps t. Only policies with `preemption: Always` preempt, and only a policy of lower order:
//
//	namespaced policy > any cluster policy;  in the same scope the higher spec.priority
//
// Specific selectors, then names, decide between policies that may preempt, never against claiming.
func Preempt(t match.Template, claiming policyv1alpha1.Propagation,
	policies []policyv1alpha1.Propagation) (policyv1alpha1.Propagation, bool) {
	var higher []policyv1alpha1.Propagation
	for _, p := range policies {
		if p.PropagationSpec().Preemption == policyv1alpha1.PreemptAlways && above(p, claiming) {
			higher = append(higher, p)
		}
	}
	return Match(t, higher)
}

func above(p, claiming policyv1alpha1.Propagation) bool {
	if pn, hn := Namespaced(p), Namespaced(claiming); pn != hn {
		return pn
	}
	return Priority(p) > Priority(claiming)
}
