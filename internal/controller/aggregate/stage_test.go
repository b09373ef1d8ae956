package aggregate

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
	"github.com/argosy-io/argosy/test/kit/controllertest"
)

// rollsOut creates the Works of a CloneSet with two pods per cluster, of which one may be updated in m1.
func (w *world) rollsOut() {
	w.t.Helper()
	controllertest.Change(w.Hub, w.template, func(u *unstructured.Unstructured) {
		u.SetAnnotations(map[string]string{wellknown.RolloutOrderAnnotation: "Stages",
			wellknown.RolloutStagesAnnotation: `[{"percent": 10, "pause": true}, {"percent": 100}]`})
		u.Object["spec"] = map[string]any{"replicas": int64(6), "template": map[string]any{"image": "2"}}
	})
	controllertest.Change(w.Hub, w.binding, func(b workv1alpha2.Binding) {
		b.BindingSpec().Replicas = 6
		b.BindingSpec().Placement = &policyv1alpha1.Placement{ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{
			ReplicaSchedulingType:     policyv1alpha1.ReplicaSchedulingTypeDivided,
			ReplicaDivisionPreference: policyv1alpha1.ReplicaDivisionPreferenceWeighted}}
	})
	w.HasObject(w.template)
	for i, partition := range []int64{1, 2, 2} {
		m := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
			"replicas": int64(2), "template": map[string]any{"image": "2"},
			"updateStrategy": map[string]any{"partition": partition}}}}
		m.SetGroupVersionKind(w.template.GroupVersionKind())
		m.SetNamespace("shop")
		m.SetName("c")
		m.SetAnnotations(map[string]string{workv1alpha2.TemplateGenerationAnnotation: fmt.Sprint(w.template.GetGeneration())})
		raw, err := json.Marshal(m)
		if err != nil {
			w.t.Fatal(err)
		}
		controllertest.Change(w.Hub, w.works[i], func(work *workv1alpha1.Work) {
			work.Annotations[wellknown.FleetAnnotation] = "{}"
			work.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: raw}}}
		})
	}
	w.Advance(time.Minute)
	w.Quiet()
}

// updated sets the number of updated pods, of two, that a cluster reports.
func (w *world) updated(at int, n int) {
	w.t.Helper()
	work := w.works[at]
	w.HasObject(work)
	work.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkApplied, Status: metav1.ConditionTrue, Reason: "r",
		ObservedGeneration: work.Generation, LastTransitionTime: metav1.Now()}}
	raw := fmt.Sprintf(`{"resourceTemplateGeneration":%d,"replicas":2,"availableReplicas":2,"readyReplicas":2,"updatedReplicas":%d,"updatedReadyReplicas":%[2]d,"updatedAvailableReplicas":%[2]d}`,
		w.template.GetGeneration(), n)
	work.Status.ManifestStatuses = []workv1alpha1.ManifestStatus{{Health: workv1alpha1.ResourceHealthy,
		Status: &runtime.RawExtension{Raw: []byte(raw)}}}
	if err := w.Status().Update(w.t.Context(), work); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) stage(want string) {
	w.t.Helper()
	w.Eventually("the stage is "+want, func() string {
		w.HasObject(w.binding)
		c := meta.FindStatusCondition(w.binding.BindingStatus().Conditions, fleet.StagesCompleted)
		if c == nil || c.Reason != want {
			return fmt.Sprintf("it is %+v", c)
		}
		return ""
	})
}

func TestStageIsWrittenWithTheReport(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t, controllertest.CloneSet, "shop", Options{Gather: 20 * time.Millisecond, StatusWindow: time.Second})
		w.rollsOut()
		for i := range clusters {
			w.updated(i, 0)
		}
		w.stage("Stage1Of2InProgress")
		w.Advance(time.Minute)
		w.Quiet()

		w.updated(0, 1)
		w.stage("Stage1Of2WaitingForApproval")
		bindings := 0
		for _, write := range w.statusWrites() {
			if strings.Contains(write, "bindings") {
				bindings++
			}
		}
		if bindings != 1 {
			t.Errorf("the status of the binding was written %d times, want 1: with the report", bindings)
		}
		w.HasObject(w.binding)
		if s, ok := fleet.ReportedStage(w.binding.BindingStatus().Conditions, w.template.GetGeneration()); !ok ||
			s.Number != 1 {
			t.Errorf("the stage is read as %+v (%v)", s, ok)
		}

		controllertest.Change(w.Hub, w.template,
			func(u *unstructured.Unstructured) { u.SetAnnotations(map[string]string{"any": "1"}) })
		w.Quiet()
		w.updated(1, 1)
		w.Eventually("without stages there is no condition", func() string {
			w.HasObject(w.binding)
			if c := meta.FindStatusCondition(w.binding.BindingStatus().Conditions, fleet.StagesCompleted); c != nil {
				return fmt.Sprintf("it is %+v", c)
			}
			return ""
		})
	})
}
