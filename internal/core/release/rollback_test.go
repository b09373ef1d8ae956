package release_test

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/release"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
)

func TestARollbackBlocksARevisionOnlyAfterAFailure(t *testing.T) {
	for name, tt := range map[string]struct {
		do      func(w *world, r *releasev1alpha1.Release)
		blocked bool
	}{
		"before any pod ran": {do: func(*world, *releasev1alpha1.Release) {}},
		"a rejection before any pod ran": {do: func(w *world, r *releasev1alpha1.Release) {
			w.reject(r, "some", "first", "ann")
		}},
		"healthy pods": {do: func(w *world, r *releasev1alpha1.Release) {
			w.approve(r, "some", "first", "ann")
		}},
		"failing pods": {blocked: true, do: func(w *world, r *releasev1alpha1.Release) {
			w.members[0].fails["web:2"] = true
			w.approve(r, "some", "first", "ann")
		}},
		"a rejection of pods that ran": {blocked: true, do: func(w *world, r *releasev1alpha1.Release) {
			w.approve(r, "some", "first", "ann")
			w.pass(time.Hour)
			w.reject(r, "rest", "go", "ann")
		}},
		"a gate that timed out": {do: func(w *world, r *releasev1alpha1.Release) {
			w.approve(r, "some", "first", "ann")
			w.pass(10 * time.Hour)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, cloneSet, 5, 5)
			r := w.release("r1", "stages: [{name: some, to: {percent: 20}, before: [{name: first}]}, "+
				"{name: rest, before: [{name: go, timeout: 9h, onTimeout: Fail}]}]")
			w.rest()
			tt.do(w, r)
			w.pass(time.Hour)
			r.Spec.State = releasev1alpha1.StateRollback
			w.pass(time.Hour)
			w.expect("after the rollback", r, releasev1alpha1.ReleaseRolledBack, releasev1alpha1.ReasonRolledBack, "web:2", 0)
			b := w.revisions[r.Status.Targets[0].To].Status.Blocked
			if (b != nil) != tt.blocked || b != nil && b.Reason == releasev1alpha1.ReasonUserRequest {
				t.Errorf("the revision is blocked: %+v, want %v", b, tt.blocked)
			}
		})
	}
}

func TestARevisionThatIsUnblockedCanBeReleased(t *testing.T) {
	w := newWorld(t, cloneSet, 5, 5)
	w.members[0].fails["web:2"] = true
	r := w.release("r1", "stages: [{name: all}]\nfailure: {action: Rollback}")
	w.pass(time.Hour)
	w.expect("after the failure", r, releasev1alpha1.ReleaseRolledBack, releasev1alpha1.ReasonRolledBack, "web:2", 0)
	refused := w.release("r2", "stages: [{name: all}]")
	w.pass(time.Hour)
	w.expect("while it is blocked", refused, releasev1alpha1.ReleaseFailed, releasev1alpha1.ReasonRevisionBlocked,
		"web:2", 0)
	w.revisions[r.Status.Targets[0].To].Status.Blocked = nil
	w.members[0].fails["web:2"] = false
	again := w.release("r3", "stages: [{name: all}]")
	w.pass(time.Hour)
	w.expect("without the block", again, releasev1alpha1.ReleaseSucceeded, releasev1alpha1.ReasonCompleted, "web:2", 10)
}

func TestARollbackBlocksOnlyTheTargetThatFailed(t *testing.T) {
	w := newWorld(t, cloneSet, 2, 2)
	r := w.release("r1", "stages: [{name: all}]\nfailure: {action: Rollback}")
	db := r.Spec.Targets[0]
	db.Name, db.Ref.Name = "db", "db"
	r.Spec.Targets = append(r.Spec.Targets, db)
	in := w.input(r)
	target := in.Targets["web"]
	target.Template, target.Binding = w.template.DeepCopy(), w.binding.DeepCopy()
	target.Template.SetName("db")
	former := w.template.DeepCopy()
	former.SetName("db")
	target.Current = release.NewRevision(target.Template, nil)
	target.Revisions = map[string]*releasev1alpha1.ReleaseRevision{}
	target.Former = target.Current.DeepCopy()
	target.Former.Name = "former"
	in.Targets["db"] = target

	step := release.Next(in)
	report := func(progress map[string]fleet.ClusterProgress) {
		for name, p := range progress {
			target := in.Targets[name]
			b := step.Bindings[name]
			target.Binding = w.binding.DeepCopy()
			target.Binding.SetAnnotations(map[string]string{fleet.PlanAnnotation: b.Plan.String(),
				fleet.EffectiveRevisionAnnotation: b.Revision})
			p.Cluster, p.Replicas, p.Target, p.Current = "c1", 2, 2, true
			target.Progress = []fleet.ClusterProgress{p}
			in.Targets[name] = target
		}
		in.Release = in.Release.DeepCopy()
		in.Release.Status = step.Status
		step = release.Next(in)
	}
	report(map[string]fleet.ClusterProgress{"web": {New: 2, Available: 2, Reached: true}, "db": {New: 2, Failed: true}})
	if step.Status.Phase != releasev1alpha1.ReleaseRollingBack {
		t.Fatalf("after the failure, the release is %s", step.Status.Phase)
	}
	report(map[string]fleet.ClusterProgress{"web": {Reached: true}, "db": {Reached: true}})
	if step.Status.Phase != releasev1alpha1.ReleaseRolledBack || len(step.Block) != 1 ||
		step.Block[0] != in.Targets["db"].Current.Name {
		t.Errorf("the release is %s and blocks %v, want only that of db", step.Status.Phase, step.Block)
	}
}

func TestProgressOfARollbackCountsPodsOfTheFormerRevision(t *testing.T) {
	w := newWorld(t, cloneSet, 5, 5)
	r := w.release("r1", "stages: [{name: some, to: {percent: 40}}, {name: rest, before: [{name: go}]}]")
	w.rest()
	if r.Status.Progress != "4/10" {
		t.Errorf("before the rollback, progress is %s, want 4/10", r.Status.Progress)
	}
	r.Spec.State = releasev1alpha1.StateRollback
	w.rest()
	if r.Status.Phase != releasev1alpha1.ReleaseRolledBack || r.Status.Progress != "10/10" {
		t.Errorf("%s, progress is %s, want 10/10", r.Status.Phase, r.Status.Progress)
	}
}

// The hub does what RequestFor says about a release that has ended.
func TestARollbackThatIsPromisedHappens(t *testing.T) {
	const strategy = "stages: [{name: some, to: {percent: 20}, before: [{name: go}]}, {name: rest}]\n" +
		"rollback: {deadline: 5m}"
	state := func(w *world, r *releasev1alpha1.Release, state releasev1alpha1.ReleaseState) {
		r.Spec.State = state
		r.Generation++
		w.pass(time.Hour)
	}
	succeed := func(w *world, r *releasev1alpha1.Release) {
		w.approve(r, "some", "go", "ann")
		w.pass(time.Hour)
	}
	followed := func(w *world, r *releasev1alpha1.Release) {
		succeed(w, r)
		w.pass(time.Minute)
		w.image("web:3")
		w.release("r2", "stages: [{name: all}]")
		w.pass(time.Hour)
	}
	failBack := func(w *world, r *releasev1alpha1.Release) {
		w.approve(r, "some", "go", "ann")
		w.reconcile(r)
		w.dispatch()
		for _, m := range w.members {
			m.fails["web:1"] = true
		}
		w.pass(time.Minute)
		state(w, r, releasev1alpha1.StateRollback)
		w.expect("after the rollback that fails", r, releasev1alpha1.ReleaseFailed, releasev1alpha1.ReasonRollbackFailed,
			"web:2", w.count("web:2"))
		state(w, r, releasev1alpha1.StatePause)
	}
	another := func(w *world) {
		w.template = w.template.DeepCopy()
		w.template.SetUID("u-2")
	}
	for name, tt := range map[string]struct {
		do   func(w *world, r *releasev1alpha1.Release)
		want string // empty if it is rolled back
	}{
		"succeeded": {succeed, ""},
		"aborted": {func(w *world, r *releasev1alpha1.Release) {
			w.approve(r, "some", "go", "ann")
			w.reconcile(r)
			w.dispatch()
			state(w, r, releasev1alpha1.StateAbort)
		}, ""},
		"failed to go back": {failBack, ""},
		"aborted at a gate": {func(w *world, r *releasev1alpha1.Release) {
			state(w, r, releasev1alpha1.StateAbort)
		}, "it has updated no pods"},
		"followed": {followed, "release r2 of CloneSet web has followed"},
		"followed by one that was deleted": {func(w *world, r *releasev1alpha1.Release) {
			followed(w, r)
			w.releases = w.releases[:1]
		}, "clusters have another revision of target web now"},
		"of another workload": {func(w *world, r *releasev1alpha1.Release) {
			succeed(w, r)
			another(w)
		}, "the workload of target web was deleted and created again"},
		"failed to go back, of another workload": {func(w *world, r *releasev1alpha1.Release) {
			failBack(w, r)
			another(w)
		}, "the workload of target web was deleted and created again"},
		"of no known revision": {func(w *world, r *releasev1alpha1.Release) {
			succeed(w, r)
			r.Status.Targets[0].From = ""
		}, "the revision of target web before it is not known"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, cloneSet, 5, 5)
			r := w.release("r1", strategy)
			w.rest()
			tt.do(w, r)
			entries := release.LastSeq(&r.Status)
			_, err := release.RequestFor(w.input(r), releasev1alpha1.VerbRollback)
			for _, m := range w.members {
				m.fails = map[string]bool{}
			}
			state(w, r, releasev1alpha1.StateRollback)
			if tt.want == "" {
				if err != nil || r.Status.Phase != releasev1alpha1.ReleaseRolledBack {
					t.Errorf("the answer is %v, and the release is %s", err, r.Status.Phase)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("the answer is %v, want %q", err, tt.want)
			}
			if r.Status.Rollback != nil && r.Status.Phase != releasev1alpha1.ReleaseFailed ||
				r.Status.Phase == releasev1alpha1.ReleaseRolledBack || release.LastSeq(&r.Status) != entries {
				t.Errorf("the release is %s: %+v", r.Status.Phase, r.Status.Journal)
			}
			c := meta.FindStatusCondition(r.Status.Conditions, releasev1alpha1.ReleaseProgressing)
			if c.Reason != releasev1alpha1.ReasonNotRolledBack || !strings.Contains(c.Message, tt.want) {
				t.Errorf("the release shows %s: %s, want %q", c.Reason, c.Message, tt.want)
			}
			if what, _ := release.Waits(r); !strings.Contains(what, tt.want) {
				t.Errorf("people read %q, want %q", what, tt.want)
			}
			if again, err := release.RequestFor(w.input(r), releasev1alpha1.VerbRollback); err == nil ||
				!strings.Contains(err.Error(), tt.want) {
				t.Errorf("the second answer is %+v, %v, want %q", again, err, tt.want)
			}
		})
	}
}

// The release that replaces it would end the rollback at once.
func TestAnEndedReleaseIsNotRolledBackBeforeAnotherReplacesIt(t *testing.T) {
	const strategy = "stages: [{name: some, to: {percent: 20}}, {name: rest, before: [{name: go}]}]"
	w := newWorld(t, cloneSet, 5, 5)
	r := w.release("r1", strategy)
	w.rest()
	w.image("web:3")
	next := w.release("r2", strategy)
	next.Spec.Supersede = releasev1alpha1.SupersedeReplace
	w.reconcile(next)
	r.Spec.State = releasev1alpha1.StateAbort
	w.reconcile(r)
	_, err := release.RequestFor(w.input(r), releasev1alpha1.VerbRollback)
	if err == nil || !strings.Contains(err.Error(), "release r2 is about to replace it") {
		t.Errorf("the answer is %v", err)
	}
	r.Spec.State = releasev1alpha1.StateRollback
	w.reconcile(r)
	w.expect("while r2 waits", r, releasev1alpha1.ReleaseAborted, releasev1alpha1.ReasonAborted, "web:2", 2)
	next.Spec.State = releasev1alpha1.StateAbort
	w.rest()
	w.expect("when r2 is aborted", r, releasev1alpha1.ReleaseRolledBack, releasev1alpha1.ReasonRolledBack, "web:2", 0)
}

// The status of a release is written before its binding. Until the binding is, its plan looks like an aborted one.
func TestReleaseWaitsForBindingOfSucceededRelease(t *testing.T) {
	w := newWorld(t, cloneSet, 2, 2)
	first := w.release("r1", "stages: [{name: all}]")
	w.crashes = func() bool { return first.Status.Phase == releasev1alpha1.ReleaseSucceeded }
	for first.Status.Phase != releasev1alpha1.ReleaseSucceeded {
		w.reconcile(first)
		w.dispatch()
		for _, m := range w.members {
			w.act(m)
		}
	}
	w.image("web:3")
	second := w.release("r2", "stages: [{name: all, before: [{name: go}]}]")
	w.reconcile(second)
	if second.Status.Phase != releasev1alpha1.ReleaseQueued {
		t.Errorf("before the binding is written, the second release is %s", second.Status.Phase)
	}
	w.crashes = nil
	w.rest()
	w.expect("after that", second, releasev1alpha1.ReleaseRunning, releasev1alpha1.ReasonWaitingForApproval, "web:2", 4)
	if s := second.Status.Targets[0]; s.From != first.Status.Targets[0].To {
		t.Errorf("the second release goes from %s, want %s", s.From, first.Status.Targets[0].To)
	}
}

func TestARollbackWithoutAFormerRevisionFailsAndHoldsPods(t *testing.T) {
	for _, begun := range []bool{false, true} {
		w := newWorld(t, cloneSet, 5, 5)
		w.former = nil
		r := w.release("r1", "stages: [{name: some, to: {percent: 20}, before: [{name: go}]}, {name: rest}]")
		w.rest()
		if begun {
			w.approve(r, "some", "go", "ann")
			w.reconcile(r)
			w.dispatch()
		}
		r.Spec.State = releasev1alpha1.StateRollback
		w.pass(time.Hour)
		if begun {
			w.expect("after it began", r, releasev1alpha1.ReleaseFailed, releasev1alpha1.ReasonRollbackFailed, "web:2",
				w.count("web:2"))
			if n := w.count("web:2"); n > 2 {
				t.Errorf("%d pods are new, want at most 2", n)
			}
		} else {
			w.expect("before it began", r, releasev1alpha1.ReleaseRolledBack, releasev1alpha1.ReasonRolledBack, "web:2", 0)
		}
	}
}

func TestARollbackFailsAtItsDeadline(t *testing.T) {
	w := newWorld(t, cloneSet, 5, 5)
	r := w.release("r1", "stages: [{name: some, to: {percent: 40}}, {name: rest, before: [{name: go}]}]\n"+
		"rollback: {deadline: 5m}")
	w.rest()
	for _, m := range w.members {
		m.fails["web:1"] = true
	}
	r.Spec.State = releasev1alpha1.StateRollback
	w.pass(time.Hour)
	w.expect("at the deadline", r, releasev1alpha1.ReleaseFailed, releasev1alpha1.ReasonRollbackFailed, "web:1",
		w.count("web:1"))
	if plan := fleet.PlanOf(w.binding.Annotations); plan == nil || !plan.Hold {
		t.Errorf("the plan after a rollback that failed is %+v, want a hold", plan)
	}
}

func TestAStrategyThatChangesDoesNotChangeARelease(t *testing.T) {
	w := newWorld(t, cloneSet, 5, 5)
	r := w.release("r1", "stages: [{name: some, to: {percent: 20}}, {name: rest, before: [{name: go}]}]")
	w.rest()
	r.Spec.Strategy.Stages = r.Spec.Strategy.Stages[1:]
	r.Spec.Strategy.Stages[0].Before = nil
	w.pass(time.Hour)
	w.expect("after the change", r, releasev1alpha1.ReleaseRunning, releasev1alpha1.ReasonWaitingForApproval, "web:2", 2)
	w.approve(r, "rest", "go", "ann")
	w.pass(time.Hour)
	w.expect("in the end", r, releasev1alpha1.ReleaseSucceeded, releasev1alpha1.ReasonCompleted, "web:2", 10)
}
