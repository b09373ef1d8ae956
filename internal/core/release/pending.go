package release

import (
	"time"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
)

// pending is a release that is not accepted.
type pending struct{ *stepper }

// next goes from Pending to Queued, or refuses.
func (s pending) next() transition {
	if s.Release.Spec.State == releasev1alpha1.StateAbort {
		return enter(releasev1alpha1.ReleaseAborted, releasev1alpha1.ReasonAborted, "")
	}
	a := Accept(s.Input)
	if s.lacksVersions(a) {
		s.status.Phase = releasev1alpha1.ReleasePending
		return stay
	}
	if refused, ok := s.accepted(a); !ok {
		return refused
	}
	s.status.Strategy = s.strategy().DeepCopy()
	s.status.Targets = a.Targets
	to := make([]string, len(a.Targets))
	for i, t := range a.Targets {
		to[i] = t.To
	}
	s.status.Revision = hashOf(to)
	s.out.ConfigMaps, s.out.Revisions = a.ConfigMaps, a.Revisions
	for _, stage := range s.status.Strategy.Stages {
		s.status.Stages = append(s.status.Stages, releasev1alpha1.ReleaseStageStatus{Name: stage.Name,
			Phase: releasev1alpha1.StagePending})
	}
	return enter(releasev1alpha1.ReleaseQueued, "Accepted", a.Message)
}

// accepted sets the condition Accepted. refused ends a release that cannot be accepted. A new release waits a moment
// for what it names, so that all of it can be created together. One that the hub started waits for as long as that
// takes, while its workload exists: the hub does not start it again.
func (s *stepper) accepted(a Acceptance) (refused transition, ok bool) {
	ok = a.Reason == releasev1alpha1.ReasonPlanned
	s.condition(releasev1alpha1.ReleaseAccepted, status(ok), a.Reason, a.Message)
	until := s.Release.CreationTimestamp.Add(missingGrace)
	switch {
	case ok:
	case a.isMissing() && startedByHub(s.Release) && a.Reason != releasev1alpha1.ReasonTargetNotFound:
		s.status.Phase, s.status.Strategy, s.status.Revision = releasev1alpha1.ReleasePending, nil, ""
		s.status.Targets, s.status.Stages = nil, nil
		s.wait(a.Reason, "%s", a.Message)
	case s.status.Phase != releasev1alpha1.ReleaseQueued && a.isMissing() && s.now.Before(until):
		s.status.Phase = releasev1alpha1.ReleasePending
		s.wait(a.Reason, "%s", a.Message)
		s.wake(until)
	default:
		refused = enter(releasev1alpha1.ReleaseFailed, releasev1alpha1.ReasonRejected, a.Message)
	}
	return refused, ok
}

// lacksVersions reports whether a release waits for versions of ConfigMaps that could not be created.
func (s *stepper) lacksVersions(a Acceptance) bool {
	if s.VersionsRefused == "" || len(a.ConfigMaps) == 0 {
		return false
	}
	s.wait(releasev1alpha1.ReasonConfigMapRefused, "%s", s.VersionsRefused)
	s.wake(s.now.Add(versionsRetry))
	return true
}

// versionsRetry is when to create versions of ConfigMaps again that could not be created.
const versionsRetry = time.Minute

// missingGrace is for how long after its creation a release waits for what it names.
const missingGrace = 30 * time.Second

// isMissing reports whether a release was refused for something that does not exist yet, or that no stage selects yet.
func (a Acceptance) isMissing() bool {
	switch a.Reason {
	case releasev1alpha1.ReasonStrategyNotFound, releasev1alpha1.ReasonTargetNotFound, releasev1alpha1.ReasonTargetNotHeld,
		releasev1alpha1.ReasonRevisionNotFound, releasev1alpha1.ReasonStagesEmpty, releasev1alpha1.ReasonCheckNotFound,
		releasev1alpha1.ReasonClustersUnassigned:
		return true
	}
	return false
}
