package controller

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/internal/core/release"
	"github.com/argosy-io/argosy/test/kit/controllertest"
)

// guard creates a ReleaseGuard.
func (w *releaseWorld) guard(name, spec string) *releasev1alpha1.ReleaseGuard {
	w.t.Helper()
	g := &releasev1alpha1.ReleaseGuard{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 1}}
	if err := yaml.UnmarshalStrict([]byte(spec), &g.Spec); err != nil {
		w.t.Fatal(err)
	}
	w.Make(g)
	synctest.Wait()
	return g
}

// denied is the spec of a guard that is closed from a time to another, counted from now.
func denied(from, to time.Duration) string {
	return fmt.Sprintf(`{windows: [{kind: Deny, from: "%s", to: "%s", reason: a fair}]}`,
		time.Now().Add(from).UTC().Format(time.RFC3339), time.Now().Add(to).UTC().Format(time.RFC3339))
}

func TestReleaseWaitsForAGuardAndContinuesWhenItOpens(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newReleaseWorld(t)
		g := w.guard("fair", denied(5*time.Second, time.Minute))
		r := w.release("r1", oneTwoSeven)
		w.pass(30 * time.Second)
		w.expect("in the window", r, releasev1alpha1.ReleaseRunning, releasev1alpha1.ReasonFrozen)
		w.pods("in the window", "web:2", 1, 1, 1)
		w.HasObject(g)
		if s := g.Status; s.Open || s.Reason != releasev1alpha1.ReasonFrozen || s.Message != "a fair" || s.NextOpen == nil ||
			s.Waiting != 1 || s.InUse.Releases != 1 {
			t.Errorf("in the window, the status of the guard is %+v", s)
		}
		w.stop()
		w.start() // a restart forgets nothing
		w.pass(35 * time.Second)
		w.pods("after the window", "web:2", 3, 3, 3)
		w.pass(time.Minute)
		w.expect("in the end", r, releasev1alpha1.ReleaseSucceeded, releasev1alpha1.ReasonCompleted)
		w.HasObject(g)
		if s := g.Status; !s.Open || s.NextOpen != nil || s.NextClose != nil || s.Waiting != 0 || s.InUse.Releases != 0 {
			t.Errorf("in the end, the status of the guard is %+v", s)
		}
		wrote := count(w.Quiet())
		// One more when the release begins to wait; the end of the wait is the start of the stage.
		if n := wrote["update releases/status"]; n > 2+3*3+1 {
			t.Errorf("the status of the release was written %d times, want at most 12", n)
		}
		// When it is created, closes and opens, and when the release starts, ends stages, waits and ends.
		if n := wrote["update releaseguards/status"]; n > 3+2+2*3 {
			t.Errorf("the status of the guard was written %d times, want at most 11", n)
		}
	})
}

func TestBrokenGlassIsAnEvent(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newReleaseWorld(t)
		w.guard("fair", denied(-time.Second, time.Hour))
		r := w.release("r1", oneTwoSeven)
		w.pass(5 * time.Second)
		w.expect("in the window", r, releasev1alpha1.ReleaseQueued, releasev1alpha1.ReasonFrozen)
		controllertest.Change(w.Hub, r, func(r *releasev1alpha1.Release) {
			old := r.DeepCopy()
			r.Annotations = map[string]string{releasev1alpha1.BreakGlassAnnotation: "one@1",
				releasev1alpha1.ReleaseReasonAnnotation: "checkout is down"}
			r.Annotations[release.VerbsAnnotation] = release.StampVerbs(old, r, "ann")
		})
		w.pass(30 * time.Second)
		w.expect("after the first stage", r, releasev1alpha1.ReleaseRunning, releasev1alpha1.ReasonFrozen)
		w.pods("after the first stage", "web:2", 1, 1, 1)
		const want = "ReleaseGlassBroken: Stage one was started in spite of ReleaseGuards by ann: checkout is down (ReleaseGuard fair"
		if !slices.ContainsFunc(w.Events(), func(e string) bool { return strings.Contains(e, want) }) {
			t.Errorf("the events are %q, want %q", w.Events(), want)
		}
	})
}

func TestReleaseStartsWhenAnotherOneLeavesRoomUnderAGuard(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newReleaseWorld(t)
		w.guard("one", `{limits: {releases: 1, podsPercent: 100}}`)
		p := policy("shop", "apps.kruise.io/v1alpha1", "CloneSet")
		p.PropagationSpec().Placement.ReplicaScheduling = &policyv1alpha1.ReplicaSchedulingStrategy{
			ReplicaSchedulingType:     policyv1alpha1.ReplicaSchedulingTypeDivided,
			ReplicaDivisionPreference: policyv1alpha1.ReplicaDivisionPreferenceWeighted}
		api := parsed(t, controllertest.CloneSet, "api", `replicas: 3, updateStrategy: {maxUnavailable: "100%"},
			template: {spec: {containers: [{name: main, image: "api:1"}]}}`)
		api.SetAnnotations(map[string]string{releasev1alpha1.ReleaseStrategyAnnotation: "gray"})
		w.Make(claimed(api, p))
		w.pass(3 * time.Second)
		controllertest.Change(w.Hub, api, func(u *unstructured.Unstructured) {
			fields.Objects(u.Object, "spec", "template", "spec", "containers")[0]["image"] = "api:2"
		})
		w.pass(3 * time.Second)
		// Nobody reports of api in members, so that its release stays in its first stage.
		strategy := releasev1alpha1.ReleaseStrategySpec{Stages: []releasev1alpha1.ReleaseStage{{Name: "all"}}}
		first := &releasev1alpha1.Release{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "first",
			CreationTimestamp: metav1.Now()}}
		first.Spec = releasev1alpha1.ReleaseSpec{Strategy: &strategy, State: releasev1alpha1.StateRun,
			Targets: []releasev1alpha1.ReleaseTarget{{Name: "api", Ref: releasev1alpha1.ReleaseObjectReference{
				APIVersion: "apps.kruise.io/v1alpha1", Kind: "CloneSet", Name: "api"}}}}
		w.Make(first)
		w.pass(3 * time.Second)
		w.expect("the first release", first, releasev1alpha1.ReleaseRunning, releasev1alpha1.ReasonStageUpdating)

		second := w.release("r1", oneTwoSeven)
		w.pass(20 * time.Second)
		w.expect("while the first release is under way", second, releasev1alpha1.ReleaseQueued,
			releasev1alpha1.ReasonLimitReached)
		w.pods("while the first release is under way", "web:2", 0, 0, 0)
		w.Quiet()
		w.pass(time.Minute)
		if writes := w.Quiet(); len(writes) > 0 {
			t.Errorf("written while the release waits: %q", writes)
		}
		w.set(first, releasev1alpha1.StateAbort)
		w.pass(8 * time.Second)
		w.pods("after the first release was aborted", "web:2", 1, 1, 1)
	})
}
