package propagate

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/match"
)

// PolicyClaim is the claim of a policy. An empty namespace is a ClusterPropagationPolicy.
type PolicyClaim struct {
	types.NamespacedName
	// ID is the policy's permanent id: a policy that was deleted and created again is another one.
	ID string
}

// String names the policy for people: "PropagationPolicy shop/web".
func (c PolicyClaim) String() string {
	if c.Namespace == "" {
		return "ClusterPropagationPolicy " + c.Name
	}
	return "PropagationPolicy " + c.NamespacedName.String()
}

// ID returns the policy's permanent id; empty until admission gave it one, and such a policy cannot claim.
func ID(p policyv1alpha1.Propagation) string { return p.GetLabels()[idLabel(p.GetNamespace())] }

func ClaimOf(p policyv1alpha1.Propagation) PolicyClaim {
	return PolicyClaim{NamespacedName: types.NamespacedName{Namespace: p.GetNamespace(), Name: p.GetName()}, ID: ID(p)}
}

// Claimed returns the policy that claims obj, a template or a binding; false if none does. A partial claim does not
// count.
func Claimed(obj metav1.Object) (PolicyClaim, bool) {
	labels, annotations := obj.GetLabels(), obj.GetAnnotations()
	if id := labels[policyv1alpha1.PropagationPolicyPermanentIDLabel]; id != "" {
		namespace, name := annotations[policyv1alpha1.PropagationPolicyNamespaceAnnotation],
			annotations[policyv1alpha1.PropagationPolicyNameAnnotation]
		if namespace != "" && name != "" {
			return PolicyClaim{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}, ID: id}, true
		}
	}
	if id := labels[policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel]; id != "" {
		if name := annotations[policyv1alpha1.ClusterPropagationPolicyNameAnnotation]; name != "" {
			return PolicyClaim{NamespacedName: types.NamespacedName{Name: name}, ID: id}, true
		}
	}
	return PolicyClaim{}, false
}

// Claim marks obj, a template or a binding, as claimed by p only. It reports whether that changed anything.
func Claim(obj metav1.Object, p policyv1alpha1.Propagation) bool { return mark(obj, ClaimOf(p)) }

// Unclaim removes every mark of a claim from obj, half ones included. It reports whether there were any.
func Unclaim(obj metav1.Object) bool { return mark(obj, PolicyClaim{}) }

// ClaimedBy reports whether obj carries the whole claim and no other. For the zero PolicyClaim: whether it carries
// none.
func ClaimedBy(obj metav1.Object, claim PolicyClaim) bool {
	labels, annotations := claims(claim)
	return !differs(obj.GetLabels(), labels) && !differs(obj.GetAnnotations(), annotations)
}

// StillSelects reports whether the claim is of p and p still selects t. Then it stays, whatever other policies do.
func StillSelects(p policyv1alpha1.Propagation, claim PolicyClaim, t match.Template) bool {
	return claim == ClaimOf(p) && Selected(p, t) != match.None
}

// mark makes the claim the only one on obj; the zero PolicyClaim is none.
func mark(obj metav1.Object, claim PolicyClaim) bool {
	if ClaimedBy(obj, claim) {
		return false
	}
	labels, annotations := claims(claim)
	obj.SetLabels(merged(obj.GetLabels(), labels))
	obj.SetAnnotations(merged(obj.GetAnnotations(), annotations))
	return true
}

// claims returns all keys that a claim may have, with their values for claim: empty values are keys that must be
// absent.
func claims(claim PolicyClaim) (labels, annotations map[string]string) {
	labels = map[string]string{
		policyv1alpha1.PropagationPolicyPermanentIDLabel:        "",
		policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel: "",
	}
	annotations = map[string]string{
		policyv1alpha1.PropagationPolicyNamespaceAnnotation:   "",
		policyv1alpha1.PropagationPolicyNameAnnotation:        "",
		policyv1alpha1.ClusterPropagationPolicyNameAnnotation: "",
	}
	switch {
	case claim.Name == "":
	case claim.Namespace == "":
		labels[policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel] = claim.ID
		annotations[policyv1alpha1.ClusterPropagationPolicyNameAnnotation] = claim.Name
	default:
		labels[policyv1alpha1.PropagationPolicyPermanentIDLabel] = claim.ID
		annotations[policyv1alpha1.PropagationPolicyNamespaceAnnotation] = claim.Namespace
		annotations[policyv1alpha1.PropagationPolicyNameAnnotation] = claim.Name
	}
	return labels, annotations
}

// differs reports whether merged would change have.
func differs(have, want map[string]string) bool {
	for key, value := range want {
		if got, present := have[key]; got != value || (value == "" && present) {
			return true
		}
	}
	return false
}

// merged returns have with the values of want, and without the keys that are empty in want. have is not changed.
func merged(have, want map[string]string) map[string]string {
	if !differs(have, want) {
		return have
	}
	out := make(map[string]string, len(have)+len(want))
	maps.Copy(out, have)
	for key, value := range want {
		if out[key] = value; value == "" {
			delete(out, key)
		}
	}
	return out
}

func idLabel(namespace string) string {
	if namespace == "" {
		return policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel
	}
	return policyv1alpha1.PropagationPolicyPermanentIDLabel
}
