package release_test

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/adjust/failover"
	"github.com/argosy-io/argosy/internal/core/release"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
)

// Failover relies on fleet.Plan.PodsIn, dispatch on the stages. Both must agree for each cluster that gains replicas.
func TestMovedReplicasRunThePlannedRevision(t *testing.T) {
	for name, c := range map[string]struct {
		strategy string
		reach    func(*world, *releasev1alpha1.Release)
		phase    releasev1alpha1.ReleasePhase
		// images are those of a cluster of each stage, of one of production that has no Work, and of one in no stage.
		images string
	}{
		"it waits at the gate of production": {environments, func(*world, *releasev1alpha1.Release) {},
			releasev1alpha1.ReleaseRunning, "t1=2 p1=2 x1=1 x2=1 new=1"},
		"a user pauses it": {environments, func(_ *world, r *releasev1alpha1.Release) {
			r.Spec.State = releasev1alpha1.StatePause
		}, releasev1alpha1.ReleasePaused, "t1=2 p1=2 x1=1 x2=1 new=1"},
		"a user ends it": {environments, func(_ *world, r *releasev1alpha1.Release) {
			r.Spec.State = releasev1alpha1.StateAbort
		}, releasev1alpha1.ReleaseAborted, "t1=2 p1=2 x1=1 x2=1 new=1"},
		"it sends nothing to new clusters": {environments + "onNewCluster: Hold", func(*world, *releasev1alpha1.Release) {},
			releasev1alpha1.ReleaseRunning, "t1=2 p1=2 x1=1 x2=1 new="},
		"it rolls back, and one stage is left": {environments + "rollback: {order: Reverse}",
			func(w *world, r *releasev1alpha1.Release) {
				w.lose("p3", true)
				r.Spec.State = releasev1alpha1.StateRollback
			}, releasev1alpha1.ReleaseRollingBack, "t1=2 p1=1 x1=1 x2=1 new=1"},
		"a user skips production": {environments, func(_ *world, r *releasev1alpha1.Release) {
			r.Annotations[releasev1alpha1.SkipStageAnnotation] = "prod@1"
		}, releasev1alpha1.ReleaseSucceeded, "t1=2 p1=2 x1=1 x2=1 new=1"},
		"production is updated": {environments, func(w *world, r *releasev1alpha1.Release) {
			w.lose("x3", true)
			w.approve(r, "prod", "sign", "ann")
		}, releasev1alpha1.ReleaseRunning, "t1=2 p1=2 x1=2 x2=2 new=2"},
	} {
		for kind, template := range map[string]string{"CloneSet": cloneSet, "Deployment": deployment} {
			t.Run(name+", "+kind, func(t *testing.T) {
				w := environmentsOf(t, template)
				r := w.release("r1", c.strategy)
				w.pass(time.Hour)
				c.reach(w, r)
				w.rest()
				if r.Status.Phase != c.phase {
					t.Fatalf("the release is %s (%s), want %s", r.Status.Phase, r.Status.Reason, c.phase)
				}
				plan := fleet.PlanOf(w.binding.Annotations)
				status := r.Status.Targets[0]
				w.place("x2", -1)
				var planned []string
				for _, name := range []string{"t1", "p1", "x1", "x2", "new"} {
					pods := plan.PodsIn(name, name != "x2" && name != "new")
					planned = append(planned, name+"="+map[string]string{"": "", "revision " + status.From: "1",
						"revision " + status.To: "2"}[pods.Revisions])
				}
				if got := strings.Join(planned, " "); got != c.images {
					t.Errorf("planned are %s, want %s", got, c.images)
				}

				for _, m := range w.members {
					if m.name == "x2" {
						m.images, m.ready = nil, nil
					}
				}
				w.place("x2", 3)
				for _, name := range []string{"t1", "p1", "x1"} {
					w.place(name, 9)
				}
				w.join("new", 2, map[string]string{"env": "prod"})
				w.rest()
				var run []string
				for _, name := range []string{"t1", "p1", "x1", "x2", "new"} {
					image := ""
					switch one, two := w.count("web:1", name), w.count("web:2", name); {
					case one > 0 && two > 0:
						image = "1+2"
					case one > 0:
						image = "1"
					case two > 0:
						image = "2"
					}
					run = append(run, name+"="+image)
				}
				want := c.images
				if plan.Hold && w.divided { // no more pods are released: added ones are old, if the cluster still knows how
					want = strings.NewReplacer("t1=2", "t1=1+2", "p1=2", "p1=1+2").Replace(want)
				}
				if got := strings.Join(run, " "); got != want {
					t.Errorf("replicas run %s, want %s", got, want)
				}
			})
		}
	}
}

func TestReleaseReportsReplicasThatRunAnotherRevision(t *testing.T) {
	w := environmentsWorld(t)
	r := w.release("r1", environments+"failover: SameRevision")
	w.pass(time.Hour)
	if !fleet.PlanOf(w.binding.Annotations).SameRevision {
		t.Error("the plan does not have the failover of the strategy")
	}
	w.binding.Annotations["argosy.io/failover"] = `{"x1": {"since": "2026-01-01T12:30:00Z", "lost": true, ` +
		`"to": [{"name": "t1", "replicas": 4}, {"name": "x2", "replicas": 1}]}}`
	w.place("x1", -1)
	w.place("t1", 9)
	w.place("x2", 6)
	w.rest()
	to := r.Status.Targets[0].To
	want := "4 replicas of cluster x1 moved to t1, which runs revision " + to + " (release r1 has not started stage prod)"
	c := meta.FindStatusCondition(r.Status.Conditions, releasev1alpha1.ReleaseRevisionChanged)
	if c == nil || c.Message != want {
		t.Fatalf("the condition is %+v, want the message %q", c, want)
	}
	if what, _ := release.Waits(r); !strings.HasSuffix(what, "; "+want) {
		t.Errorf("it waits for %q, want %q in it", what, want)
	}
	last := r.Status.Journal[len(r.Status.Journal)-1]
	if last.Reason != releasev1alpha1.ReleaseRevisionChanged || last.Message != want {
		t.Errorf("the last entry of the journal is %+v", last)
	}
	if lines := failover.RevisionChanges(w.binding); len(lines) != 1 {
		t.Errorf("changes of revisions are %q", lines)
	}
	w.approve(r, "prod", "sign", "ann")
	w.rest()
	if c := meta.FindStatusCondition(r.Status.Conditions, releasev1alpha1.ReleaseRevisionChanged); c != nil {
		t.Errorf("all clusters have the revision, and the condition is %+v", c)
	}
}
