package release_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/release"
)

func TestWeightsOfOneSelectionCountTogether(t *testing.T) {
	const gate = "before: [{name: go}]"
	for name, strategy := range map[string]string{
		"the last stage has an unassigned cluster": `
stages:
- {name: one, clusters: {labelSelector: {matchLabels: {env: prod}}}, to: {weight: 1}}
- {name: two, clusters: {labelSelector: {matchLabels: {env: prod}}}, to: {weight: 2}, ` + gate + `}
- {name: rest, clusters: {labelSelector: {matchLabels: {env: prod}}}, to: {weight: 7}, ` + gate + `}
unassigned: LastStage
`,
		"a stage has an order of its own": `
stages:
- {name: one, to: {weight: 1}}
- {name: two, to: {weight: 2}, order: "label:zone", ` + gate + `}
- {name: rest, to: {weight: 7}, ` + gate + `}
`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, cloneSet, 10)
			w.join("p1", 10, map[string]string{"env": "prod", "zone": "b"})
			w.join("p2", 10, map[string]string{"env": "prod", "zone": "a"})
			own := []string{"p1", "p2"}
			if name == "a stage has an order of its own" {
				own = []string{"c1", "p1", "p2"}
			}
			w.edit("50%", "spec", "updateStrategy", "maxUnavailable")
			w.template.SetAnnotations(nil)
			w.edit([]any{map[string]any{"name": "main", "image": "web:1"}}, "spec", "template", "spec", "containers")
			w.rest()
			w.image("web:2")
			r := w.release("r1", strategy+"rollback: {order: Reverse}\n")
			expect := func(when string, percent int) {
				t.Helper()
				w.pass(time.Hour)
				w.expect(when, r, releasev1alpha1.ReleaseRunning, releasev1alpha1.ReasonWaitingForApproval, "web:2",
					len(own)*percent/10)
				if n := w.count("web:2", own...); n != w.count("web:2") {
					t.Errorf("%s, %d pods are new in the stage, and %d in all", when, n, w.count("web:2"))
				}
			}
			expect("after the first stage", 10)
			w.approve(r, "two", "go", "ann")
			expect("after the second stage", 30)
			w.approve(r, "rest", "go", "ann")
			w.pass(time.Hour)
			w.expect("in the end", r, releasev1alpha1.ReleaseSucceeded, releasev1alpha1.ReasonCompleted, "web:2", 30)
			r.Spec.State = releasev1alpha1.StateRollback
			w.pass(time.Hour)
			w.expect("after the rollback", r, releasev1alpha1.ReleaseRolledBack, releasev1alpha1.ReasonRolledBack, "web:2", 0)
		})
	}
}

// unsigned is gates that no user passes.
const unsigned = "before: [{name: sign}], after: [{name: look, approval: {count: 1}}]"

func TestAStageThatReplacesNoPodAsksNobody(t *testing.T) {
	for name, template := range map[string]string{"pods": cloneSet, "whole clusters": deployment} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, template, 4, 4)
			r := w.release("r1", "unassigned: LastStage\nstages:\n- {name: empty, clusters: {clusterNames: [none]}, "+unsigned+
				"}\n- {name: all}\n- {name: late, clusters: {labelSelector: {matchLabels: {env: none}}}, "+unsigned+"}")
			w.rest()
			w.expect("in the end", r, releasev1alpha1.ReleaseSucceeded, releasev1alpha1.ReasonCompleted, "web:2", 8)
			for _, k := range []int{0, 2} {
				stage := r.Status.Stages[k]
				if got := release.StageReason(r, stage); stage.Phase != releasev1alpha1.StageSkipped ||
					!strings.Contains(got, "selects no cluster") {
					t.Errorf("stage %s is %s: %q", stage.Name, stage.Phase, got)
				}
			}
		})
	}
}

// Clusters that join get the revision with the last stage, so the gates of that stage are asked for them.
func TestTheLastStageAsksForClustersThatJoined(t *testing.T) {
	for _, joining := range []string{"Include", "Defer", "Hold"} {
		t.Run(joining, func(t *testing.T) {
			w := newWorld(t, cloneSet, 4)
			r := w.release("r1", "onNewCluster: "+joining+"\nunassigned: LastStage\nstages:\n"+
				"- {name: first, clusters: {clusterNames: [c1]}, soak: 10m}\n- {name: prod, clusters: {labelSelector: {matchLabels: {env: prod}}}, "+unsigned+"}")
			w.rest()
			w.join("late", 4, map[string]string{"env": "prod"})
			w.rest()
			w.pass(11 * time.Minute)
			got, ended := w.count("web:2", "late"), r.Status.Phase == releasev1alpha1.ReleaseSucceeded
			if got > 0 && joining != "Hold" && !ended {
				t.Errorf("%d pods in the cluster that joined are new, and nobody has signed", got)
			}
			asks := r.Status.Reason == releasev1alpha1.ReasonWaitingForApproval
			if want := joining == "Include"; asks != want {
				t.Errorf("the release asks: %t, want %t: %+v", asks, want, r.Status)
			}
		})
	}
}

// A cluster that is scaled to zero may get pods again.
func TestAStageWithoutPodsAsksAlsoOnTheWayBack(t *testing.T) {
	w := newWorld(t, cloneSet, 4, 4, 4)
	strategy := "unassigned: LastStage\nstages:\n- {name: canary, clusters: {clusterNames: [c1]}}\n" +
		"- {name: second, clusters: {clusterNames: [c2]}, " + unsigned + "}\n- {name: rest}"
	w.release("r1", strategy)
	w.rest()
	w.image("web:1")
	second := w.release("r2", strategy)
	second.Spec.Supersede = releasev1alpha1.SupersedeReplace
	w.place("c2", 0)
	w.rest()
	if second.Status.Reason != releasev1alpha1.ReasonWaitingForApproval {
		t.Errorf("stage second is not asked: %+v", second.Status)
	}
}

// Git reverts the change while the canary runs.
func TestTheOldVersionIsReleasedWithoutAnApprovalOfNothing(t *testing.T) {
	for name, c := range map[string]struct{ template, canary string }{
		"a CloneSet":   {cloneSet, "{name: canary, clusters: {clusterNames: [c1]}}"},
		"a Deployment": {deployment, "{name: canary, clusters: {clusterNames: [c1]}}"},
	} {
		for _, supersede := range []releasev1alpha1.SupersedeAction{releasev1alpha1.SupersedeReplace,
			releasev1alpha1.SupersedeQueue} {
			t.Run(name+", "+string(supersede), func(t *testing.T) {
				w := newWorld(t, c.template, 4, 4, 4)
				strategy := "unassigned: LastStage\nstages:\n- " + c.canary +
					"\n- {name: second, clusters: {clusterNames: [c2]}, " + unsigned + "}\n- {name: rest, " + unsigned + "}"
				first := w.release("r1", strategy)
				w.rest()
				if first.Status.Reason != releasev1alpha1.ReasonWaitingForApproval || w.count("web:2") == 0 {
					t.Fatalf("the canary is %+v with %d pods", first.Status, w.count("web:2"))
				}
				w.image("web:1")
				second := w.release("r2", strategy)
				second.Spec.Supersede = supersede
				if supersede == releasev1alpha1.SupersedeQueue {
					first.Spec.State = releasev1alpha1.StateAbort
				}
				w.rest()
				w.expect("in the end", second, releasev1alpha1.ReleaseSucceeded, releasev1alpha1.ReasonCompleted, "web:1", 12)
				if p := second.Status.Progress; p != "12/12" {
					t.Errorf("%s pods are new", p)
				}
				for _, stage := range second.Status.Stages[1:] {
					if got := release.StageReason(second, stage); !strings.Contains(got, "have the revision already") {
						t.Errorf("stage %s is %s: %q", stage.Name, stage.Phase, got)
					}
				}
			})
		}
	}
}

func TestAReleaseThatTheHubStartedWaitsForWhatItNeeds(t *testing.T) {
	const one = "stages: [{name: one, clusters: {labelSelector: {matchLabels: {env: prod}}}}]"
	label := func(w *world) {
		for name, c := range w.clusters {
			w.clusters[name] = c.DeepCopy()
			w.clusters[name].Labels = map[string]string{"env": "prod"}
		}
	}
	for name, c := range map[string]struct {
		strategy string
		reason   string
		fix      func(w *world, r *releasev1alpha1.Release)
	}{
		"only the strategy changes": {one, releasev1alpha1.ReasonClustersUnassigned,
			func(_ *world, r *releasev1alpha1.Release) {
				r.Spec.Strategy.Unassigned = releasev1alpha1.UnassignedLastStage
			}},
		"clusters get labels": {one, releasev1alpha1.ReasonClustersUnassigned,
			func(w *world, _ *releasev1alpha1.Release) { label(w) }},
		"a stage keeps old pods": {"stages: [{name: one, to: {percent: 50}}]", releasev1alpha1.ReasonClustersUnassigned,
			func(_ *world, r *releasev1alpha1.Release) { r.Spec.Strategy.Stages[0].To = nil }},
	} {
		for _, byHub := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, by the hub: %t", name, byHub), func(t *testing.T) {
				w := newWorld(t, cloneSet, 4, 4)
				r := w.release("r1", c.strategy)
				if byHub {
					r.Spec.Trigger = &releasev1alpha1.ReleaseTrigger{Type: releasev1alpha1.TriggerTemplate}
				}
				w.pass(time.Hour)
				if !byHub {
					w.expect("of a user", r, releasev1alpha1.ReleaseFailed, c.reason, "web:2", 0)
					return
				}
				w.expect("before", r, releasev1alpha1.ReleasePending, c.reason, "web:2", 0)
				if what, next := release.Waits(r); !strings.Contains(what, c.reason) || !strings.Contains(next, "fix") {
					t.Errorf("it waits for %q, and next is %q", what, next)
				}
				c.fix(w, r)
				w.pass(time.Hour)
				w.expect("after", r, releasev1alpha1.ReleaseSucceeded, releasev1alpha1.ReasonCompleted, "web:2", 8)
			})
		}
	}
}

// While the release was queued, another cluster joined, which no stage selects.
func TestAQueuedReleaseOfTheHubIsAcceptedAgain(t *testing.T) {
	w := newWorld(t, cloneSet, 4, 4)
	first := w.release("r0", "stages: [{name: all, before: [{name: sign}]}]")
	w.rest()
	r := w.release("r1", "stages: [{name: one, clusters: {clusterNames: [c1, c2]}}]")
	r.Spec.Trigger = &releasev1alpha1.ReleaseTrigger{Type: releasev1alpha1.TriggerTemplate}
	w.image("web:3")
	w.rest()
	w.expect("behind another one", r, releasev1alpha1.ReleaseQueued, releasev1alpha1.ReasonQueued, "web:3", 0)
	w.join("c3", 4, nil)
	first.Spec.State = releasev1alpha1.StateAbort
	w.rest()
	w.expect("without a stage for c3", r, releasev1alpha1.ReleasePending, releasev1alpha1.ReasonClustersUnassigned,
		"web:3", 0)
	r.Spec.Strategy.Unassigned = releasev1alpha1.UnassignedLastStage
	w.rest()
	w.expect("with one", r, releasev1alpha1.ReleaseSucceeded, releasev1alpha1.ReasonCompleted, "web:3", 12)
}
