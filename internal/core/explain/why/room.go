package why

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/cluster/capacity"
	"github.com/argosy-io/argosy/internal/core/schedule"
)

// leftOf returns the free amount of a resource in a cluster; negative if more is requested than the cluster has.
func leftOf(s *clusterv1alpha1.ResourceSummary, name corev1.ResourceName) resource.Quantity {
	left := s.Allocatable[name].DeepCopy()
	for _, used := range []corev1.ResourceList{s.Allocated, s.Allocating} {
		if n, ok := used[name]; ok {
			left.Sub(n)
		}
	}
	return left
}

// split splits the difference of capacity and requests into a free and an over-committed amount; one of them is zero.
func split(left resource.Quantity) (free, over resource.Quantity) {
	zero := resource.Quantity{Format: left.Format}
	if left.Sign() < 0 {
		left.Neg()
		return zero, left
	}
	return left, zero
}

// roomLine returns "cpu: 4 of 10 free", or "cpu: over-committed by 2 of 10".
func roomLine(name corev1.ResourceName, left, all resource.Quantity) string {
	unit := capacity.UnitOf(name, all)
	free, over := split(left)
	if !over.IsZero() {
		return string(name) + ": over-committed by " + unit.Write(over) + ", has " + unit.Write(all)
	}
	return string(name) + ": " + unit.Write(free) + " of " + unit.Write(all) + " free"
}

// text returns in one line how much of a resource is free, and how much a replica requests. Each amount has a unit of
// its own: a request is often much smaller.
func (f Free) text() string {
	write := func(q resource.Quantity) string { return capacity.UnitOf(corev1.ResourceName(f.Resource), q).Write(q) }
	if f.OverCommitted != nil {
		return f.Resource + " over-committed by " + write(*f.OverCommitted) + ", a replica requests " + write(f.Request)
	}
	return write(f.Free) + " " + f.Resource + " free, a replica requests " + write(f.Request)
}

// limitIn returns what lets a cluster have less capacity for the binding than the sum of its free resources allows, and
// how to see it; empty if the sum explains the capacity.
func (e *explanation) limitIn(c schedule.Candidate) (what, next string) {
	b := e.ownBinding()
	if b == nil || e.Limits == nil || !c.Known || c.Available >= int64(b.BindingSpec().Replicas) {
		return "", ""
	}
	limit, known := e.Limits(c.Cluster.Name)
	if sum, summed := e.fleet.Room(b)(c.Cluster.Name); !known || !summed || int64(sum) <= c.Available {
		return "", ""
	}
	namespace, check := b.BindingSpec().Resource.Namespace, "for cluster "+c.Cluster.Name+" check "
	switch {
	case int64(limit.Replicas) > c.Available:
		return "its estimator answers that no more fit", check + "its estimator"
	case limit.Quota != "":
		return limit.QuotaText(namespace),
			fmt.Sprintf("%s`argosy get resourcequotas %s -n %s -C %s`", check, limit.Quota, namespace, c.Cluster.Name)
	case limit.Spread:
		return "its spread allows no more: " + capacity.SpreadOfBinding(b).String(),
			fmt.Sprintf("%s`argosy get nodes -C %s`", check, c.Cluster.Name)
	}
	var rules, whats []string
	selected := ""
	if need := b.BindingSpec().ReplicaRequirements; need != nil && need.NodeClaim != nil {
		if selector := labels.Set(need.NodeClaim.NodeSelector); len(selector) > 0 {
			rules, selected = append(rules, "nodeSelector "+selector.String()), "-l "+selector.String()+" "
		}
		if need.NodeClaim.HardNodeAffinity != nil {
			rules = append(rules, "its node affinity")
		}
	}
	count := func(n int, nodes string) {
		if n > 0 {
			whats = append(whats, fmt.Sprintf("%s: %d of %d", nodes, n, limit.Nodes))
		}
	}
	count(limit.Unmatched, "nodes that do not match "+strings.Join(rules, " and "))
	for _, resource := range slices.Sorted(maps.Keys(limit.Lacking)) {
		count(limit.Lacking[resource], "nodes that lack "+resource)
	}
	count(limit.Tainted, "nodes with a taint that it does not tolerate")
	count(limit.NotReady, "nodes that are not ready")
	return strings.Join(whats, "; "), fmt.Sprintf("%s`argosy get nodes %s-C %s`", check, selected, c.Cluster.Name)
}
