package release

import (
	"slices"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
)

// queued is a release that is accepted and has not started.
type queued struct{ *stepper }

// next goes from Queued to Running when no other release of the targets goes first, and ReleaseGuards permit it.
func (s queued) next() transition {
	if s.Release.Spec.Supersede == releasev1alpha1.SupersedeReplace && s.waitsToReplace() {
		return stay
	}
	if other := s.before(); other != "" {
		s.wait(releasev1alpha1.ReasonQueued, "release %s goes first", other)
		return stay
	}
	if s.Release.Spec.State == releasev1alpha1.StatePause {
		s.wait(releasev1alpha1.ReasonPausedByUser, "set state: Run to start")
		return stay
	}
	in := s.asIs()
	a := Accept(in)
	if refused, ok := s.accepted(a); !ok {
		return refused
	}
	planned := in.Release.DeepCopy()
	setClusters(&planned.Status, a.Clusters)
	if s.waitsForGuards(planned, 0, true) {
		return stay
	}
	if s.lacksVersions(a) {
		return stay
	}
	s.status.Targets, s.status.Stages = a.Targets, planned.Status.Stages
	s.out.ConfigMaps, s.out.Revisions = a.ConfigMaps, a.Revisions
	for k := range s.status.Stages {
		if gate := s.guardView().guardGate(planned, k); gate != nil {
			stage := &s.status.Strategy.Stages[k]
			stage.Before = append(stage.Before, *gate)
		}
	}
	in.Release.Status = s.status
	if _, _, hash, err := preview(in); err == nil {
		s.status.PlanHash = hash
	}
	s.status.StartedAt = s.time()
	return enter(releasev1alpha1.ReleaseRunning, "Started", "")
}

// setClusters sets the clusters of the stages of a release that starts.
func setClusters(status *releasev1alpha1.ReleaseStatus, byStage [][]string) {
	for k := range status.Stages {
		stage := &status.Stages[k]
		if stage.SameClusters = k > 0 && slices.Equal(byStage[k], byStage[k-1]); !stage.SameClusters {
			stage.ClusterNames = byStage[k]
		}
	}
}

// waitsToReplace reports whether windows keep a release from starting that would replace another one. The other one
// continues until they open.
func (s queued) waitsToReplace() bool {
	if len(s.Guards) == 0 || s.underWay() == "" {
		return false
	}
	in := s.asIs()
	a := Accept(in)
	if a.Reason != releasev1alpha1.ReasonPlanned {
		return false
	}
	setClusters(&in.Release.Status, a.Clusters)
	o := s.guardView().closed(in.Release, 0)
	if o == nil || s.breaksGlass(in.Release.Status.Stages[0]) {
		return false
	}
	s.waitFor(o)
	return true
}
