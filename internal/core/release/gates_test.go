package release_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/release"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
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

func TestClustersOfASkippedStageKeepTheFormerRevision(t *testing.T) {
	w := environmentsWorld(t)
	r := w.release("r1", environments)
	w.pass(time.Hour)
	r.Annotations[releasev1alpha1.SkipStageAnnotation] = "prod@1"
	w.pass(time.Hour)
	w.expect("after the skip", r, releasev1alpha1.ReleaseSucceeded, releasev1alpha1.ReasonCompleted, "web:2", 25)
	if got := fmt.Sprint(release.KeptClusters(&r.Status)); got != "[x1 x2 x3]" {
		t.Errorf("clusters that keep the former revision are %s", got)
	}
	if what, _ := release.Waits(r); !strings.Contains(what, "former revision stay until another release in x1, x2, x3") {
		t.Errorf("the release says %q", what)
	}
	if c := meta.FindStatusCondition(r.Status.Conditions, releasev1alpha1.ReleaseProgressing); c.Reason !=
		releasev1alpha1.ReasonFinished || release.CatchesUp(r, w.input(r).Targets["web"]) {
		t.Errorf("the release does not end: Progressing is %s", c.Reason)
	}

	// Neither scaling, nor a cluster that joins, nor the end of the Release object brings the revision there.
	w.place("x1", 8)
	w.join("x4", 3, map[string]string{"env": "prod"})
	w.pass(time.Hour)
	w.releases = nil
	w.pass(time.Hour)
	if n := w.count("web:2"); n != 25 || w.count("web:1", "x1") != 8 || w.count("web:1", "x4") != 3 {
		t.Fatalf("%d pods are new, and x1 and x4 have %d and %d old ones, want 25, 8 and 3", n, w.count("web:1", "x1"),
			w.count("web:1", "x4"))
	}
	if release.PausedPlan(w.binding, "") != nil {
		t.Error("the plan is held without the Release")
	}

	// Another release of the same revision updates them, after its gates.
	again := w.release("r2", environments)
	w.pass(time.Hour)
	w.expect("the next release", again, releasev1alpha1.ReleaseRunning, releasev1alpha1.ReasonWaitingForApproval, "web:2",
		25)
	w.approve(again, "prod", "sign", "ann")
	w.pass(time.Hour)
	w.expect("the next release", again, releasev1alpha1.ReleaseSucceeded, releasev1alpha1.ReasonCompleted, "web:2", 46)
	if fleet.PlanOf(w.binding.Annotations) != nil {
		t.Error("the binding has a plan after a complete release")
	}
}

func TestASkippedLastPartOfAllPodsStaysOld(t *testing.T) {
	w := newWorld(t, cloneSet, 10, 10)
	r := w.release("r1", strings.ReplaceAll(oneTwoSeven, "weight: 7}", "weight: 7}, before: [{name: go}]"))
	w.pass(time.Minute)
	r.Annotations[releasev1alpha1.SkipStageAnnotation] = "seven@1"
	w.pass(time.Hour)
	w.expect("after the skip", r, releasev1alpha1.ReleaseSucceeded, releasev1alpha1.ReasonCompleted, "web:2", 6)
	w.place("c1", 20)
	w.pass(time.Hour)
	if n := w.count("web:2"); n > 9 {
		t.Errorf("after scaling, %d of 30 pods are new, want at most 9", n)
	}
	r.Spec.State = releasev1alpha1.StateRollback
	w.pass(time.Hour)
	w.expect("after the rollback", r, releasev1alpha1.ReleaseRolledBack, releasev1alpha1.ReasonRolledBack, "web:2", 0)
}

func TestASkippedStageInBetweenLeavesItsPodsToTheNextOne(t *testing.T) {
	w := newWorld(t, cloneSet, 10, 10)
	r := w.release("r1", strings.ReplaceAll(oneTwoSeven, "weight: 2}", "weight: 2}, before: [{name: go}]"))
	w.pass(time.Minute)
	w.expect("at the gate", r, releasev1alpha1.ReleaseRunning, releasev1alpha1.ReasonWaitingForApproval, "web:2", 2)
	r.Annotations[releasev1alpha1.SkipStageAnnotation] = "two@1"
	w.pass(time.Hour)
	w.expect("in the end", r, releasev1alpha1.ReleaseSucceeded, releasev1alpha1.ReasonCompleted, "web:2", 20)
	if kept := release.KeptClusters(&r.Status); len(kept) > 0 || fleet.PlanOf(w.binding.Annotations) != nil {
		t.Errorf("%v keep the former revision", kept)
	}
}

func TestAStageWithoutItsClustersAsksItsGates(t *testing.T) {
	for _, away := range []int64{-1, 0} {
		w := environmentsWorld(t)
		r := w.release("r1", environments)
		w.watch = func() {
			if w.count("web:2") == 3 {
				for _, c := range []string{"x1", "x2", "x3"} {
					w.place(c, away)
				}
				w.watch = func() {}
			}
		}
		w.pass(time.Hour)
		w.expect("without production", r, releasev1alpha1.ReleaseRunning, releasev1alpha1.ReasonWaitingForApproval, "web:2",
			25)
		for _, c := range []string{"x1", "x2", "x3"} {
			w.place(c, 5)
		}
		w.pass(time.Hour)
		w.expect("when it is back", r, releasev1alpha1.ReleaseRunning, releasev1alpha1.ReasonWaitingForApproval, "web:2", 25)
		w.approve(r, "prod", "sign", "ann")
		w.pass(time.Hour)
		w.expect("in the end", r, releasev1alpha1.ReleaseSucceeded, releasev1alpha1.ReasonCompleted, "web:2", 40)
	}
}
