package release_test

import (
	"fmt"
	"testing"
	"time"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
)

func (w *world) reject(r *releasev1alpha1.Release, stage, gate, user string) {
	w.approve(r, stage, gate, user)
	w.approvals[len(w.approvals)-1].Spec.Verdict = releasev1alpha1.VerdictReject
}

// A stage that has not started makes no pod new, whatever the action after a failure.
func TestAGateBeforeAStageThatFailsStartsNothing(t *testing.T) {
	for _, action := range []string{"Pause", "Continue", "Rollback"} {
		for _, how := range []string{"rejected", "timed out"} {
			w := newWorld(t, cloneSet, 5, 5)
			r := w.release("r1", fmt.Sprintf(`
stages:
- {name: some, to: {percent: 20}}
- {name: rest, before: [{name: go, timeout: 1h, onTimeout: Fail}]}
failure: {action: %s}
`, action))
			w.rest()
			w.expect("at the gate", r, releasev1alpha1.ReleaseRunning, releasev1alpha1.ReasonWaitingForApproval, "web:2", 2)
			if how == "rejected" {
				w.reject(r, "rest", "go", "ann")
			}
			w.pass(2 * time.Hour)
			when := how + " with " + action
			if action == "Rollback" {
				w.expect(when, r, releasev1alpha1.ReleaseRolledBack, releasev1alpha1.ReasonRolledBack, "web:2", 0)
			} else {
				w.expect(when, r, releasev1alpha1.ReleasePaused, releasev1alpha1.ReasonPausedByFailure, "web:2", 2)
			}
		}
	}
}

func TestContinueGoesOnAfterAStageThatStarted(t *testing.T) {
	w := environmentsWorld(t)
	for _, m := range w.members {
		m.fails["web:2"] = m.name[0] == 'p'
	}
	r := w.release("r1", environments+"failure: {action: Continue}\n")
	w.pass(time.Hour)
	w.expect("after the failure", r, releasev1alpha1.ReleaseRunning, releasev1alpha1.ReasonWaitingForApproval, "web:2",
		10+w.count("web:2", "p1", "p2", "p3"))
	if phase := r.Status.Stages[1].Phase; phase != releasev1alpha1.StageFailed {
		t.Errorf("stage pre is %s, want Failed", phase)
	}
	w.reject(r, "prod", "sign", "ann")
	w.rest()
	if n := w.count("web:2", "x1", "x2", "x3"); n != 0 || r.Status.Phase != releasev1alpha1.ReleasePaused {
		t.Errorf("after the rejection it is %s with %d new pods in production", r.Status.Phase, n)
	}
}
