package release_test

import (
	"testing"
	"time"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
)

func TestRefusedReleaseRollsBack(t *testing.T) {
	w := newWorld(t, cloneSet, 2, 2)
	w.members[1].rejects = "web:2"
	r := w.release("r1", "{stages: [{name: all}], failure: {action: Rollback}}")
	w.pass(time.Minute)
	w.expect("after the refusal", r, releasev1alpha1.ReleaseRolledBack, releasev1alpha1.ReasonRolledBack, "web:1", 4)
}

func TestRetryIsNotFailedByTheRefusalBeforeIt(t *testing.T) {
	w := newWorld(t, cloneSet, 2, 2)
	w.members[1].rejects = "web:2"
	r := w.release("r1", "{stages: [{name: all}]}")
	w.pass(time.Minute)
	w.expect("after the refusal", r, releasev1alpha1.ReleasePaused, releasev1alpha1.ReasonPausedByFailure, "web:1", 3)
	r.Annotations[releasev1alpha1.RetryAnnotation] = "all@1"
	w.pass(2 * time.Minute)
	w.expect("while the member may be asked again", r, releasev1alpha1.ReleaseRunning,
		releasev1alpha1.ReasonStageUpdating, "web:1", 2)
	w.members[1].rejects = ""
	w.pass(time.Minute)
	w.expect("after the fix", r, releasev1alpha1.ReleaseSucceeded, releasev1alpha1.ReasonCompleted, "web:2", 4)
}

func TestRetryFailsIfTheMemberStillRefuses(t *testing.T) {
	w := newWorld(t, cloneSet, 2, 2)
	w.members[1].rejects = "web:2"
	r := w.release("r1", "{stages: [{name: all}]}")
	w.pass(time.Minute)
	r.Annotations[releasev1alpha1.RetryAnnotation] = "all@1"
	w.pass(5 * time.Minute)
	w.expect("after the retry", r, releasev1alpha1.ReleasePaused, releasev1alpha1.ReasonPausedByFailure, "web:1", 2)
}

func TestFailedRollbackIsTriedAgainWhenItsUserAsks(t *testing.T) {
	w := newWorld(t, cloneSet, 2, 2)
	r := w.release("r1", "{stages: [{name: all}]}")
	w.pass(time.Minute)
	w.members[1].rejects = "web:1"
	r.Spec.State, r.Generation = releasev1alpha1.StateRollback, 2
	w.pass(10 * time.Minute)
	w.expect("while the member refuses", r, releasev1alpha1.ReleaseFailed, releasev1alpha1.ReasonRollbackFailed, "web:1",
		2)
	w.members[1].rejects = ""
	w.pass(10 * time.Minute)
	w.expect("without a request", r, releasev1alpha1.ReleaseFailed, releasev1alpha1.ReasonRollbackFailed, "web:1", 3)
	r.Spec.State, r.Generation = releasev1alpha1.StatePause, 3
	w.pass(time.Minute)
	r.Spec.State, r.Generation = releasev1alpha1.StateRollback, 4
	w.pass(time.Minute)
	w.expect("asked again", r, releasev1alpha1.ReleaseRolledBack, releasev1alpha1.ReasonRolledBack, "web:1", 4)
}
