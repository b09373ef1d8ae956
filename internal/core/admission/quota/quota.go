// Package quota decides what FederatedResourceQuotas permit: what the bindings of a namespace use together, see
// propagate.Used, must not grow beyond the quotas of the namespace.
package quota

import (
	"fmt"
	"maps"
	"net/http"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/propagate"
)

// Check returns an *ExceededError if a change of a binding would exceed a quota of its namespace; was is nil for a new
// one. others is what all other bindings of the namespace use. A resource of which the binding does not use more is not
// checked, so a quota below the usage refuses growth only. All quotas must permit the change.
func Check(quotas []policyv1alpha1.FederatedResourceQuota, others corev1.ResourceList,
	was, is *workv1alpha2.ResourceBindingSpec) error {
	before, after := propagate.Used(was), propagate.Used(is)
	for i := range quotas {
		q := &quotas[i]
		for _, name := range slices.Sorted(maps.Keys(q.Spec.Overall)) {
			asked, limit := after[name], q.Spec.Overall[name]
			sum := asked.DeepCopy()
			sum.Add(others[name])
			if asked.Cmp(before[name]) > 0 && sum.Cmp(limit) > 0 {
				return &ExceededError{Namespace: q.Namespace, Quota: q.Name, Resource: name, Others: others[name], Asked: asked,
					Sum: sum, Limit: limit}
			}
		}
	}
	return nil
}

// ExceededError means that a write of a binding was refused because of a quota.
type ExceededError struct {
	Namespace, Quota string
	Resource         corev1.ResourceName
	// Others is what the other workloads of the namespace use, Asked what the workload would use, and Sum both.
	Others, Asked, Sum, Limit resource.Quantity
}

// ReasonExceeded is the reason of the refusal.
const ReasonExceeded metav1.StatusReason = workv1alpha2.ReasonQuotaExceeded

func (e *ExceededError) Error() string {
	return fmt.Sprintf("FederatedResourceQuota(%s/%s) exceeded for resource %s: requested sum %s, limit %s.", e.Namespace,
		e.Quota, e.Resource, e.Sum.String(), e.Limit.String())
}

// Denied returns err with the sender that Karmada names in conditions and events, which its users search for.
func Denied(err error) error {
	return fmt.Errorf(`admission webhook "resourcebinding.karmada.io" denied the request: %w`, err)
}

// Help returns the figures, and what to change.
func (e *ExceededError) Help() string {
	return fmt.Sprintf("the workload needs %s and the others in namespace %s use %s of %s: raise overall.%s of FederatedResourceQuota %s to %s, or lower replicas or requests in the namespace",
		e.Asked.String(), e.Namespace, e.Others.String(), e.Limit.String(), e.Resource, e.Quota, e.Sum.String())
}

// Status is what the API server answers.
func (e *ExceededError) Status() metav1.Status {
	return metav1.Status{Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: ReasonExceeded,
		Message: Denied(e).Error()}
}

// Eases reports whether a change of a quota may permit what it refused before: a limit was raised, or less is used.
func Eases(was, is *policyv1alpha1.FederatedResourceQuota) bool {
	for name, limit := range was.Spec.Overall {
		now, limited := is.Spec.Overall[name]
		used := is.Status.OverallUsed[name]
		if !limited || now.Cmp(limit) > 0 || used.Cmp(was.Status.OverallUsed[name]) < 0 {
			return true
		}
	}
	return false
}

// TemplateAdvice warns of a change of a template that the quotas of its namespace block. was and is are the Demand
// before and after the change.
func TemplateAdvice(quotas []policyv1alpha1.FederatedResourceQuota, was, is corev1.ResourceList) (advice []string) {
	for i := range quotas {
		q := &quotas[i]
		for _, name := range slices.Sorted(maps.Keys(q.Spec.Overall)) {
			limit, used, more := q.Spec.Overall[name], q.Status.OverallUsed[name], is[name].DeepCopy()
			more.Sub(was[name])
			left := limit.DeepCopy()
			left.Sub(used)
			if more.Sign() > 0 && more.Cmp(left) > 0 {
				advice = append(advice, fmt.Sprintf(
					"FederatedResourceQuota %s of namespace %s limits %s to %s, and %s is in use: this asks for at least %s more, so the clusters keep what they have until the quota permits the change",
					q.Name, q.Namespace, name, limit.String(), used.String(), more.String()))
			}
		}
	}
	return advice
}
