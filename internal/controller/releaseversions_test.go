package controller

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/internal/controller/controllertest"
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
