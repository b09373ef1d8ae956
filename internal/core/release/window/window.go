// Package window computes when the windows of a ReleaseGuard let releases start.
package window

import (
	"cmp"
	"time"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/object/crontab"
)

// State is whether windows let releases start at a time.
type State struct {
	Open bool
	// Reason why not: releasev1alpha1.ReasonFrozen in a Deny window, releasev1alpha1.ReasonOutsideWindow otherwise.
	Reason string
	// Because is the reason of the Deny window, for people.
	Because string
	// Until is when Open changes; zero if it does not within horizon.
	Until time.Time
}

const (
	// horizon is the time ahead in which a change is searched, and steps the number of beginnings and ends of windows that
	// are looked at.
	horizon, steps = 400 * 24 * time.Hour, 1000
)

// StateOf returns the state of windows at a time. It ignores a window that cannot be read: admission refuses those.
func StateOf(windows []releasev1alpha1.ReleaseWindow, now time.Time) State {
	s := stateAt(windows, now)
	for t, n := now, 0; n < steps; n++ {
		if t = nextChange(windows, t); t.IsZero() || t.Sub(now) > horizon {
			return s
		}
		if stateAt(windows, t).Open != s.Open {
			s.Until = t.UTC()
			return s
		}
	}
	return s
}

// stateAt is StateOf without Until.
func stateAt(windows []releasev1alpha1.ReleaseWindow, now time.Time) State {
	s := State{Open: true}
	for _, w := range windows {
		if w.Kind == releasev1alpha1.WindowAllow && s.Open {
			s = State{Reason: releasev1alpha1.ReasonOutsideWindow}
		}
	}
	for _, w := range windows {
		if !active(w, now) {
			continue
		}
		if w.Kind == releasev1alpha1.WindowDeny {
			return State{Reason: releasev1alpha1.ReasonFrozen, Because: w.Reason}
		}
		s = State{Open: true}
	}
	return s
}

// active reports whether a window is active at a time.
func active(w releasev1alpha1.ReleaseWindow, now time.Time) bool {
	if w.Schedule == "" {
		return (w.From == nil || !now.Before(w.From.Time)) && (w.To == nil || now.Before(w.To.Time))
	}
	schedule, duration, ok := repeated(w)
	if !ok {
		return false
	}
	begin := schedule.NextOrSkipped(now.Add(-duration))
	return !begin.IsZero() && !begin.After(now)
}

// nextChange is the first time after t at which a window begins or ends; zero if there is none.
func nextChange(windows []releasev1alpha1.ReleaseWindow, t time.Time) (next time.Time) {
	take := func(at time.Time) {
		if at.After(t) && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	for _, w := range windows {
		if w.Schedule == "" {
			if w.From != nil {
				take(w.From.Time)
			}
			if w.To != nil {
				take(w.To.Time)
			}
			continue
		}
		if schedule, duration, ok := repeated(w); ok {
			take(schedule.NextOrSkipped(t))
			if begin := schedule.NextOrSkipped(t.Add(-duration)); !begin.IsZero() {
				take(begin.Add(duration))
			}
		}
	}
	return next
}

// repeated returns the schedule and the duration of a window that is repeated.
func repeated(w releasev1alpha1.ReleaseWindow) (schedule crontab.Schedule, duration time.Duration, ok bool) {
	schedule, err := crontab.Parse(w.Schedule, cmp.Or(w.TimeZone, "UTC"))
	if err != nil || w.Duration == nil || w.Duration.Duration <= 0 {
		return schedule, 0, false
	}
	return schedule, w.Duration.Duration, true
}
