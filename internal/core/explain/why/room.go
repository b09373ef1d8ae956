package why

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

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
	if b == nil || e.Limits == nil || !c.Known || c.Available >= schedule.Wanted(b.BindingSpec()) {
		return "", ""
	}
	limit, known := e.Limits(c.Cluster.Name)
	if sum, summed := e.fleet.Room(b)(c.Cluster.Name); !known || !summed || int64(sum) <= c.Available {
		return "", ""
	}
	check := "for cluster " + c.Cluster.Name + " check "
	switch selector := limit.Selector(b); {
	case limit.Estimator:
		return limit.Text(b), check + "its estimator"
	case limit.Quota != "":
		return limit.Text(b), fmt.Sprintf("%s`argosy get resourcequotas %s -n %s -C %s`", check, limit.Quota,
			b.BindingSpec().Resource.Namespace, c.Cluster.Name)
	case limit.Spread || selector == "":
		return limit.Text(b), fmt.Sprintf("%s`argosy get nodes -C %s`", check, c.Cluster.Name)
	default:
		return limit.Text(b), fmt.Sprintf("%s`argosy get nodes -l %s -C %s`", check, selector, c.Cluster.Name)
	}
}
