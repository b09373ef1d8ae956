package release

import releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"

type ended struct{ *stepper }

// next rolls a release back that has ended, where its user asks for that. After a failed rollback, only a change of
// the spec asks again.
func (s ended) next() transition {
	if !asksToReopen(s.Release, &s.status) ||
		s.status.Phase == releasev1alpha1.ReleaseFailed && s.Release.Generation == s.status.ObservedGeneration ||
		s.asIs().rollbackObstacle() != "" {
		return stay
	}
	return s.startRollback(releasev1alpha1.ReasonUserRequest, "")
}

// asksToReopen reports whether the user of a release that has ended asks for a rollback.
func asksToReopen(r *releasev1alpha1.Release, status *releasev1alpha1.ReleaseStatus) bool {
	return r.Spec.State == releasev1alpha1.StateRollback && canReopen(status) && !IsRecord(r)
}
