// Package simulate decides what a fleet would become if something changed: a cluster lost or tainted, a workload scaled, files
// applied. It goes the hub's own walk (propagate, interpret, schedule, override) on a copy, with room used up as workloads are placed;
// reading a fleet, and printing the report, are left to others.
package simulate

import (
	"context"

	corev1 "k8s.io/api/core/v1"
)

// Run is what becomes of the fleet by the change: first the fleet is settled as it is, which moves nothing in one that a hub
// has settled, then once more with the change. The same arguments, in any order of objects, give the same report.
// The error says what in the change contradicts the fleet or itself; that something does not fit is none.
func Run(ctx context.Context, f *Fleet, c Change) (Report, error) {
	before := newState(f.clone(), newRooms(f.clusters), f.invented)
	before.settle(ctx)

	next, touched, err := before.changed(ctx, c, Meaning)
	if err != nil {
		return Report{}, err
	}
	// What is free of a cluster moves with what the file says of it; what was placed before stays counted.
	left := before.rooms.clone()
	for name, was := range before.clusters {
		is := next.clusters[name]
		if is == nil {
			delete(left.free, name)
			continue
		}
		if is != was {
			left.adjust(name, freeOf(was.Status.ResourceSummary), freeOf(is.Status.ResourceSummary))
		}
	}
	for name, is := range next.clusters {
		if free := freeOf(is.Status.ResourceSummary); before.clusters[name] == nil && free != nil {
			left.free[name] = free
		}
	}
	after := newState(next, left, touched)
	after.evicting = map[string][]corev1.Taint{}
	for _, t := range c.Taints {
		if t.Effect == corev1.TaintEffectNoExecute {
			after.evicting[t.Cluster] = append(after.evicting[t.Cluster], t.Taint)
		}
	}
	after.settle(ctx)
	return report(c, before, after), nil
}

// adjust has a cluster be as is where it was as was; either is nil where the cluster did not say.
func (r rooms) adjust(cluster string, was, is amounts) {
	if is == nil {
		delete(r.free, cluster)
		return
	}
	free := amounts{}
	for name, n := range is {
		free[name] = n
		if used, counted := r.free[cluster][name]; counted {
			free[name] += used - was[name]
		}
	}
	r.free[cluster] = free
}
