package autoscale

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	autoscalingv1alpha1 "github.com/argosy-io/argosy/api/autoscaling/v1alpha1"
	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
	"github.com/argosy-io/argosy/test/kit/controllertest"
)

// freezes starts a stage of a release with autoscaling: Freeze.
func (w *world) freezes() *releasev1alpha1.Release {
	w.t.Helper()
	r := &releasev1alpha1.Release{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "r1"}}
	r.Spec.Targets = []releasev1alpha1.ReleaseTarget{{Name: "web", Ref: releasev1alpha1.ReleaseObjectReference{
		APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}}}
	w.Make(r)
	w.stage(r, releasev1alpha1.StageUpdating)
	controllertest.Change(w.Hub, w.binding(), func(b *workv1alpha2.ResourceBinding) {
		b.Annotations = map[string]string{fleet.EffectiveRevisionAnnotation: "web-2",
			fleet.PlanAnnotation: (&fleet.Plan{Release: "r1", UID: string(r.UID), Revision: "web-2", At: 1}).String()}
	})
	return r
}

// stage sets the phase of the release's stage.
func (w *world) stage(r *releasev1alpha1.Release, phase releasev1alpha1.ReleaseStagePhase) {
	w.t.Helper()
	r.Status.Phase = releasev1alpha1.ReleaseRunning
	r.Status.Strategy = &releasev1alpha1.ReleaseStrategySpec{Autoscaling: releasev1alpha1.AutoscalingFreeze}
	r.Status.Stages = []releasev1alpha1.ReleaseStageStatus{{Name: "half", Attempt: 1, Phase: phase}}
	if err := w.Status().Update(w.t.Context(), r); err != nil {
		w.t.Fatal(err)
	}
}

const frozen = "AbleToScale=False/FrozenByRelease: release r1 has autoscaling: Freeze, so the hub does not scale the " +
	"workload until stage half ends"

func TestAReleaseFreezesBoundsAndSharesOfMembers(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t, controllertest.Deployment)
		w.Make(w.distributed())
		w.bounds("a 1-6, b 1-6")
		r := w.freezes()
		w.expectConditions("web", frozen)
		w.Quiet()

		// The bounds stay, and the template does not follow the autoscalers in members, which scale.
		controllertest.Change(w.Hub, w.scaler("web"), func(f *autoscalingv1alpha1.FederatedHPA) { f.Spec.MaxReplicas = 20 })
		w.made("a", 2, 5)
		w.made("b", 2, 2)
		w.observed()
		w.bounds("a 1-6, b 1-6")
		if n := w.replicas(); n != 4 {
			t.Errorf("the template has %d replicas during the stage, want 4", n)
		}
		w.scheduler("")

		// A failover moves the replicas, and the autoscalers get the same bounds in total.
		controllertest.Change(w.Hub, w.binding(), func(b *workv1alpha2.ResourceBinding) {
			b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "a", Replicas: 4}}
		})
		w.bounds("a 2-12")

		// All of it follows when the stage has ended, although the next one waits for an approval.
		w.stage(r, releasev1alpha1.StageGated)
		w.bounds("a 2-20")
		w.becomes(5)
		w.expectConditions("web", "AbleToScale=True/")
	})
}

// observed waits until the hub has evaluated the present spec of the FederatedHPA web.
func (w *world) observed() {
	w.t.Helper()
	w.Eventually("the FederatedHPA is evaluated", func() string {
		f := w.scaler("web")
		if w.HasObject(f); f.Status.ObservedGeneration == nil || *f.Status.ObservedGeneration != f.Generation ||
			f.Status.DesiredReplicas != 7 {
			return w.conditions("web")
		}
		return ""
	})
}

func TestAReleaseFreezesTheReplicasThatTheHubCalculates(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t, controllertest.CloneSet)
		w.Make(w.scaler("web"))
		w.expectConditions("web", "AbleToScale=True/ReadyForNewScale")
		r := w.freezes()
		w.expectConditions("web", frozen)
		w.use("a", "100m", "100m")
		w.Quiet()
		w.Advance(time.Minute)
		if wrote := w.Quiet(); len(wrote) > 0 {
			t.Errorf("written during the stage: %v", wrote)
		}
		w.stage(r, releasev1alpha1.StageDone)
		w.becomes(6)
	})
}

// Autoscalers that a user asks for during the stage start after it.
func TestAReleaseDelaysNewAutoscalers(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t, controllertest.Deployment)
		r := w.freezes()
		w.Make(w.distributed())
		w.expectConditions("web", frozen)
		w.bounds("")
		w.Gone(r)
		w.bounds("a 1-6, b 1-6")
	})
}
