package quota

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
)

// Usage is how much of a limit a quota uses.
type Usage struct {
	Namespace, Name string
	Resource        corev1.ResourceName
	// Cluster is empty for a limit over all clusters.
	Cluster string
	// Ratio is what is used, divided by the limit.
	Ratio float64
}

// MostUsed returns the limits of quotas of which at least this share is used, at most a number of them, the most used
// first. Usage is that of the statuses of the quotas. A limit of zero is always used up and does not count.
func MostUsed(all []policyv1alpha1.FederatedResourceQuota, from float64, most int) []Usage {
	var out []Usage
	for i := range all {
		q := &all[i]
		compare := func(cluster string, limits, used corev1.ResourceList) {
			for _, name := range slices.Sorted(maps.Keys(limits)) {
				limit, uses := limits[name], used[name]
				if limit.Sign() <= 0 {
					continue
				}
				if ratio := uses.AsApproximateFloat64() / limit.AsApproximateFloat64(); ratio > 0 && ratio >= from {
					out = append(out, Usage{q.Namespace, q.Name, name, cluster, ratio})
				}
			}
		}
		compare("", q.Spec.Overall, q.Status.OverallUsed)
		for _, c := range q.Status.AggregatedStatus {
			compare(c.ClusterName, c.Hard, c.Used)
		}
	}
	slices.SortFunc(out, func(a, b Usage) int {
		return cmp.Or(cmp.Compare(b.Ratio, a.Ratio), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name),
			cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Resource, b.Resource))
	})
	return out[:min(len(out), most)]
}
