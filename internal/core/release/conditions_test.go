package release_test

import (
	"fmt"
	"math/rand"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/release"
)

// conditionsOf returns the conditions of a release that all releases have, such as "Progressing=True Soaking".
func conditionsOf(r *releasev1alpha1.Release) string {
	var all []string
	for _, kind := range []string{releasev1alpha1.ReleaseProgressing, releasev1alpha1.ReleaseHealthy,
		releasev1alpha1.ReleaseConditionSucceeded} {
		c := meta.FindStatusCondition(r.Status.Conditions, kind)
		if c == nil {
			all = append(all, kind+" is missing")
			continue
		}
		all = append(all, fmt.Sprintf("%s=%s %s", kind, c.Status, c.Reason))
	}
	return strings.Join(all, ", ")
}

func TestConditionsFollowARelease(t *testing.T) {
	const strategy = "stages: [{name: one, to: {percent: 50}, soak: 5s}, {name: two, before: [{name: go}]}]"
	w := newWorld(t, cloneSet, 5, 5)
	r := w.release("r1", strategy)
	is := func(when, want string) {
		t.Helper()
		if got := conditionsOf(r); got != want {
			t.Errorf("%s, the conditions are %s, want %s", when, got, want)
		}
	}
	state := func(state releasev1alpha1.ReleaseState) {
		r.Spec.State = state
		r.Generation++
		w.reconcile(r)
	}
	w.reconcile(r)
	is("at first", "Progressing=True StageUpdating, Healthy=Unknown NotObserved, Succeeded=Unknown UnderWay")
	if !meta.IsStatusConditionTrue(r.Status.Conditions, releasev1alpha1.ReleaseAccepted) {
		t.Errorf("it is not accepted: %+v", r.Status.Conditions)
	}
	w.rest()
	is("while the pods soak", "Progressing=True Soaking, Healthy=Unknown NotObserved, Succeeded=Unknown UnderWay")
	w.pass(5 * time.Second)
	is("at the gate", "Progressing=False WaitingForApproval, Healthy=True AsExpected, Succeeded=Unknown UnderWay")
	state(releasev1alpha1.StatePause)
	is("paused", "Progressing=False PausedByUser, Healthy=True AsExpected, Succeeded=Unknown UnderWay")
	state(releasev1alpha1.StateRun)
	w.approve(r, "two", "go", "ann")
	w.rest()
	is("in the end", "Progressing=False Finished, Healthy=True AsExpected, Succeeded=True Completed")
	state(releasev1alpha1.StateRollback)
	is("while it is rolled back", "Progressing=True RollingBack, Healthy=True AsExpected, Succeeded=Unknown UnderWay")
	w.rest()
	is("after the rollback", "Progressing=False Finished, Healthy=True AsExpected, Succeeded=False RolledBack")

	w.image("web:3")
	r = w.release("r2", strategy)
	w.rest()
	first := r
	w.image("web:4")
	r = w.release("r3", strategy)
	w.rest()
	is("behind another release", "Progressing=False Queued, Healthy=Unknown NotObserved, Succeeded=Unknown UnderWay")
	r = first
	state(releasev1alpha1.StateAbort)
	is("aborted", "Progressing=False Finished, Healthy=Unknown NotObserved, Succeeded=False Aborted")
}

// All new pods are available, and the workload is unhealthy for another reason. Of a kind without a partition, that
// counts.
func TestAnUnhealthyWorkloadFailsItsStage(t *testing.T) {
	w := newWorld(t, deployment, 2, 2)
	r := w.release("r1", "stages: [{name: half, to: {percent: 50}, soak: 1h}, {name: rest}]")
	w.rest()
	work := w.works["c1"].DeepCopy()
	work.Status.ManifestStatuses[0].Health = workv1alpha1.ResourceUnhealthy
	w.works["c1"] = work
	w.reconcile(r)
	const want = "Progressing=False PausedByFailure, Healthy=False CopyUnhealthy, Succeeded=Unknown UnderWay"
	if got := conditionsOf(r); got != want {
		t.Errorf("the conditions are %s, want %s", got, want)
	}
	if c := meta.FindStatusCondition(r.Status.Conditions, releasev1alpha1.ReleaseHealthy); c != nil &&
		!strings.Contains(c.Message, "c1") {
		t.Errorf("the message names no cluster: %s", c.Message)
	}
}

func TestAChangedOverrideIsDrift(t *testing.T) {
	w := newWorld(t, cloneSet, 5, 5)
	r := w.release("r1", "stages: [{name: half, to: {percent: 50}}, {name: rest, before: [{name: go}]}]")
	w.rest()
	in := w.input(r)
	target := in.Targets["web"]
	target.Current = release.NewRevision(w.template, []policyv1alpha1.Override{overrideOf("other")})
	in.Targets["web"] = target
	step := release.Next(in)
	if c := meta.FindStatusCondition(step.Status.Conditions, releasev1alpha1.ReleaseDrifted); c == nil ||
		c.Reason != releasev1alpha1.ReasonOverrideChanged {
		t.Errorf("Drifted is %+v, want the reason OverrideChanged", c)
	}
}

func TestAMemberThatChangesTheWorkloadIsDrift(t *testing.T) {
	w := newWorld(t, cloneSet, 5, 5)
	r := w.release("r1", "stages: [{name: half, to: {percent: 50}}, {name: rest, before: [{name: go}]}]")
	w.rest()
	contested := func(status metav1.ConditionStatus) *metav1.Condition {
		work := w.works["c2"].DeepCopy()
		meta.SetStatusCondition(&work.Status.Conditions, metav1.Condition{Type: workv1alpha1.WorkContested, Status: status,
			Reason: workv1alpha1.ReasonChangedRepeatedly})
		w.works["c2"] = work
		w.reconcile(r)
		return meta.FindStatusCondition(r.Status.Conditions, releasev1alpha1.ReleaseDrifted)
	}
	if c := contested(metav1.ConditionFalse); c != nil {
		t.Errorf("while no client changes it, Drifted is %+v", c)
	}
	if c := contested(metav1.ConditionTrue); c == nil || c.Reason != releasev1alpha1.ReasonMemberChanged ||
		!strings.Contains(c.Message, "a client in c2 changes target web repeatedly") {
		t.Errorf("while a client changes it, Drifted is %+v", c)
	}
	if c := contested(metav1.ConditionFalse); c != nil {
		t.Errorf("after it, Drifted is %+v", c)
	}
}

// I5, with several releases of a target that queue, replace each other, are paused, aborted and rolled back.
func TestOneReleaseOfATargetIsUnderWayInRandomHistories(t *testing.T) {
	seeds := int64(150)
	if testing.Short() {
		seeds = 20
	}
	seen := map[releasev1alpha1.ReleasePhase]bool{}
	for seed := range seeds {
		random := rand.New(rand.NewSource(seed))
		w := newWorld(t, cloneSet, 3, 2)
		w.edit(int64(5), "spec", "updateStrategy", "maxUnavailable")
		crashing := true
		w.crashes = func() bool { return crashing && random.Intn(3) == 0 }
		// completed is the revision that all clusters had when a release last ended, and rollback the one to which a release
		// has begun to go back since then.
		completed, rollback := w.former.Name, ""
		was, begun := map[string]releasev1alpha1.ReleasePhase{}, map[string]bool{}
		w.watch = func() {
			underWay := 0
			for _, r := range w.releases {
				seen[r.Status.Phase] = true
				if r.Status.StartedAt != nil && !begun[r.Name] {
					begun[r.Name] = true
					if from := r.Status.Targets[0].From; from != completed && from != rollback {
						t.Fatalf("seed %d: release %s would go back to %s, want %s", seed, r.Name, from, completed)
					}
				}
				if phase := r.Status.Phase; phase != was[r.Name] {
					was[r.Name] = phase
					switch phase {
					case releasev1alpha1.ReleaseSucceeded:
						completed, rollback = r.Status.Targets[0].To, ""
					case releasev1alpha1.ReleaseRollingBack:
						rollback = r.Status.Targets[0].From
					case releasev1alpha1.ReleaseRolledBack:
						completed, rollback = r.Status.Targets[0].From, ""
					}
				}
				if r.Status.Phase.UnderWay() {
					underWay++
				}
			}
			if underWay > 1 {
				t.Fatalf("seed %d: %d releases are under way (I5)", seed, underWay)
			}
		}
		for range 200 {
			n := len(w.releases)
			switch event := random.Intn(20); {
			case event == 0 && n < 6 || n == 0:
				w.image(fmt.Sprintf("web:%d", n+3))
				r := w.release(fmt.Sprintf("r%d", n+1), "stages: [{name: some, to: {percent: 50}, soak: 5s}, {name: rest}]")
				r.Spec.Supersede = []releasev1alpha1.SupersedeAction{releasev1alpha1.SupersedeQueue,
					releasev1alpha1.SupersedeReplace, releasev1alpha1.SupersedeRefuse}[random.Intn(3)]
			case event == 1:
				r := w.releases[random.Intn(n)]
				r.Spec.State = []releasev1alpha1.ReleaseState{releasev1alpha1.StateRun, releasev1alpha1.StatePause,
					releasev1alpha1.StateAbort, releasev1alpha1.StateRollback}[random.Intn(4)]
				r.Generation++
			case event == 2:
				w.now = w.now.Add(5 * time.Second)
			case event < 10:
				w.reconcile(w.releases[random.Intn(n)])
			case event < 15:
				w.dispatch()
			default:
				w.act(w.members[random.Intn(len(w.members))])
			}
			w.watch()
		}
		for _, r := range w.releases {
			if r.Spec.State == releasev1alpha1.StatePause {
				r.Spec.State = releasev1alpha1.StateRun
			}
		}
		crashing = false
		w.pass(time.Hour)
		for _, r := range w.releases {
			if !r.Status.Phase.Ended() {
				t.Fatalf("seed %d: release %s is %s (%s) in the end", seed, r.Name, r.Status.Phase, r.Status.Reason)
			}
		}
	}
	for _, phase := range []releasev1alpha1.ReleasePhase{releasev1alpha1.ReleaseQueued, releasev1alpha1.ReleasePaused,
		releasev1alpha1.ReleaseRollingBack, releasev1alpha1.ReleaseSucceeded, releasev1alpha1.ReleaseSuperseded,
		releasev1alpha1.ReleaseAborted, releasev1alpha1.ReleaseRolledBack, releasev1alpha1.ReleaseFailed} {
		if !seen[phase] {
			t.Errorf("no release was %s", phase)
		}
	}
}
