// Package simulate decides what a fleet would become if something changed: a cluster lost or tainted, a workload
// scaled, files applied. It goes the hub's own walk (propagate, interpret, schedule, override) on a copy, with room
// used up as workloads are placed; reading a fleet, and printing the report, are left to others.
package simulate

import (
	"context"
	"maps"
	"slices"
	"time"
)

// Run is what becomes of the fleet by the change: first the fleet is settled as it is, which moves nothing in one that
// a hub has settled, then once more with the change. The same arguments, in any order of objects, give the same report.
// The error says what in the change contradicts the fleet or itself; that something does not fit is none.
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
