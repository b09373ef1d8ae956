package release

import (
	"cmp"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
)

// state is a phase of a release. next decides the transition that follows from it.
type state interface{ next() transition }

// transition is the consequence of a state: another phase, with the reason for it.
type transition struct {
	// phase is empty if the release stays in its phase.
	phase           releasev1alpha1.ReleasePhase
	reason, message string
	// again is true if something else has changed, such as a stage. Then the state decides once more.
	again bool
}

var (
	// stay means that the release waits for something that has not happened.
	stay = transition{}
	// again means that something within the phase has changed.
	again = transition{again: true}
)

func enter(phase releasev1alpha1.ReleasePhase, reason, message string) transition {
	return transition{phase: phase, reason: reason, message: message}
}

// transitionLimit is the most transitions of one step. A release with 100 stages makes some 600. More are a mistake in
// this package, which would keep the hub busy for ever.
const transitionLimit = 10_000

// advance takes transitions until the release waits or has ended. It reports a fault if more than limit follow.
func (s *stepper) advance(limit int) {
	for range limit {
		switch t := s.transition(); {
		case t.phase != "":
			s.enter(t)
		case !t.again:
			return
		}
	}
	s.wait(releasev1alpha1.ReasonInternalError, "more than %d transitions in one step, now in phase %s", limit,
		s.status.Phase)
}

func (s *stepper) transition() transition {
	var is state
	switch s.status.Phase {
	case "", releasev1alpha1.ReleasePending:
		is = pending{s}
	case releasev1alpha1.ReleaseQueued:
		is = queued{s}
	case releasev1alpha1.ReleaseRunning:
		is = running{s}
	case releasev1alpha1.ReleasePaused:
		is = paused{s}
	case releasev1alpha1.ReleaseRollingBack:
		is = rollingBack{s}
	default:
		is = ended{s}
	}
	if IsRecord(s.Release) {
		is = recording{s}
	} else if s.status.Phase == releasev1alpha1.ReleaseQueued || s.status.Phase.UnderWay() {
		if t := s.endedByOthers(); t != stay {
			return t
		}
	}
	return is.next()
}

// enter enters a phase. One that ends the release sets the condition Succeeded.
func (s *stepper) enter(t transition) {
	if t.phase.Ended() {
		s.status.EndedAt, s.status.SoakUntil = s.time(), nil
	}
	s.status.Phase = t.phase
	by := s.verbForPhase(t.reason)
	s.journal(releasev1alpha1.JournalPhase, "", "", by.User, t.reason, cmp.Or(t.message, by.Reason))
	if t.phase.Ended() {
		s.condition(releasev1alpha1.ReleaseConditionSucceeded, status(t.phase == releasev1alpha1.ReleaseSucceeded), t.reason,
			t.message)
	}
}
