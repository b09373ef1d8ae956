package autoscale

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	autoscalingv1alpha1 "github.com/argosy-io/argosy/api/autoscaling/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/controller/controllertest"
	"github.com/argosy-io/argosy/internal/core/names"
	"github.com/argosy-io/argosy/internal/core/schedule"
)

// autoscaler is the Work that has the autoscaler of a cluster.
func autoscaler(cluster string) *workv1alpha1.Work {
	w := &workv1alpha1.Work{}
	w.Namespace, w.Name = names.ExecutionSpace(cluster), names.Work("HorizontalPodAutoscaler", "web", "shop")
	return w
}

// bounds waits until the autoscalers have them, as "a 2-6, b 2-6"; none is empty.
func (w *world) bounds(want string) {
	w.t.Helper()
	w.Eventually("the autoscalers have the bounds "+want, func() string {
		var all []string
		for _, cluster := range []string{"a", "b", "c"} {
			if work := autoscaler(cluster); w.Has(work) && work.DeletionTimestamp == nil {
				var hpa autoscalingv2.HorizontalPodAutoscaler
				if err := json.Unmarshal(work.Spec.Workload.Manifests[0].Raw, &hpa); err != nil {
					return err.Error()
				}
				if hpa.Spec.ScaleTargetRef.Name != "web" || len(hpa.Spec.Metrics) != 1 {
					return fmt.Sprintf("it is %+v", hpa.Spec)
				}
				all = append(all, fmt.Sprintf("%s %d-%d", cluster, *hpa.Spec.MinReplicas, hpa.Spec.MaxReplicas))
			}
		}
		if got := strings.Join(all, ", "); got != want {
			return "they have " + got + "; " + w.conditions("web")
		}
		return ""
	})
}

func (w *world) binding() *workv1alpha2.ResourceBinding {
	b := &workv1alpha2.ResourceBinding{}
	b.Namespace, b.Name = "shop", names.Binding(w.kind.Kind, "web")
	return b
}

// made has the autoscaler of a cluster say what it made of the replicas.
func (w *world) made(cluster string, current, desired int32) {
	w.t.Helper()
	raw, err := json.Marshal(autoscalingv2.HorizontalPodAutoscalerStatus{CurrentReplicas: current, DesiredReplicas: desired,
		Conditions: []autoscalingv2.HorizontalPodAutoscalerCondition{{Type: autoscalingv2.ScalingActive, Status: "True"}}})
	if err != nil {
		w.t.Fatal(err)
	}
	work := autoscaler(cluster)
	w.Eventually("the Work is written", func() string {
		if !w.Has(work) {
			return "there is none"
		}
		work.Status.ManifestStatuses = []workv1alpha1.ManifestStatus{{Identifier: workv1alpha1.ResourceIdentifier{Kind: "HorizontalPodAutoscaler", Version: "v2", Name: "web"}, Status: &runtime.RawExtension{Raw: raw}}}
		if err := w.Status().Update(w.t.Context(), work); err != nil {
			return err.Error()
		}
		return ""
	})
}

func TestBoundsAreSplitBetweenTheMembersAutoscalers(t *testing.T) {
	w := newWorld(t, controllertest.CloneSet)
	f := w.scaler("web")
	f.Annotations = map[string]string{autoscalingv1alpha1.ModeAnnotation: autoscalingv1alpha1.ModeDistributed}
	w.Make(f)
	w.bounds("a 1-6, b 1-6")
	w.says("web", "BoundsSplit=True/BoundsSplit", "a 1 to 6, b 1 to 6")

	// The template follows what the autoscalers make, and the scheduler is told where that is.
	w.made("a", 2, 5)
	w.made("b", 2, 2)
	w.becomes(7)
	b := w.binding()
	w.Eventually("the scheduler is told", func() string {
		if w.Has(b); b.Annotations[schedule.ScaledAnnotation] != `{"a":5,"b":2}` {
			return fmt.Sprint(b.Annotations)
		}
		return ""
	})
	w.Eventually("the status sums up", func() string {
		if w.Has(f); f.Status.CurrentReplicas != 4 || f.Status.DesiredReplicas != 7 {
			return fmt.Sprintf("%+v", f.Status)
		}
		return ""
	})
	// That the placement follows is no reason to split anew; a cluster that joins, or other bounds, are.
	controllertest.Change(w.Hub, w.binding(), func(b *workv1alpha2.ResourceBinding) {
		b.Spec.Replicas, b.Spec.Clusters = 7, []workv1alpha2.TargetCluster{{Name: "a", Replicas: 5}, {Name: "b", Replicas: 2}}
	})
	w.made("a", 5, 5)
	w.Quiet()
	w.bounds("a 1-6, b 1-6")
	if wrote := w.Quiet(); len(wrote) > 0 {
		t.Errorf("nothing changed, and it writes %v", wrote)
	}
	controllertest.Change(w.Hub, w.scaler("web"), func(f *autoscalingv1alpha1.FederatedHPA) { f.Spec.MaxReplicas = 14 })
	w.bounds("a 1-10, b 1-4")

	// More clusters than replicas cannot be; what stands stays.
	one := int32(1)
	controllertest.Change(w.Hub, w.scaler("web"), func(f *autoscalingv1alpha1.FederatedHPA) { f.Spec.MinReplicas, f.Spec.MaxReplicas = &one, 1 })
	w.says("web", "BoundsSplit=False/MoreClustersThanReplicas: maxReplicas is 1, and the workload is in 2 clusters")
	w.bounds("a 1-10, b 1-4")

	// When the hub scales again, the members' autoscalers go.
	controllertest.Change(w.Hub, w.scaler("web"), func(f *autoscalingv1alpha1.FederatedHPA) {
		f.Annotations, f.Spec.MaxReplicas = nil, 12
	})
	w.bounds("")
	w.says("web", "ScalingActive=True/ValidMetricFound: the replicas that the load asks for")
	if got := w.conditions("web"); strings.Contains(got, "BoundsSplit") {
		t.Errorf("it still says %s", got)
	}
	if w.Has(b); b.Annotations[schedule.ScaledAnnotation] != "" {
		t.Errorf("the scheduler is still told %s", b.Annotations[schedule.ScaledAnnotation])
	}
}

func TestAutoscalersGoWithTheirFederatedHPAAlsoWhileTheHubIsDown(t *testing.T) {
	w := newWorld(t, controllertest.Deployment)
	f := w.scaler("web")
	f.Annotations = map[string]string{autoscalingv1alpha1.ModeAnnotation: autoscalingv1alpha1.ModeDistributed}
	w.Make(f)
	w.bounds("a 1-6, b 1-6")
	w.stop()
	w.Gone(w.scaler("web"))
	w.run()
	w.bounds("")
}

func TestAutoscalersGoWithTheirWorkload(t *testing.T) {
	w := newWorld(t, controllertest.Deployment)
	f := w.scaler("web")
	f.Annotations = map[string]string{autoscalingv1alpha1.ModeAnnotation: autoscalingv1alpha1.ModeDistributed}
	w.Make(f)
	w.bounds("a 1-6, b 1-6")
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(w.kind.GroupVersionKind)
	u.SetNamespace("shop")
	u.SetName("web")
	w.Gone(u)
	w.says("web", "AbleToScale=False/FailedGetScaleTargetRef")
	w.Quiet()
	w.bounds("a 1-6, b 1-6") // while it has a binding, the template may only be unknown
	w.Gone(w.binding())
	w.bounds("")
}

func TestReplicasThatAreNotDividedCannotBeSplit(t *testing.T) {
	w := newWorld(t, controllertest.Deployment)
	controllertest.Change(w.Hub, w.binding(), func(b *workv1alpha2.ResourceBinding) {
		b.Spec.Placement.ReplicaScheduling.ReplicaSchedulingType = policyv1alpha1.ReplicaSchedulingTypeDuplicated
	})
	f := w.scaler("web")
	f.Annotations = map[string]string{autoscalingv1alpha1.ModeAnnotation: autoscalingv1alpha1.ModeDistributed}
	w.Make(f)
	w.says("web", "BoundsSplit=False/ReplicasDuplicated")
	w.bounds("")
}
