package propagate

import (
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/object/fields"
)

// Lazy reports whether the policy takes effect only with the next change of a template.
func Lazy(p policyv1alpha1.Propagation) bool {
	return p.PropagationSpec().ActivationPreference == policyv1alpha1.LazyActivation
}

// Await marks a template that p claims after its creation, if p is Lazy: the policy then waits for a change of the
// template. Do not call it for a template that is being created, since its creation is a change by a user. It reports
// whether that changed anything.
func Await(template *unstructured.Unstructured, p policyv1alpha1.Propagation) bool {
	if !Lazy(p) {
		return StopWaiting(template)
	}
	was, now := template.GetAnnotations()[wellknown.AwaitingChangeAnnotation], userPart(Digest(template))
	fields.PutAnnotation(template, wellknown.AwaitingChangeAnnotation, now)
	return was != now
}

// activated reports whether p takes effect on the binding of a template that it claims; existing is nil if there is
// none. A policy that is not Lazy always does. It depends on the objects alone, so a restart changes nothing:
//
//	claimed after the fact      → once a user has changed the template since
//	claimed at creation         → at once
//	in effect already           → once a user has changed the template since the binding was created
//
// If unchanged, no user has changed the template, whatever its digest is.
func activated(
	template *unstructured.Unstructured, p policyv1alpha1.Propagation, existing workv1alpha2.Binding, unchanged bool,
) bool {
	if !Lazy(p) {
		return true
	}
	content := userPart(Digest(template))
	if claimedAt, waiting := template.GetAnnotations()[wellknown.AwaitingChangeAnnotation]; waiting {
		return !unchanged && claimedAt != content
	}
	if existing == nil {
		return true
	}
	if claim, claimed := Claimed(existing); !claimed || claim != ClaimOf(p) {
		return true
	}
	return !unchanged && userPart(existing.GetAnnotations()[wellknown.TemplateDigestAnnotation]) != content
}

// changes reports whether the binding of a template would differ in what it has from its policy if p took effect;
// existing is nil if there is none.
func changes(template *unstructured.Unstructured, p policyv1alpha1.Propagation, existing workv1alpha2.Binding) bool {
	if existing == nil {
		return true
	}
	has := existing.BindingSpec()
	m := Meaning{Unread: true}
	if has.SchedulePriority != nil {
		m.SchedulePriority = &has.SchedulePriority.Priority // the class may not be known here
	}
	b, err := Binding(template, p, m, existing)
	if err != nil {
		return true
	}
	b.BindingSpec().Resource = has.Resource
	if Single(template) {
		divideSingle(b.BindingSpec().Placement)
	}
	if (has.SchedulePriority == nil) != (p.PropagationSpec().SchedulePriority == nil) {
		return true
	}
	return !equality.Semantic.DeepEqual(b.BindingSpec(), has)
}

// claimedBinding returns the binding of a template that p claims, while p waits for a change of the template: it has
// the claim of p, and the rest stays. A label or annotation for the Works is no change of a user, and the Works follow
// it.
func claimedBinding(
	template *unstructured.Unstructured, p policyv1alpha1.Propagation, existing workv1alpha2.Binding,
) workv1alpha2.Binding {
	b := existing.DeepCopyObject().(workv1alpha2.Binding)
	Claim(b, p)
	if userPart(b.GetAnnotations()[wellknown.TemplateDigestAnnotation]) == userPart(Digest(template)) {
		Refer(b, template)
	}
	return b
}

// Waiting reports whether the template carries the mark of Await.
func Waiting(template *unstructured.Unstructured) bool {
	_, waiting := template.GetAnnotations()[wellknown.AwaitingChangeAnnotation]
	return waiting
}

// StopWaiting removes the mark of Await. It reports whether there was one.
func StopWaiting(template *unstructured.Unstructured) bool {
	waits := Waiting(template)
	fields.PutAnnotation(template, wellknown.AwaitingChangeAnnotation, "")
	return waits
}
