package release

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
)

// paused is a release that waits for its user.
type paused struct{ *stepper }

// next leaves Paused where its user asks for that.
func (s paused) next() transition {
	k := s.current()
	if k == len(s.status.Stages) {
		return enter(releasev1alpha1.ReleaseRunning, "Resumed", "")
	}
	stage := &s.status.Stages[k]
	run := s.Release.Spec.State == releasev1alpha1.StateRun || s.Release.Spec.State == ""
	switch {
	case !run:
		return stay
	case s.skip(k):
	case stage.Phase != releasev1alpha1.StageFailed:
		if stage.ProgressAt != nil {
			stage.ProgressAt = s.time()
		}
		s.status.SoakUntil = nil
	case s.Release.Annotations[releasev1alpha1.RetryAnnotation] == stageAttempt(*stage):
		by := s.verbFor(releasev1alpha1.RetryAnnotation)
		s.journal(releasev1alpha1.JournalVerb, stage.Name, "", by.User, "Retry", by.Reason)
		stage.Attempt++
		stage.Gates, stage.BegunTargets, stage.ReachedAt = nil, nil, nil
		for i := range s.status.Targets {
			s.status.Targets[i].Failed = false
		}
		s.condition(releasev1alpha1.ReleaseHealthy, metav1.ConditionUnknown, releasev1alpha1.ReasonNotObserved, "")
		s.stagePhase(k, releasev1alpha1.StageGated, "Retried", "")
	default:
		return stay
	}
	return enter(releasev1alpha1.ReleaseRunning, "Resumed", "")
}
