package release_test

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
)

func TestAMissingRevisionIsNamedAndTheDeadlineRuns(t *testing.T) {
	w := newWorld(t, cloneSet, 5, 5)
	w.refuses = true
	r := w.release("r1", "stages: [{name: some, to: {percent: 20}, soak: 10m}, {name: rest, deadline: 1h}]")
	w.rest()
	to := r.Status.Targets[0].To
	stored := w.revisions[to]
	delete(w.revisions, to)
	w.pass(time.Minute)
	w.expect("without the revision", r, releasev1alpha1.ReleaseRunning, releasev1alpha1.ReasonRevisionNotFound, "web:2", 2)
	w.revisions[to] = stored
	w.pass(10 * time.Minute)
	w.expect("with it", r, releasev1alpha1.ReleaseSucceeded, releasev1alpha1.ReasonCompleted, "web:2", 10)

	w.image("web:3")
	r = w.release("r2", "stages: [{name: some, to: {percent: 20}, soak: 10m}, {name: rest}]")
	w.rest()
	delete(w.revisions, r.Status.Targets[0].To)
	w.pass(2 * time.Hour)
	w.expect("for long", r, releasev1alpha1.ReleasePaused, releasev1alpha1.ReasonPausedByFailure, "web:3", 2)
	delete(w.revisions, to)
	r.Spec.State = releasev1alpha1.StateRollback
	w.pass(2 * time.Hour)
	w.expect("without the former one", r, releasev1alpha1.ReleaseFailed, releasev1alpha1.ReasonRollbackFailed, "web:3", 2)
	c := meta.FindStatusCondition(r.Status.Conditions, releasev1alpha1.ReleaseConditionSucceeded)
	if !strings.Contains(c.Message, "ReleaseRevision "+to) {
		t.Errorf("it does not name the revision: %s", c.Message)
	}
}
