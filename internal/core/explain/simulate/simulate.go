// Package simulate decides the effect of a change on a fleet: a cluster lost or tainted, a workload scaled, files
// applied. It runs the hub's own pipeline (propagate, interpret, schedule, override) on a copy, and counts the capacity
// that placed workloads use. Callers read the fleet and print the report.
package simulate

import (
	"context"
	"maps"
	"slices"
	"time"
)

// Run simulates a change. First it settles the unchanged fleet, which moves nothing if a hub has settled it, then the
// fleet with the change. Equal arguments, with objects in any order, give equal reports. The error is about
// contradictions in the change; a workload that does not fit is no error.
func Run(ctx context.Context, f *Fleet, c Change) (Report, error) {
	now := f.latest()
	rooms, err := newRooms(f)
	if err != nil {
		return Report{}, err
	}
	before := newState(f.clone(), rooms, f.invented, now)
	before.rebalancing = slices.Collect(maps.Values(f.rebalancers))
	before.settle(ctx)

	next, touched, err := before.changed(ctx, c, Meaning, now)
	if err != nil {
		return Report{}, err
	}
	if err := rooms.become(before.Fleet, next); err != nil {
		return Report{}, err
	}
	after := newState(next, rooms, touched, now)
	after.unhealthy = map[string]time.Time{}
	for _, cluster := range c.Unhealthy {
		after.unhealthy[cluster] = now
	}
	for name, r := range next.rebalancers {
		if before.rebalancers[name] != r {
			after.rebalancing = append(after.rebalancing, r)
		}
	}
	if drain := before.drain(c.Drained); drain != nil {
		after.rebalancing = append(after.rebalancing, drain)
	}
	after.settle(ctx)
	return report(c, before, after), nil
}
