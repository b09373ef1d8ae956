package propagate

import (
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/match"
)

// Preempt returns the policy that takes t from holder, among policies in any order; false if holder keeps t. Only
// policies with `preemption: Always` preempt, and only a lower holder:
//
//	namespaced policy > any cluster policy;  in the same scope the higher spec.priority
//
// Specific selectors, then names, decide between policies that may preempt, never against the holder.
func Preempt(t match.Template, holder policyv1alpha1.Propagation,
	policies []policyv1alpha1.Propagation) (policyv1alpha1.Propagation, bool) {
	var higher []policyv1alpha1.Propagation
	for _, p := range policies {
		if p.PropagationSpec().Preemption == policyv1alpha1.PreemptAlways && above(p, holder) {
			higher = append(higher, p)
		}
	}
	return Match(t, higher)
}

func above(p, holder policyv1alpha1.Propagation) bool {
	if pn, hn := Namespaced(p), Namespaced(holder); pn != hn {
		return pn
	}
	return Priority(p) > Priority(holder)
}
