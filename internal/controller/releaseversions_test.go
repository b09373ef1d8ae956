package controller

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	corefleet "github.com/argosy-io/argosy/internal/core/workload/fleet"
	"github.com/argosy-io/argosy/test/kit/controllertest"
)

// A user who changes a strategy must know that it replaces pods: docs/releases.md says so.
func TestAStrategyThatStartsToVersionConfigMapsIsAChange(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newConfigWorld(t)
		w.strategy("autoStart: {}\nstages: [{name: all}]")
		w.pass(20 * time.Second)
		w.expectPhases("without versions", releasev1alpha1.ReleaseSucceeded)
		w.reads("without versions", "web", "settings")
		s := &releasev1alpha1.ReleaseStrategy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "gray"}}
		controllertest.Change(w.Hub, s, func(s *releasev1alpha1.ReleaseStrategy) {
			s.Spec.Config = releasev1alpha1.ConfigVersioned
			s.Generation++
		})
		w.pass(20 * time.Second)
		w.expectPhases("with versions", releasev1alpha1.ReleaseSucceeded, releasev1alpha1.ReleaseSucceeded)
		w.reads("with versions", "web", w.version("1").Name)
	})
}

func TestTheHubStartsNoReleaseOfADeletion(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newConfigWorld(t)
		w.strategy("autoStart: {}\nstages: [{name: all}]\nconfig: Versioned")
		w.pass(20 * time.Second)
		w.expectPhases("at first", releasev1alpha1.ReleaseSucceeded)
		w.Gone(settings("1"))
		w.pass(20 * time.Second)
		w.expectPhases("without the ConfigMap", releasev1alpha1.ReleaseSucceeded)
		if got := w.condition("web", corefleet.ChangeAwaitsRelease, metav1.ConditionTrue); got != "" {
			t.Errorf("without the ConfigMap, the binding reports %q", got)
		}
		w.reads("without the ConfigMap", "web", w.version("1").Name)
		w.Make(settings("2"))
		w.pass(20 * time.Second)
		w.expectPhases("with another content", releasev1alpha1.ReleaseSucceeded, releasev1alpha1.ReleaseSucceeded)
		w.reads("with another content", "web", w.version("2").Name)
	})
}

// A rollback to it is refused too.
func TestARevisionWhoseVersionWasDeletedIsNotReleased(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newConfigWorld(t)
		first := w.release("r1", versioned)
		w.pass(20 * time.Second)
		w.expect("after the first release", first, releasev1alpha1.ReleaseSucceeded, releasev1alpha1.ReasonCompleted)
		one := w.version("1")
		w.configure("2")
		second := w.release("r2", versioned)
		w.pass(20 * time.Second)
		w.expect("after the second release", second, releasev1alpha1.ReleaseSucceeded, releasev1alpha1.ReasonCompleted)
		if err := w.Delete(t.Context(), one); err != nil {
			t.Fatal(err)
		}
		w.pass(time.Second)

		w.set(second, releasev1alpha1.StateRollback)
		w.pass(5 * time.Second)
		w.expect("without the version", second, releasev1alpha1.ReleaseSucceeded, releasev1alpha1.ReasonCompleted)
		c := meta.FindStatusCondition(second.Status.Conditions, releasev1alpha1.ReleaseProgressing)
		if c.Reason != releasev1alpha1.ReasonNotRolledBack || !strings.Contains(c.Message, one.Name+", which was deleted") {
			t.Errorf("a rollback without the version shows %s: %s", c.Reason, c.Message)
		}
		w.strategy(versioned)
		back := &releasev1alpha1.Release{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "r3",
			CreationTimestamp: metav1.Now()}}
		back.Spec = *second.Spec.DeepCopy()
		back.Spec.State, back.Spec.StrategyRef.Name = releasev1alpha1.StateRun, "gray"
		back.Spec.Targets[0].To.Revision = first.Status.Targets[0].To
		w.Make(back)
		w.pass(5 * time.Second)
		w.expect("without the version", back, releasev1alpha1.ReleaseFailed, releasev1alpha1.ReasonConfigMapNotFound)
		w.reads("without the version", "web", w.version("2").Name)
	})
}
