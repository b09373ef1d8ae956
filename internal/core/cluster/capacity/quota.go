package capacity

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Quota has the remaining requests and limits of a ResourceQuota.
type Quota struct {
	Namespace, Name string
	// left has the amounts that may still be requested, by resource. By limits.cpu and the like it has the sum that
	// limits may still have.
	left     Amounts
	selector []corev1.ScopedResourceSelectorRequirement
}

// QuotaOf converts a quota. It uses the spec until the quota controller has written the status.
func QuotaOf(q *corev1.ResourceQuota) Quota {
	kept := Quota{Namespace: q.Namespace, Name: q.Name, left: Amounts{}}
	hard := q.Status.Hard
	if len(hard) == 0 {
		hard = q.Spec.Hard
	}
	for name, most := range hard {
		counted, ok := countedResource(name)
		if !ok {
			continue
		}
		most := most.DeepCopy()
		most.Sub(q.Status.Used[name])
		left := max(0, Amount(counted, most))
		if most.Sign() < 0 {
			left = 0
		}
		if known, twice := kept.left[counted]; !twice || left < known {
			kept.left[counted] = left
		}
	}
	for _, scope := range q.Spec.Scopes {
		kept.selector = append(kept.selector,
			corev1.ScopedResourceSelectorRequirement{ScopeName: scope, Operator: corev1.ScopeSelectorOpExists})
	}
	if q.Spec.ScopeSelector != nil {
		kept.selector = append(kept.selector, q.Spec.ScopeSelector.MatchExpressions...)
	}
	return kept
}

// countedResource returns the pod resource that an entry of a quota limits.
func countedResource(entry corev1.ResourceName) (corev1.ResourceName, bool) {
	switch entry {
	case corev1.ResourcePods, "count/pods":
		return corev1.ResourcePods, true
	case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage,
		corev1.ResourceLimitsCPU, corev1.ResourceLimitsMemory, corev1.ResourceLimitsEphemeralStorage:
		return entry, true
	}
	if strings.HasPrefix(string(entry), corev1.ResourceHugePagesPrefix) {
		return entry, true
	}
	name, requests := strings.CutPrefix(string(entry), corev1.DefaultResourceRequestsPrefix)
	if name == string(corev1.ResourceStorage) {
		return "", false // storage counts PersistentVolumeClaims
	}
	return canonical(corev1.ResourceName(name)), requests
}

// appliesTo reports whether the scopes of the quota select the replicas. It assumes pods without cross-namespace
// affinity, which a requirement does not contain.
func (q *Quota) appliesTo(r *Requirement) bool {
	bestEffort := !slices.ContainsFunc(r.requests, func(q request) bool {
		return q.name == corev1.ResourceCPU || q.name == corev1.ResourceMemory
	})
	for _, s := range q.selector {
		var is bool
		switch s.ScopeName {
		case corev1.ResourceQuotaScopeBestEffort:
			is = bestEffort
		case corev1.ResourceQuotaScopeNotBestEffort:
			is = !bestEffort
		case corev1.ResourceQuotaScopeTerminating:
			is = r.terminating
		case corev1.ResourceQuotaScopeNotTerminating:
			is = !r.terminating
		case corev1.ResourceQuotaScopePriorityClass:
			switch s.Operator {
			case corev1.ScopeSelectorOpExists:
				is = r.priorityClass != ""
			case corev1.ScopeSelectorOpDoesNotExist:
				is = r.priorityClass == ""
			case corev1.ScopeSelectorOpIn:
				is = slices.Contains(s.Values, r.priorityClass)
			case corev1.ScopeSelectorOpNotIn:
				is = !slices.Contains(s.Values, r.priorityClass)
			}
		}
		if !is {
			return false
		}
	}
	return true
}

// grew reports whether the quota allows more than before or has other scopes.
func (q *Quota) grew(was *Quota) bool {
	if len(was.left) > len(q.left) || !slices.EqualFunc(q.selector, was.selector,
		func(a, b corev1.ScopedResourceSelectorRequirement) bool {
			return a.ScopeName == b.ScopeName && a.Operator == b.Operator && slices.Equal(a.Values, b.Values)
		}) {
		return true
	}
	for name, left := range was.left {
		if now, bounded := q.left[name]; !bounded || now > left {
			return true
		}
	}
	return false
}
