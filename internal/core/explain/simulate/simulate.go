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
// fleet with the change. The hub decides on each step of the change before members follow. Equal arguments, with the
// fleet's objects in any order, give equal reports. The error is about contradictions in the change; a workload that
// does not fit is no error.
func Run(ctx context.Context, f *Fleet, c Change) (Report, error) {
	now := f.latest()
	rooms, err := newRooms(f)
	if err != nil {
		return Report{}, err
	}
	before := newState(f.clone(), rooms, f.invented, now)
	before.past = true
	before.rebalancing = slices.Collect(maps.Values(f.rebalancers))
	before.settle(ctx)

	if _, _, err := before.changed(ctx, c, Meaning, now); err != nil {
		return Report{}, err
	}
	after := before
	for _, step := range c.steps() {
		if after, err = after.next(ctx, step); err != nil {
			return Report{}, err
		}
	}
	after.finish()
	return report(ctx, c, before, after), nil
}

// next returns the state after a step of a change, before members follow.
func (s *state) next(ctx context.Context, step Change) (*state, error) {
	next, touched, err := s.changed(ctx, step, Meaning, s.now)
	if err != nil {
		return nil, err
	}
	if err := s.rooms.become(s.Fleet, next); err != nil {
		return nil, err
	}
	n := newState(next, s.rooms, touched, s.now.Add(time.Duration(1+len(next.added))*time.Second))
	if !s.past {
		n.reasons, n.undetermined, n.unhealthy = s.reasons, s.undetermined, s.unhealthy
		n.warnings = append(n.warnings, s.warnings...)
	}
	for _, cluster := range step.Unhealthy {
		n.unhealthy[cluster] = s.now
	}
	for name, r := range next.rebalancers {
		if s.rebalancers[name] != r {
			n.rebalancing = append(n.rebalancing, r)
		}
	}
	if drain := s.drain(step.Drained); drain != nil {
		n.rebalancing = append(n.rebalancing, drain)
	}
	n.decideAll(ctx)
	if !s.past {
		maps.Copy(n.touched, s.touched) // for the report
	}
	return n, nil
}
