package controller

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/test/kit/controllertest"
)

// strategy creates the ReleaseStrategy that the template names.
func (w *releaseWorld) strategy(spec string) {
	w.t.Helper()
	s := &releasev1alpha1.ReleaseStrategy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "gray", Generation: 1}}
	if err := yaml.UnmarshalStrict([]byte(spec), &s.Spec); err != nil {
		w.t.Fatal(err)
	}
	w.Make(s)
	synctest.Wait()
}

// phases are the phases of all releases, the oldest first.
func (w *releaseWorld) phases() (phases []releasev1alpha1.ReleasePhase) {
	w.t.Helper()
	var all releasev1alpha1.ReleaseList
	if err := w.List(w.t.Context(), &all); err != nil {
		w.t.Fatal(err)
	}
	slices.SortFunc(all.Items, func(a, b releasev1alpha1.Release) int {
		return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	})
	for _, r := range all.Items {
		phases = append(phases, r.Status.Phase)
	}
	return phases
}

func (w *releaseWorld) expectPhases(when string, want ...releasev1alpha1.ReleasePhase) {
	w.t.Helper()
	if got := w.phases(); !slices.Equal(got, want) {
		w.t.Fatalf("%s, the releases are %v, want %v", when, got, want)
	}
}

const startedByHub = `
autoStart: {}
failure: {action: Rollback}
stages:
- {name: canary, to: {percent: 10}, deadline: 30s}
- {name: rest}
`

func TestTheHubStartsAReleaseForEachChangeAndUndoesNoRollback(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newReleaseWorld(t)
		w.strategy(startedByHub)
		w.pass(20 * time.Second)
		w.pods("after the first change", "web:2", 10, 10, 10)
		w.expectPhases("after the first change", releasev1alpha1.ReleaseSucceeded)
		if n := count(w.Quiet())["create releases"]; n != 1 {
			t.Errorf("%d releases were created, want 1", n)
		}

		w.failing = "web:3"
		w.image("web:3")
		w.pass(2 * time.Minute)
		w.pods("after a change that fails", "web:2", 10, 10, 10)
		w.expectPhases("after a change that fails", releasev1alpha1.ReleaseSucceeded, releasev1alpha1.ReleaseRolledBack)
		w.stop()
		w.start()
		w.pass(time.Minute)
		w.expectPhases("after a restart", releasev1alpha1.ReleaseSucceeded, releasev1alpha1.ReleaseRolledBack)

		w.image("web:4")
		w.pass(20 * time.Second)
		w.pods("after the fix", "web:4", 10, 10, 10)
		w.expectPhases("after the fix", releasev1alpha1.ReleaseSucceeded, releasev1alpha1.ReleaseRolledBack,
			releasev1alpha1.ReleaseSucceeded)
		for _, request := range w.Quiet() {
			if request == "update clonesets" || request == "patch clonesets" {
				t.Errorf("the hub wrote the template: %s", request)
			}
		}
	})
}

func TestDirectChangesAreRecordedWhereAGuardRequiresIt(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newReleaseWorld(t)
		web := &unstructured.Unstructured{}
		web.SetGroupVersionKind(controllertest.CloneSet.GroupVersionKind)
		web.SetNamespace("shop")
		web.SetName("web")
		w.image("web:1") // what members have
		controllertest.Change(w.Hub, web, func(u *unstructured.Unstructured) { u.SetAnnotations(nil) })
		w.pass(10 * time.Second)
		w.image("web:2")
		w.pass(10 * time.Second)
		w.pods("without a guard", "web:2", 10, 10, 10)
		w.expectPhases("without a guard")

		w.guard("record", "{require: Record}")
		w.pass(5 * time.Second)
		w.expectPhases("after the guard, which finds another revision than the last one stored",
			releasev1alpha1.ReleaseSucceeded)
		w.image("web:3")
		w.pass(15 * time.Second)
		w.pods("after a direct change", "web:3", 10, 10, 10)
		w.expectPhases("after a direct change", releasev1alpha1.ReleaseSucceeded, releasev1alpha1.ReleaseSucceeded)
		if w.plan() != nil {
			t.Error("the record has a plan")
		}
		w.failing = "web:4"
		w.image("web:4")
		w.pass(10 * time.Second)
		w.expectPhases("while pods fail", releasev1alpha1.ReleaseSucceeded, releasev1alpha1.ReleaseSucceeded,
			releasev1alpha1.ReleaseRunning)
		w.image("web:5")
		w.pass(15 * time.Second)
		w.expectPhases("after the fix", releasev1alpha1.ReleaseSucceeded, releasev1alpha1.ReleaseSucceeded,
			releasev1alpha1.ReleaseSuperseded, releasev1alpha1.ReleaseSucceeded)
	})
}

// respecify changes the ReleaseStrategy that the template names.
func (w *releaseWorld) respecify(spec string) {
	w.t.Helper()
	s := &releasev1alpha1.ReleaseStrategy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "gray"}}
	controllertest.Change(w.Hub, s, func(s *releasev1alpha1.ReleaseStrategy) {
		s.Spec = releasev1alpha1.ReleaseStrategySpec{}
		if err := yaml.UnmarshalStrict([]byte(spec), &s.Spec); err != nil {
			w.t.Fatal(err)
		}
	})
}

func TestTheOrderOfObjectsThatAreAppliedTogetherDecidesNothing(t *testing.T) {
	const signed = "autoStart: {}\nstages: [{name: all, before: [{name: sign}]}]"
	for name, apply := range map[string]func(w *releaseWorld){
		"the workload, then its strategy": func(w *releaseWorld) {
			w.setImage("web:3")
			w.pass(500 * time.Millisecond)
			w.respecify(signed)
		},
		"the strategy, then the workload": func(w *releaseWorld) {
			w.respecify(signed)
			w.pass(500 * time.Millisecond)
			w.setImage("web:3")
		},
	} {
		t.Run(name, func(t *testing.T) {
			controllertest.Run(t, func(t *testing.T) {
				w := newReleaseWorld(t)
				w.strategy(startedByHub)
				w.pass(20 * time.Second)
				apply(w)
				w.pass(time.Minute)
				w.pods("without an approval", "web:2", 10, 10, 10)
				w.expectPhases("without an approval", releasev1alpha1.ReleaseSucceeded, releasev1alpha1.ReleaseRunning)
			})
		})
	}
}

func TestAChangeOfTheStrategyAloneLetsARefusedReleaseGoOn(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newReleaseWorld(t)
		const stages = "autoStart: {}\nstages: [{name: all, clusters: {labelSelector: {matchLabels: {env: prod}}}}]\n"
		w.strategy(stages)
		w.pass(10 * time.Minute)
		w.expectPhases("while no stage selects the clusters", releasev1alpha1.ReleasePending)
		w.pods("while no stage selects the clusters", "web:1", 10, 10, 10)
		w.respecify(stages + "unassigned: LastStage")
		w.pass(time.Minute)
		w.expectPhases("after the strategy has changed", releasev1alpha1.ReleaseSucceeded)
		w.pods("after the strategy has changed", "web:2", 10, 10, 10)
	})
}
