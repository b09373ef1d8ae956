package release

import (
	"fmt"
	"slices"
	"time"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
)

// rollingBack is a release that brings the former revisions back.
type rollingBack struct{ *stepper }

// next advances the rollback.
func (s rollingBack) next() transition {
	steps := s.rollbackSteps()
	if len(steps) == 0 {
		return s.rolledBack()
	}
	deadline := duration(s.status.Strategy.Rollback.Deadline, 30*time.Minute)
	if !s.synced() {
		if s.late(observation{}, deadline, &s.status.Rollback.Available, &s.status.Rollback.ProgressAt) {
			return enter(releasev1alpha1.ReleaseFailed, releasev1alpha1.ReasonRollbackFailed,
				fmt.Sprintf("for %s: %s", deadline, s.waitsFor))
		}
		return stay
	}
	at := slices.IndexFunc(steps, func(step rollbackStep) bool { return step.name == s.status.Rollback.Stage })
	at = max(at, 0)
	o := s.observeClusters(steps[at].clusters, true)
	if t := s.lose(o); t != stay {
		return t
	}
	late := s.late(o, deadline, &s.status.Rollback.Available, &s.status.Rollback.ProgressAt)
	switch {
	case o.refused == "" && o.reached && at+1 == len(steps):
		return s.rolledBack()
	case o.refused == "" && o.reached:
		s.status.Rollback.Stage = steps[at+1].name
		s.status.Rollback.ProgressAt, s.status.Rollback.Available = s.time(), 0
		s.journal(releasev1alpha1.JournalStage, steps[at].name, "", "", "RolledBack", "")
		return again
	case o.refused != "" || late:
		message := fmt.Sprintf("no pod of the former revision has become available for %s", deadline)
		if o.refused != "" {
			message = "refused in " + o.refused
		}
		return enter(releasev1alpha1.ReleaseFailed, releasev1alpha1.ReasonRollbackFailed, message)
	}
	return stay
}

func (s rollingBack) rolledBack() transition {
	return enter(releasev1alpha1.ReleaseRolledBack, releasev1alpha1.ReasonRolledBack, s.status.Rollback.Reason)
}
