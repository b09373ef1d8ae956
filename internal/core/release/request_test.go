package release_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/release"
)

// Whatever state a release is in, admission asks for exactly the verb that a request names for each write.
func TestRequestNeedsTheVerbsThatAdmissionAsksFor(t *testing.T) {
	phases := []releasev1alpha1.ReleasePhase{"", releasev1alpha1.ReleasePending, releasev1alpha1.ReleaseQueued,
		releasev1alpha1.ReleaseRunning, releasev1alpha1.ReleasePaused, releasev1alpha1.ReleaseRollingBack,
		releasev1alpha1.ReleaseSucceeded, releasev1alpha1.ReleaseFailed, releasev1alpha1.ReleaseAborted,
		releasev1alpha1.ReleaseSuperseded, releasev1alpha1.ReleaseRolledBack}
	states := []releasev1alpha1.ReleaseState{"", releasev1alpha1.StateRun, releasev1alpha1.StatePause,
		releasev1alpha1.StateAbort, releasev1alpha1.StateRollback}
	asked := map[string]int{}
	for _, phase := range phases {
		for _, state := range states {
			for _, verb := range release.RequestVerbs {
				r := &releasev1alpha1.Release{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1"}}
				r.Spec.State, r.Status.Phase = state, phase
				r.Status.Rollback = &releasev1alpha1.ReleaseRollbackStatus{}
				r.Status.Stages = []releasev1alpha1.ReleaseStageStatus{{Name: "one", Attempt: 2,
					Phase: releasev1alpha1.StageFailed, StartedAt: &metav1.Time{Time: time.Unix(1, 0)}}}
				request, err := release.RequestFor(release.Input{Release: r}, verb)
				if err != nil || request.Already != "" {
					continue
				}
				asked[verb]++
				for i, patch := range request.Patches("because") {
					next := patched(t, r, patch)
					rights := release.RightsFor(r, next)
					if len(rights) != 1 || rights[0].Verb != request.Writes[i].Verb() {
						t.Errorf("%s of a release in %q, %q: write %d needs %v, and the request names %q", verb, phase, state, i,
							rights, request.Writes[i].Verb())
					}
					if errs := release.CheckAnnotations(r, next); len(errs) > 0 {
						t.Errorf("%s of a release in %q, %q: %v", verb, phase, state, errs)
					}
					if next.Spec.State != r.Spec.State {
						if err := release.CheckState(release.Input{Release: r}, next.Spec.State); err != nil {
							t.Errorf("%s of a release in %q, %q: write %d is refused: %v", verb, phase, state, i, err)
						}
					}
					r = next
				}
			}
		}
	}
	for _, verb := range release.RequestVerbs {
		if asked[verb] == 0 {
			t.Errorf("no release takes %s", verb)
		}
	}
}

// patched applies a merge patch to a release.
func patched(t *testing.T, r *releasev1alpha1.Release, patch map[string]any) *releasev1alpha1.Release {
	t.Helper()
	before, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	change, err := json.Marshal(patch)
	if err != nil {
		t.Fatal(err)
	}
	after, err := jsonpatch.MergePatch(before, change)
	if err != nil {
		t.Fatal(err)
	}
	out := &releasev1alpha1.Release{}
	if err := json.Unmarshal(after, out); err != nil {
		t.Fatal(err)
	}
	return out
}

// The reason is in the last write: a reason that does not change counts for the verb before.
func TestReasonIsInTheLastWrite(t *testing.T) {
	r := &releasev1alpha1.Release{}
	r.Spec.State, r.Status.Phase = releasev1alpha1.StateRollback, releasev1alpha1.ReleaseFailed
	r.Status.Rollback = &releasev1alpha1.ReleaseRollbackStatus{}
	r.Status.Stages = []releasev1alpha1.ReleaseStageStatus{{Name: "one", StartedAt: &metav1.Time{}}}
	request, err := release.RequestFor(release.Input{Release: r}, releasev1alpha1.VerbRollback)
	if err != nil || len(request.Writes) != 2 {
		t.Fatalf("the request is %+v, %v", request, err)
	}
	patches := request.Patches("because")
	if _, has := patches[0]["metadata"]; has || patches[1]["metadata"] == nil {
		t.Errorf("the patches are %v", patches)
	}
}

func TestRecordsTakeNoVerbButAbort(t *testing.T) {
	r := &releasev1alpha1.Release{}
	r.Spec.Trigger = &releasev1alpha1.ReleaseTrigger{Type: releasev1alpha1.TriggerDirect}
	r.Status.Phase = releasev1alpha1.ReleaseRunning
	for _, verb := range release.RequestVerbs {
		request, err := release.RequestFor(release.Input{Release: r}, verb)
		if aborts := verb == releasev1alpha1.VerbAbort; aborts != (err == nil) ||
			!aborts && (err.Error() != release.OnlyRecords || len(request.Writes) > 0) {
			t.Errorf("%s: %+v, %v", verb, request, err)
		}
	}
}

func TestAStateThatAReleaseCannotHaveIsRefused(t *testing.T) {
	release1 := func(phase releasev1alpha1.ReleasePhase, state releasev1alpha1.ReleaseState,
		began bool) *releasev1alpha1.Release {
		r := &releasev1alpha1.Release{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "r1"}}
		r.Spec.State, r.Status.Phase = state, phase
		r.Spec.Targets = []releasev1alpha1.ReleaseTarget{{Name: "web",
			Ref: releasev1alpha1.ReleaseObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}}}
		r.Status.Targets = []releasev1alpha1.ReleaseTargetStatus{{Name: "web", From: "a", To: "b"}}
		if began {
			r.Status.Stages = []releasev1alpha1.ReleaseStageStatus{{Name: "one", StartedAt: &metav1.Time{}}}
		}
		return r
	}
	next := release1(releasev1alpha1.ReleaseRunning, releasev1alpha1.StateRun, true)
	next.Name = "r2"
	failedBack := release1(releasev1alpha1.ReleaseFailed, releasev1alpha1.StateRollback, true)
	failedBack.Status.Rollback = &releasev1alpha1.ReleaseRollbackStatus{}
	const run, pause, abort, rollback = releasev1alpha1.StateRun, releasev1alpha1.StatePause, releasev1alpha1.StateAbort,
		releasev1alpha1.StateRollback
	for name, c := range map[string]struct {
		r      *releasev1alpha1.Release
		others []releasev1alpha1.Release
		// refused are the states that are refused, and why; all others are not.
		refused map[releasev1alpha1.ReleaseState]string
	}{
		"pending": {release1("", pause, false), nil, nil},
		"paused":  {release1(releasev1alpha1.ReleasePaused, pause, true), nil, nil},
		"running": {release1(releasev1alpha1.ReleaseRunning, run, true), nil, nil},
		"rolling back": {release1(releasev1alpha1.ReleaseRollingBack, rollback, true), nil,
			map[releasev1alpha1.ReleaseState]string{pause: "which cannot be paused", run: "it is RollingBack"}},
		"succeeded": {release1(releasev1alpha1.ReleaseSucceeded, run, true), nil,
			map[releasev1alpha1.ReleaseState]string{pause: "has ended: it is Succeeded", abort: "has ended: it is Succeeded"}},
		"followed": {release1(releasev1alpha1.ReleaseSucceeded, run, true), []releasev1alpha1.Release{*next},
			map[releasev1alpha1.ReleaseState]string{pause: "has ended", abort: "has ended",
				rollback: "release r2 of Deployment web has followed"}},
		"aborted before it began": {release1(releasev1alpha1.ReleaseAborted, abort, false), nil,
			map[releasev1alpha1.ReleaseState]string{run: "is not paused: it is Aborted", pause: "has ended",
				rollback: "it has updated no pods"}},
		"superseded": {release1(releasev1alpha1.ReleaseSuperseded, pause, true), nil,
			map[releasev1alpha1.ReleaseState]string{run: "has ended", abort: "has ended",
				rollback: "has ended: it is Superseded"}},
		"rolled back": {release1(releasev1alpha1.ReleaseRolledBack, rollback, true), nil,
			map[releasev1alpha1.ReleaseState]string{run: "is not paused: it is RolledBack", pause: "has ended",
				abort: "has ended"}},
		// Its user asks again by Pause and then Rollback.
		"failed to go back": {failedBack, nil, map[releasev1alpha1.ReleaseState]string{
			run: "is not paused: it is Failed", abort: "has ended"}},
	} {
		for _, state := range []releasev1alpha1.ReleaseState{run, pause, abort, rollback} {
			if state == c.r.Spec.State {
				continue
			}
			err := release.CheckState(release.Input{Release: c.r, Others: c.others}, state)
			switch why := c.refused[state]; {
			case why == "" && err != nil:
				t.Errorf("%s: the state %s is refused: %v", name, state, err)
			case why != "" && (err == nil || !strings.Contains(err.Error(), why)):
				t.Errorf("%s: the state %s: %v, want %q", name, state, err, why)
			}
		}
	}
}

func TestPausedReleaseThatHasEndedCannotBePaused(t *testing.T) {
	r := &releasev1alpha1.Release{ObjectMeta: metav1.ObjectMeta{Name: "web-1"}}
	r.Spec.State, r.Status.Phase = releasev1alpha1.StatePause, releasev1alpha1.ReleaseSuperseded
	if request, err := release.RequestFor(release.Input{Release: r}, releasev1alpha1.VerbPause); err == nil {
		t.Errorf("the request is %+v", request)
	}
}
