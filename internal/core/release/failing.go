package release

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
)

// late reports whether no pod has become available for the time of the deadline. since and available are written at
// most ten times in that time.
func (s *stepper) late(o observation, deadline time.Duration, available *int64, since **metav1.Time) bool {
	if *since == nil {
		*since, s.changed = s.time(), true
		return false
	}
	if o.onlyLost {
		return false
	}
	passed := s.now.Sub((*since).Time)
	switch {
	case o.available > *available && passed >= deadline/10:
		*available, *since, s.changed = o.available, s.time(), true
		s.wake((*since).Add(deadline))
	case o.available > *available:
		s.wake((*since).Add(deadline / 10))
	case passed >= deadline:
		return true
	default:
		s.wake((*since).Add(deadline))
	}
	return false
}

// lose keeps the list of clusters that do not answer, and acts on those that have not for too long.
func (s *stepper) lose(o observation) transition {
	next := stay
	rule := s.status.Strategy.OnLostCluster
	after := duration(rule.After, 10*time.Minute)
	s.status.LostClusters = slices.DeleteFunc(s.status.LostClusters, func(l releasev1alpha1.LostClusterStatus) bool {
		if o.isLost[l.Name] {
			return false
		}
		s.journal(releasev1alpha1.JournalCluster, "", l.Name, "", "Returned", "")
		if k := s.current(); k < len(s.status.Stages) && s.status.Stages[k].ProgressAt != nil {
			s.status.Stages[k].ProgressAt = s.time()
		}
		next = again
		return true
	})
	for _, name := range o.lost {
		i := slices.IndexFunc(s.status.LostClusters, func(l releasev1alpha1.LostClusterStatus) bool { return l.Name == name })
		if i < 0 {
			s.journal(releasev1alpha1.JournalCluster, "", name, "", "Lost", "the cluster does not answer")
			s.status.LostClusters = append(s.status.LostClusters, releasev1alpha1.LostClusterStatus{Name: name,
				Since: *s.time()})
			next = again
			continue
		}
		l := &s.status.LostClusters[i]
		if l.Skipped || rule.Action != releasev1alpha1.LostClusterSkip && rule.Action != releasev1alpha1.LostClusterFail {
			continue
		}
		due := l.Since.Add(after)
		switch {
		case s.now.Before(due):
			s.wake(due)
		case rule.Action == releasev1alpha1.LostClusterSkip:
			l.Skipped = true
			s.journal(releasev1alpha1.JournalCluster, "", name, "", "Skipped",
				fmt.Sprintf("it does not answer for %s", after))
			next = again
		case s.status.Phase == releasev1alpha1.ReleaseRunning:
			return s.fail(s.current(), releasev1alpha1.ReasonClusterUnreachable,
				fmt.Sprintf("cluster %s does not answer for %s", name, after))
		}
	}
	return next
}

// fail acts on the failure of a stage. A stage fails before it has started only at a gate. The release never continues
// then: that would be as if the gate had passed. targets are those whose revision is the reason.
func (s *stepper) fail(k int, reason, message string, targets ...string) transition {
	s.status.SoakUntil = nil
	for i := range s.status.Targets {
		t := &s.status.Targets[i]
		t.Failed = t.Failed || slices.Contains(targets, t.Name)
	}
	if stage := &s.status.Stages[k]; len(stage.BegunTargets) > 0 {
		o := s.observe(k)
		stage.Counts, stage.Clusters = o.counts, o.clusters // a rollback does not count them any more
	}
	s.condition(releasev1alpha1.ReleaseHealthy, metav1.ConditionFalse, reason, message)
	action := failureAction(s.status.Strategy, k)
	if action == releasev1alpha1.FailureContinue && s.status.Stages[k].Phase == releasev1alpha1.StageGated {
		action = releasev1alpha1.FailurePause
	}
	switch action {
	case releasev1alpha1.FailureRollback:
		s.stagePhase(k, releasev1alpha1.StageFailed, reason, message)
		return s.startRollback(reason, message)
	case releasev1alpha1.FailureContinue:
		s.endStage(k, releasev1alpha1.StageFailed, reason, message)
		return again
	}
	return s.pauseByFailure(k, reason, message)
}

func (s *stepper) pauseByFailure(k int, reason, message string) transition {
	s.stagePhase(k, releasev1alpha1.StageFailed, reason, message)
	return enter(releasev1alpha1.ReleasePaused, releasev1alpha1.ReasonPausedByFailure, reason)
}

// startRollback goes to RollingBack, or fails where there is no revision to go back to.
func (s *stepper) startRollback(reason, message string) transition {
	for _, t := range s.status.Targets {
		if t.From == "" && hasBegun(&s.status) {
			return enter(releasev1alpha1.ReleaseFailed, releasev1alpha1.ReasonRollbackFailed,
				fmt.Sprintf("the revision of target %s before this release is not known", t.Name))
		}
		target := s.Targets[t.Name]
		if obstacle := target.deleted(target.revision(t.From)); obstacle != "" && hasBegun(&s.status) {
			return enter(releasev1alpha1.ReleaseFailed, releasev1alpha1.ReasonRollbackFailed,
				fmt.Sprintf("target %s: %s", t.Name, obstacle))
		}
	}
	s.status.EndedAt, s.status.SoakUntil, s.status.Progress = nil, nil, ""
	s.status.Rollback = &releasev1alpha1.ReleaseRollbackStatus{Reason: reason, StartedAt: *s.time(), ProgressAt: s.time()}
	if steps := s.rollbackSteps(); len(steps) > 0 {
		s.status.Rollback.Stage = steps[0].name
	}
	return enter(releasev1alpha1.ReleaseRollingBack, reason, message)
}
