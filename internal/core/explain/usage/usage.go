// Package usage sums what the workloads of the fleet request and use, by namespace, cluster or label. `argosy usage`
// shows its report.
package usage

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/aggregate"
	"github.com/argosy-io/argosy/internal/core/cluster/capacity"
	"github.com/argosy-io/argosy/internal/core/explain/overview"
	"github.com/argosy-io/argosy/internal/core/hub/roles"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/propagate"
)

// Grouping is what the rows of a report are.
type Grouping struct {
	// By is Namespace, Cluster or Label.
	By string
	// Key of the label, if By is Label.
	Key string
	// Clusters that count; nil for all.
	Clusters []string
	// Prices of a core, a GiB or a unit in an hour; nil for a report without costs.
	Prices map[corev1.ResourceName]float64
}

// The values of Grouping.By.
const (
	Namespace = "namespace"
	Cluster   = "cluster"
	Label     = "label"
)

// ParseGrouping reads namespace, cluster or label=KEY.
func ParseGrouping(by string) (Grouping, error) {
	key, isLabel := strings.CutPrefix(by, Label+"=")
	switch {
	case by == Namespace || by == Cluster:
		return Grouping{By: by}, nil
	case isLabel && len(validation.IsQualifiedName(key)) == 0:
		return Grouping{By: Label, Key: key}, nil
	}
	return Grouping{}, fmt.Errorf("%q must be namespace, cluster, or label=KEY", by)
}

// Facts are what a report follows from.
type Facts struct {
	Bindings []workv1alpha2.Binding
	// Pods are what pods of the members use now.
	Pods   []Pod
	Quotas []policyv1alpha1.FederatedResourceQuota
	// Labels are the labels of templates, and those of namespaces under an Object with only a name.
	Labels map[overview.Object]map[string]string
	// Before are the requests at an earlier time; nil if they are not known.
	Before []Sample
}

// Pod is what a pod of a member uses.
type Pod struct {
	Cluster, Namespace string
	Labels             map[string]string
	Usage              corev1.ResourceList
}

// Sample is what the workloads of a namespace requested in a cluster at a time: CPU in millicores, memory in bytes.
type Sample struct {
	Namespace string `json:"namespace"`
	Cluster   string `json:"cluster"`
	CPU       int64  `json:"cpu"`
	Memory    int64  `json:"memory"`
}

// Report is the answer. Missing has rights that the user lacks, so that a part is unknown. Notes has other reasons.
type Report struct {
	By      string          `json:"by"`
	Groups  []Group         `json:"groups"`
	Total   Group           `json:"total"`
	Notes   []string        `json:"notes,omitempty"`
	Missing []roles.Missing `json:"missing,omitempty"`
}

// Group is a namespace, a cluster or a value of the label; empty without the label. Resources are cpu, memory, and
// others by name.
type Group struct {
	Name      string     `json:"name"`
	Resources []Resource `json:"resources"`
	// Cost is what all resources cost in 30 days; absent without prices.
	Cost *float64 `json:"cost30d,omitempty"`
}

// Resource has the amounts of a resource. Absent amounts are unknown, or there are none.
type Resource struct {
	Name      corev1.ResourceName `json:"name"`
	Requested resource.Quantity   `json:"requested"`
	Limits    resource.Quantity   `json:"limits"`
	Used      *resource.Quantity  `json:"used,omitempty"`
	// UsedPercent is Used as a share of Requested.
	UsedPercent *int64             `json:"usedPercent,omitempty"`
	Quota       *resource.Quantity `json:"quota,omitempty"`
	// Change is how much more is requested than at the earlier time.
	Change *resource.Quantity `json:"change,omitempty"`
	Cost   *float64           `json:"cost30d,omitempty"`
}

// Part is what one workload requests in one cluster, all replicas together.
type Part struct {
	Cluster          string
	Requests, Limits corev1.ResourceList
}

// Counts reports whether it requests something or has limits.
func (p Part) Counts() bool { return len(p.Requests)+len(p.Limits) > 0 }

// PartsOf returns the parts of a binding. A run that has finished requests nothing.
func PartsOf(b workv1alpha2.Binding) (parts []Part) {
	spec, use := b.BindingSpec(), capacity.QuotaUseOfBinding(b)
	gk := match.GroupKind(spec.Resource.APIVersion, spec.Resource.Kind)
	over := map[string]bool{}
	for _, item := range b.BindingStatus().AggregatedStatus {
		over[item.ClusterName] = aggregate.Final(gk, item.Status)
	}
	if aggregate.RunEnd(b.BindingStatus().Conditions) != nil {
		return nil
	}
	for _, target := range spec.Clusters {
		if over[target.Name] {
			continue
		}
		one := *spec
		one.Clusters = []workv1alpha2.TargetCluster{target}
		p := Part{Cluster: target.Name, Requests: propagate.Used(&one), Limits: corev1.ResourceList{}}
		for entry, q := range use.Limits {
			name, is := strings.CutPrefix(string(entry), "limits.")
			if is && len(spec.Components) == 0 && q.Sign() > 0 && target.Replicas > 0 {
				q = q.DeepCopy()
				q.Mul(int64(target.Replicas))
				p.Limits[corev1.ResourceName(name)] = q
			}
		}
		for name, q := range p.Requests { // Kubernetes requires equal limits for extended resources and huge pages
			if strings.Contains(string(name), "/") || strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix) {
				p.Limits[name] = q
			}
		}
		parts = append(parts, p)
	}
	return parts
}

// Samples returns what bindings request now, sorted by namespace and cluster. Objects without requests have none.
func Samples(bindings []workv1alpha2.Binding) []Sample {
	sums := map[[2]string]Sample{}
	for _, b := range bindings {
		namespace := b.BindingSpec().Resource.Namespace
		for _, p := range PartsOf(b) {
			key := [2]string{namespace, p.Cluster}
			s := sums[key]
			s.Namespace, s.Cluster = namespace, p.Cluster
			s.CPU, s.Memory = s.CPU+p.Requests.Cpu().MilliValue(), s.Memory+p.Requests.Memory().Value()
			sums[key] = s
		}
	}
	maps.DeleteFunc(sums, func(_ [2]string, s Sample) bool { return s.CPU == 0 && s.Memory == 0 })
	return slices.SortedFunc(maps.Values(sums), func(a, b Sample) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Cluster, b.Cluster))
	})
}

// sums collects the amounts of a group.
type sums struct {
	requested, limits, used corev1.ResourceList
	// quota and before are nil if they are unknown.
	quota, before corev1.ResourceList
}

// ReportOf returns the report. Only pods in namespaces that have objects of the hub count.
func ReportOf(g Grouping, f Facts) Report {
	groups, has := map[string]*sums{}, map[string]bool{}
	counts := func(cluster string) bool { return g.Clusters == nil || slices.Contains(g.Clusters, cluster) }
	of := func(name string) *sums {
		if groups[name] == nil {
			groups[name] = &sums{requested: corev1.ResourceList{}, limits: corev1.ResourceList{}, used: corev1.ResourceList{}}
		}
		return groups[name]
	}
	total := &sums{requested: corev1.ResourceList{}, limits: corev1.ResourceList{}, used: corev1.ResourceList{}}
	for _, b := range f.Bindings {
		ref := b.BindingSpec().Resource
		for _, p := range PartsOf(b) {
			has[ref.Namespace] = true
			if !counts(p.Cluster) {
				continue
			}
			for _, s := range []*sums{of(g.groupOf(p.Cluster, ref.Namespace, f.labelsOf(ref), f)), total} {
				addTo(s.requested, p.Requests)
				addTo(s.limits, p.Limits)
			}
		}
	}
	for _, p := range f.Pods {
		if has[p.Namespace] && counts(p.Cluster) {
			addTo(of(g.groupOf(p.Cluster, p.Namespace, p.Labels, f)).used, p.Usage)
			addTo(total.used, p.Usage)
		}
	}
	if f.Before != nil && g.By != Label {
		total.before = corev1.ResourceList{}
		for _, s := range groups {
			s.before = corev1.ResourceList{}
		}
		for _, s := range f.Before {
			if counts(s.Cluster) {
				was := corev1.ResourceList{corev1.ResourceCPU: capacity.Quantity(corev1.ResourceCPU, s.CPU),
					corev1.ResourceMemory: capacity.Quantity(corev1.ResourceMemory, s.Memory)}
				group := of(g.groupOf(s.Cluster, s.Namespace, nil, f))
				if group.before == nil {
					group.before = corev1.ResourceList{}
				}
				addTo(group.before, was)
				addTo(total.before, was)
			}
		}
	}
	g.limit(groups, f)
	r := Report{By: cmp.Or(g.Key, g.By), Groups: []Group{}, Total: g.group("", total)}
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		if group := g.group(name, groups[name]); len(group.Resources) > 0 {
			r.Groups = append(r.Groups, group)
		}
	}
	return r
}

// groupOf returns the group of a workload or of a pod. The label of the namespace counts for what lacks the label.
func (g Grouping) groupOf(cluster, namespace string, labels map[string]string, f Facts) string {
	switch g.By {
	case Cluster:
		return cluster
	case Label:
		return cmp.Or(labels[g.Key], f.Labels[overview.Object{Name: namespace}][g.Key])
	}
	return namespace
}

func (f Facts) labelsOf(ref workv1alpha2.ObjectReference) map[string]string {
	gk := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind()
	return f.Labels[overview.Object{Group: gk.Group, Kind: gk.Kind, Namespace: ref.Namespace, Name: ref.Name}]
}

// limit sets the quotas of namespaces. A report of some clusters has none, because a quota is for all of them.
func (g Grouping) limit(groups map[string]*sums, f Facts) {
	for _, q := range f.Quotas {
		s := groups[q.Namespace]
		if g.By != Namespace || g.Clusters != nil || s == nil {
			continue
		}
		if s.quota == nil {
			s.quota = corev1.ResourceList{}
		}
		for name, most := range q.Spec.Overall {
			if least, known := s.quota[name]; !known || most.Cmp(least) < 0 {
				s.quota[name] = most
			}
		}
	}
}

// hours are those of 30 days.
const hours = 30 * 24

func (g Grouping) group(name string, s *sums) Group {
	names := map[corev1.ResourceName]bool{}
	for _, list := range []corev1.ResourceList{s.requested, s.limits, s.used, s.before} {
		for resource, q := range list {
			names[resource] = names[resource] || q.Sign() > 0
		}
	}
	maps.DeleteFunc(names, func(_ corev1.ResourceName, some bool) bool { return !some })
	group := Group{Name: name, Resources: []Resource{}}
	for _, name := range slices.SortedFunc(maps.Keys(names), byImportance) {
		r := Resource{Name: name, Requested: quantity(name, s.requested), Limits: quantity(name, s.limits)}
		if _, known := s.used[name]; known {
			r.Used = new(quantity(name, s.used))
			if wanted := r.Requested.AsApproximateFloat64(); wanted > 0 {
				r.UsedPercent = new(int64(100*r.Used.AsApproximateFloat64()/wanted + 0.5))
			}
		}
		if most, known := s.quota[name]; known {
			r.Quota = &most
		}
		if s.before != nil && (name == corev1.ResourceCPU || name == corev1.ResourceMemory) {
			change := r.Requested.DeepCopy()
			change.Sub(quantity(name, s.before))
			r.Change = &change
		}
		if price, known := g.Prices[name]; known {
			r.Cost = new(price * hours * r.Requested.AsApproximateFloat64() / unit(name))
			if group.Cost == nil {
				group.Cost = new(float64)
			}
			*group.Cost += *r.Cost
		}
		group.Resources = append(group.Resources, r)
	}
	return group
}

// byImportance sorts cpu and memory before other resources.
func byImportance(a, b corev1.ResourceName) int {
	rank := map[corev1.ResourceName]int{corev1.ResourceCPU: -2, corev1.ResourceMemory: -1}
	return cmp.Or(rank[a]-rank[b], cmp.Compare(a, b))
}

// isBytes reports whether a resource is counted in bytes.
func isBytes(name corev1.ResourceName) bool {
	return name == corev1.ResourceMemory || name == corev1.ResourceEphemeralStorage || name == corev1.ResourceStorage ||
		strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

// unit returns the amount that a price is for.
func unit(name corev1.ResourceName) float64 {
	if isBytes(name) {
		return 1 << 30
	}
	return 1
}

// quantity returns an amount in millicores, in units, or in bytes. From 10 MiB on it is rounded up to MiB.
func quantity(name corev1.ResourceName, list corev1.ResourceList) resource.Quantity {
	n := capacity.Amount(name, list[name])
	const mib = 1 << 20
	if isBytes(name) && n > 10*mib {
		n = (n + mib - 1) / mib * mib
	}
	return capacity.Quantity(name, n)
}

func addTo(sum, list corev1.ResourceList) {
	for name, q := range list {
		if q.Sign() > 0 {
			q = q.DeepCopy()
			q.Add(sum[name])
			sum[name] = q
		}
	}
}
