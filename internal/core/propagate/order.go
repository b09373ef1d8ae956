package propagate

import (
	"cmp"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/match"
)

// before reports whether policy p claims a template rather than q. pImplicit and qImplicit are how closely they
// describe it:
//
//	namespaced > cluster-wide;  then spec.priority;  then name > label > all;  then the smaller policy name, and namespace
//
// No two policies share scope, name and namespace, so the order is total.
func before(p policyv1alpha1.Propagation, pImplicit match.ImplicitPriority, q policyv1alpha1.Propagation,
	qImplicit match.ImplicitPriority) bool {
	if pn, qn := Namespaced(p), Namespaced(q); pn != qn {
		return pn
	}
	return cmp.Or(
		cmp.Compare(Priority(q), Priority(p)),
		cmp.Compare(qImplicit, pImplicit),
		cmp.Compare(p.GetName(), q.GetName()),
		cmp.Compare(p.GetNamespace(), q.GetNamespace()),
	) < 0
}

// Priority returns the policy's explicit priority; 0 if it has none.
func Priority(p policyv1alpha1.Propagation) int32 {
	if v := p.PropagationSpec().Priority; v != nil {
		return *v
	}
	return 0
}

// Namespaced reports whether the policy is a PropagationPolicy.
func Namespaced(p policyv1alpha1.Propagation) bool { return p.GetNamespace() != "" }
