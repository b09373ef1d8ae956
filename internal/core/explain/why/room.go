package why

import (
	"fmt"
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
// how to see it; empty if the sum explains the capacity. The nodes and quotas are known to the estimator alone.
func (e *explanation) limitIn(c schedule.Candidate) (what, next string) {
	b := e.ownBinding()
	if b == nil || e.Room == nil || !c.Known || len(b.BindingSpec().Components) > 0 ||
		c.Available >= int64(b.BindingSpec().Replicas) {
		return "", ""
	}
	if sum, known := e.fleet.Room(b)(c.Cluster.Name); !known || int64(sum) <= c.Available {
		return "", ""
	}
	spec := b.BindingSpec()
	var limits []string
	nodes := fmt.Sprintf("`argosy get nodes -C %s`", c.Cluster.Name)
	if need := spec.ReplicaRequirements; need != nil && need.NodeClaim != nil {
		if selector := need.NodeClaim.NodeSelector; len(selector) > 0 {
			limits = append(limits, "nodeSelector "+labels.Set(selector).String())
			nodes = fmt.Sprintf("`argosy get nodes -l %s -C %s`", labels.Set(selector), c.Cluster.Name)
		}
		if need.NodeClaim.HardNodeAffinity != nil {
			limits = append(limits, "the node affinity")
		}
	}
	if spread := capacity.SpreadOfBinding(b); !spread.Empty() {
		limits = append(limits, "the spread ("+spread.String()+")")
	}
	limits = append(limits, "taints or sizes of its nodes", "a ResourceQuota of namespace "+spec.Resource.Namespace)
	return "free resources would suffice for more; the limit is " + strings.Join(limits, ", or "),
		fmt.Sprintf("for cluster %s check %s and `argosy get resourcequotas -n %s -C %[1]s`", c.Cluster.Name, nodes,
			spec.Resource.Namespace)
}
