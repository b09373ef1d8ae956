package propagate

import (
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/match"
)

// Selected returns how closely the policy describes t. A policy that is being deleted selects nothing.
func Selected(p policyv1alpha1.Propagation, t match.Template) match.ImplicitPriority {
	if p.GetDeletionTimestamp() != nil {
		return match.None
	}
	return match.Selectors(p.GetNamespace(), p.PropagationSpec().ResourceSelectors, t)
}

// Match returns the policy of those given, in any order, that would claim the unclaimed template t; false if none
// selects it. Existing claims and preemption are ignored.
func Match(t match.Template, policies []policyv1alpha1.Propagation) (policyv1alpha1.Propagation, bool) {
	var best policyv1alpha1.Propagation
	bestPriority := match.None
	for _, p := range policies {
		priority := Selected(p, t)
		if priority == match.None {
			continue
		}
		if best == nil || before(p, priority, best, bestPriority) {
			best, bestPriority = p, priority
		}
	}
	return best, best != nil
}
