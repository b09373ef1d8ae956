package release_test

import (
	"testing"
	"time"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/dispatch"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/release"
)

// stage compares the stage that the binding reports.
func (w *world) stage(when, want string) {
	w.t.Helper()
	var works []workv1alpha1.Work
	for cluster, work := range w.works {
		work = work.DeepCopy()
		work.Namespace = names.ExecutionSpace(cluster)
		works = append(works, *work)
	}
	got := "none"
	lost := func(cluster string) bool { return w.member(cluster).lost }
	if s, ok := dispatch.StageOf(w.binding, w.template, works, lost); ok {
		got = s.Condition(1).Reason
	}
	if got != want {
		w.t.Errorf("%s, the stage is %s, want %s", when, got, want)
	}
}

func (w *world) member(name string) *member {
	for _, m := range w.members {
		if m.name == name {
			return m
		}
	}
	w.t.Fatalf("there is no member %s", name)
	return nil
}

func TestStageOfABindingFollowsItsRelease(t *testing.T) {
	for name, template := range map[string]string{"pods": cloneSet, "whole clusters": deployment} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, template, 10, 10)
			w.stage("without a release", "none")
			r := w.release("r1", `
stages:
- {name: one, to: {percent: 50}, before: [{name: go}]}
- {name: two, before: [{name: sign}]}
`)
			w.rest()
			w.stage("before the first stage", "Stage0Of2WaitingForRelease")
			w.approve(r, "one", "go", "ann")
			w.reconcile(r)
			w.stage("when the first stage begins", "Stage1Of2InProgress")
			w.rest()
			w.stage("at the gate", "Stage1Of2WaitingForRelease")
			r.Spec.State = releasev1alpha1.StatePause
			w.rest()
			w.stage("paused", "Stage1Of2Paused")
			r.Spec.State = releasev1alpha1.StateRun
			w.approve(r, "two", "sign", "ann")
			w.rest()
			w.stage("after the release", "none")
		})
	}
}

func TestStageOfABindingDoesNotWaitForASkippedCluster(t *testing.T) {
	w := newWorld(t, cloneSet, 10, 10)
	w.release("r1", `
stages: [{name: one, to: {percent: 50}}, {name: two, before: [{name: sign}]}]
onLostCluster: {action: Skip, after: 1m}
`)
	w.lose("c2", true)
	w.rest()
	w.stage("while the release waits for a lost cluster", "Stage1Of2InProgress")
	w.pass(2 * time.Minute)
	w.stage("when the cluster is skipped", "Stage1Of2WaitingForRelease")
}

// All Works have overrides, so that the revision in members has no name.
func TestPlanTakesPodsOfAnUnknownRevisionForOldOnes(t *testing.T) {
	plan := func(change func(*release.Target)) string {
		w := newWorld(t, cloneSet, 10, 10)
		in := w.input(w.release("r1", oneTwoSeven))
		target := in.Targets["web"]
		change(&target)
		in.Targets["web"] = target
		plan, err := release.PlanOf(in)
		if err != nil {
			t.Fatal(err)
		}
		return plan.Hash
	}
	known := plan(func(*release.Target) {})
	if got := plan(func(t *release.Target) { t.Former, t.Placed = nil, true }); got != known {
		t.Error("the plan for pods of an unknown revision differs from that for old pods")
	}
	if got := plan(func(t *release.Target) { t.Former, t.Placed = nil, false }); got == known {
		t.Error("the plan for a workload that is in no cluster is that for old pods")
	}
}
