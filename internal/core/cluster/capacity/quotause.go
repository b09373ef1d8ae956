package capacity

import (
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/object/text"
)

// QuotaUse has the amounts that a pod uses of the quotas of its namespace besides its requests.
type QuotaUse struct {
	// Limits has the entries of quotas, such as limits.cpu, that the pod counts in.
	Limits corev1.ResourceList `json:"limits,omitempty"`
	// Terminating is true for a pod with activeDeadlineSeconds, which quotas may have as their scope.
	Terminating bool `json:"terminating,omitempty"`
}

// QuotaUseOf returns the use of a pod with this spec. A limit that only some containers have counts in part. Those that
// a LimitRange of the member adds are not known.
func QuotaUseOf(spec *corev1.PodSpec) QuotaUse {
	u := QuotaUse{Terminating: spec.ActiveDeadlineSeconds != nil}
	limits := resourcehelper.PodLimits(&corev1.Pod{Spec: *spec}, resourcehelper.PodResourcesOptions{})
	for name, q := range limits {
		entry := "limits." + name
		if _, counted := countedResource(entry); !counted {
			continue
		}
		if u.Limits == nil {
			u.Limits = corev1.ResourceList{}
		}
		u.Limits[entry] = q
	}
	return u
}

func (u QuotaUse) empty() bool { return len(u.Limits) == 0 && !u.Terminating }

// Text returns the value of wellknown.QuotaUseAnnotation; empty for a pod that counts nothing else.
func (u QuotaUse) Text() string {
	if u.empty() {
		return ""
	}
	return text.JSON(u)
}

// QuotaUseOfBinding returns the use in a binding's annotation. An invalid value counts as none.
func QuotaUseOfBinding(b workv1alpha2.Binding) (u QuotaUse) {
	if text := b.GetAnnotations()[wellknown.QuotaUseAnnotation]; text != "" && json.Unmarshal([]byte(text), &u) != nil {
		return QuotaUse{}
	}
	return u
}

func (r *Requirement) setQuotaUse(u QuotaUse) {
	r.terminating = u.Terminating
	r.limits = slices.DeleteFunc(requestsOf(u.Limits), func(q request) bool { return q.name == corev1.ResourcePods })
}

// quotaUse is the inverse of setQuotaUse.
func (r *Requirement) quotaUse() QuotaUse {
	return QuotaUse{Limits: listOf(r.limits), Terminating: r.terminating}
}

// inQuotas returns what a replica counts in quotas.
func (r *Requirement) inQuotas() []request {
	if len(r.limits) == 0 {
		return r.requests
	}
	return slices.Concat(r.requests, r.limits)
}
