package validate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
)

// quotaCompute are the unqualified resources that workloads request, quotaLimits the others of Kubernetes' quotas that
// are quantities, and quotaCounts those that count objects.
var (
	quotaCompute = []corev1.ResourceName{"cpu", "memory", "ephemeral-storage"}
	quotaLimits  = []corev1.ResourceName{"requests.cpu", "requests.memory", "requests.storage",
		"requests.ephemeral-storage", "limits.cpu", "limits.memory", "limits.ephemeral-storage"}
	quotaCounts = []corev1.ResourceName{"persistentvolumeclaims", "pods", "resourcequotas", "services",
		"replicationcontrollers", "secrets", "configmaps", "services.nodeports", "services.loadbalancers"}
)

// FederatedResourceQuota validates a quota.
func FederatedResourceQuota(q *policyv1alpha1.FederatedResourceQuota) field.ErrorList {
	var errs field.ErrorList
	if len(q.Name) > validation.DNS1123LabelMaxLength {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), q.Name,
			fmt.Sprintf("must be no more than %d characters", validation.DNS1123LabelMaxLength)))
	}
	path := field.NewPath("spec")
	errs = append(errs, quotaResources(q.Spec.Overall, path.Child("overall"))...)
	sums := corev1.ResourceList{}
	for i, a := range q.Spec.StaticAssignments {
		at := path.Child("staticAssignments").Index(i)
		errs = append(errs, ClusterName(a.ClusterName, at.Child("clusterName"))...)
		errs = append(errs, quotaResources(a.Hard, at.Child("hard"))...)
		for _, name := range slices.Sorted(maps.Keys(a.Hard)) {
			if _, limited := q.Spec.Overall[name]; !limited {
				errs = append(errs, field.Invalid(at.Child("hard").Key(string(name)), name,
					"assignment resourceName is not exist in overall"))
			}
			sum := a.Hard[name].DeepCopy()
			sum.Add(sums[name])
			sums[name] = sum
		}
	}
	for _, name := range slices.Sorted(maps.Keys(q.Spec.Overall)) {
		if limit := q.Spec.Overall[name]; limit.Cmp(sums[name]) < 0 {
			errs = append(errs, field.Invalid(path.Child("overall").Key(string(name)), limit.String(),
				"overall is less than assignments"))
		}
	}
	return errs
}

func quotaResources(list corev1.ResourceList, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(list)) {
		at, text, quantity := path.Key(string(name)), string(name), list[name]
		errs = append(errs, valid(at, text, validation.IsQualifiedName)...)
		qualified := strings.Contains(text, "/")
		hugePages := strings.HasPrefix(strings.TrimPrefix(text, "requests."), corev1.ResourceHugePagesPrefix)
		if !qualified && !hugePages && !slices.Contains(slices.Concat(quotaCompute, quotaLimits, quotaCounts), name) {
			errs = append(errs, field.Invalid(at, text, "must be a standard resource for quota"))
		}
		if quantity.Cmp(resource.Quantity{}) < 0 {
			errs = append(errs, field.Invalid(at, quantity.String(), "must be greater than or equal to 0"))
		}
		extended := qualified && !strings.Contains(text, "kubernetes.io/") && !strings.HasPrefix(text, "requests.")
		if (extended || slices.Contains(quotaCounts, name)) && quantity.MilliValue()%1000 != 0 {
			errs = append(errs, field.Invalid(at, quantity.String(), "must be an integer"))
		}
	}
	return errs
}

// FederatedResourceQuotaAdvice returns warnings for the author of a valid quota. used is what the workloads of its
// namespace use, and clusters are the names of the fleet.
func FederatedResourceQuotaAdvice(q *policyv1alpha1.FederatedResourceQuota, used corev1.ResourceList,
	clusters []string) (advice []string) {
	for _, name := range slices.Sorted(maps.Keys(q.Spec.Overall)) {
		limit, uses := q.Spec.Overall[name], used[name]
		switch {
		case slices.Contains(quotaLimits, name) || slices.Contains(quotaCounts, name):
			advice = append(advice, fmt.Sprintf(
				"spec.overall[%s]: the hub does not count it, so it limits nothing across clusters: use cpu, memory, ephemeral-storage or an extended resource, or assign it to single clusters",
				name))
		case uses.Cmp(limit) > 0:
			advice = append(advice, fmt.Sprintf(
				"spec.overall[%s]: namespace %s uses %s, which is more than %s: everything keeps running, and nothing that uses %s can grow",
				name, q.Namespace, uses.String(), limit.String(), name))
		}
	}
	for i, a := range q.Spec.StaticAssignments {
		at := fmt.Sprintf("spec.staticAssignments[%d].clusterName", i)
		switch same := func(b policyv1alpha1.StaticClusterAssignment) bool { return b.ClusterName == a.ClusterName }; {
		case slices.IndexFunc(q.Spec.StaticAssignments, same) < i:
			advice = append(advice, fmt.Sprintf("%s: cluster %s is listed before, and the first limits count", at,
				a.ClusterName))
		case !slices.Contains(clusters, a.ClusterName):
			advice = append(advice, fmt.Sprintf("%s: there is no cluster %s; it gets its ResourceQuota when it joins", at,
				a.ClusterName))
		}
	}
	return advice
}
