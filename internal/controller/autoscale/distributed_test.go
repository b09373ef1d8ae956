package autoscale

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	autoscalingv1alpha1 "github.com/argosy-io/argosy/api/autoscaling/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/test/kit/controllertest"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

// autoscaler returns the Work with the autoscaler of a cluster.
func autoscaler(cluster string) *workv1alpha1.Work {
	w := &workv1alpha1.Work{}
	w.Namespace, w.Name = names.ExecutionSpace(cluster), names.WorkOfAutoscaler("web", "shop")
	return w
}

// bounds waits until the autoscalers have these bounds, as "a 2-6, b 2-6". Empty means no autoscalers.
func (w *world) bounds(want string) {
	w.t.Helper()
	w.Eventually("the autoscalers have the bounds "+want, func() string {
		var all []string
		for _, cluster := range []string{"a", "b", "c"} {
			if work := autoscaler(cluster); w.HasObject(work) && work.DeletionTimestamp == nil {
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

// placed sets the binding's schedule, as the scheduler does.
func (w *world) placed() {
	w.t.Helper()
	b := w.binding()
	if !w.HasObject(b) {
		w.t.Fatal("there is no binding")
	}
	b.Status.LastScheduledTime = &metav1.Time{Time: w.clock.Now()}
	if err := w.Status().Update(w.t.Context(), b); err != nil {
		w.t.Fatal(err)
	}
}

// made sets the status of a cluster's autoscaler.
func (w *world) made(cluster string, current, desired int32) {
	w.t.Helper()
	raw, err := json.Marshal(autoscalingv2.HorizontalPodAutoscalerStatus{CurrentReplicas: current,
		DesiredReplicas: desired,
		Conditions: []autoscalingv2.HorizontalPodAutoscalerCondition{{Type: autoscalingv2.ScalingActive,
			Status: "True"}}})
	if err != nil {
		w.t.Fatal(err)
	}
	work := autoscaler(cluster)
	w.Eventually("the Work is written", func() string {
		if !w.HasObject(work) {
			return "there is none"
		}
		work.Status.ManifestStatuses = []workv1alpha1.ManifestStatus{{Identifier: workv1alpha1.ResourceIdentifier{
			Kind: "HorizontalPodAutoscaler", Version: "v2", Name: "web"}, Status: &runtime.RawExtension{Raw: raw}}}
		if err := w.Status().Update(w.t.Context(), work); err != nil {
			return err.Error()
		}
		return ""
	})
}

// applied sets the condition Applied of a cluster's autoscaler.
func (w *world) applied(cluster string, status metav1.ConditionStatus, message string) {
	w.t.Helper()
	work := autoscaler(cluster)
	w.Eventually("the Work is written", func() string {
		if !w.HasObject(work) {
			return "there is none"
		}
		meta.SetStatusCondition(&work.Status.Conditions, metav1.Condition{Type: workv1alpha1.WorkApplied, Status: status,
			Reason: "Test", Message: message})
		if err := w.Status().Update(w.t.Context(), work); err != nil {
			return err.Error()
		}
		return ""
	})
}

// scheduler waits until the binding passes the autoscalers' replicas to the scheduler. Empty means none.
func (w *world) scheduler(want string) {
	w.t.Helper()
	b := w.binding()
	w.Eventually("the binding has the replicas "+want, func() string {
		if w.HasObject(b); b.Annotations[wellknown.ScaledByMembersAnnotation] != want {
			return fmt.Sprint(b.Annotations)
		}
		return ""
	})
}

// distributed returns a FederatedHPA in mode Distributed.
func (w *world) distributed() *autoscalingv1alpha1.FederatedHPA {
	f := w.scaler("web")
	f.Annotations = map[string]string{wellknown.AutoscalingModeAnnotation: autoscalingv1alpha1.ModeDistributed}
	return f
}

func (w *world) workload() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(w.kind.GroupVersionKind)
	u.SetNamespace("shop")
	u.SetName("web")
	return u
}

func TestBoundsAreSplitBetweenMembers(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t, controllertest.CloneSet)
		f := w.scaler("web")
		f.Annotations = map[string]string{wellknown.AutoscalingModeAnnotation: autoscalingv1alpha1.ModeDistributed}
		w.Make(f)
		w.bounds("a 1-6, b 1-6")
		w.expectConditions("web", "BoundsSplit=Unknown/AutoscalersPending", "not applied yet in these clusters: a, b")
		w.applied("a", metav1.ConditionTrue, "")
		w.expectConditions("web", "BoundsSplit=Unknown/AutoscalersPending", "not applied yet in these clusters: b")
		w.applied("b", metav1.ConditionTrue, "")
		w.expectConditions("web", "BoundsSplit=True/BoundsSplit", "a 1 to 6, b 1 to 6")
		w.Eventually("rollouts know that members scale, before they do", func() string {
			b := w.binding()
			if w.HasObject(b); b.Annotations[wellknown.ScaledByAnnotation] != "web" ||
				b.Annotations[wellknown.ScaledByMembersAnnotation] != "" {
				return fmt.Sprint(b.Annotations)
			}
			return ""
		})

		// The template follows the autoscalers, and the binding passes their replicas to the scheduler.
		w.made("a", 2, 5)
		w.made("b", 2, 2)
		w.becomes(7)
		w.scheduler(`{"a":5,"b":2}`)
		w.Eventually("the status sums up", func() string {
			if w.HasObject(f); f.Status.CurrentReplicas != 4 || f.Status.DesiredReplicas != 7 {
				return fmt.Sprintf("%+v", f.Status)
			}
			return ""
		})
		// That the placement follows is no reason to split again; a cluster that joins, or other bounds, are.
		controllertest.Change(w.Hub, w.binding(), func(b *workv1alpha2.ResourceBinding) {
			b.Spec.Replicas, b.Spec.Clusters = 7,
				[]workv1alpha2.TargetCluster{{Name: "a", Replicas: 5}, {Name: "b", Replicas: 2}}
		})
		w.made("a", 5, 5)
		w.Quiet()
		w.bounds("a 1-6, b 1-6")
		if wrote := w.Quiet(); len(wrote) > 0 {
			t.Errorf("nothing changed, and it writes %v", wrote)
		}
		controllertest.Change(w.Hub, w.scaler("web"), func(f *autoscalingv1alpha1.FederatedHPA) { f.Spec.MaxReplicas = 14 })
		w.bounds("a 1-10, b 1-4")

		// Replicas that move are followed, though there are as many as before.
		w.stop()
		w.made("a", 3, 3)
		w.made("b", 4, 4)
		w.run()
		w.scheduler(`{"a":3,"b":4}`)
		if n := w.replicas(); n != 7 {
			t.Errorf("the workload has %d replicas", n)
		}

		// More clusters than replicas cannot be: each has one, and the template follows.
		one := int32(1)
		controllertest.Change(w.Hub, w.scaler("web"), func(f *autoscalingv1alpha1.FederatedHPA) {
			f.Spec.MinReplicas,
				f.Spec.MaxReplicas = &one, 1
		})
		w.expectConditions("web", "BoundsSplit=False/MoreClustersThanReplicas: maxReplicas is 1, but the workload is in 2 clusters")
		w.bounds("a 1-1, b 1-1")
		w.becomes(2)
		w.scheduler(`{"a":1,"b":1}`)
		w.Quiet()
		if wrote := w.Quiet(); len(wrote) > 0 {
			t.Errorf("nothing changed, and it writes %v", wrote)
		}

		// When the hub scales again, the members' autoscalers go.
		controllertest.Change(w.Hub, w.scaler("web"), func(f *autoscalingv1alpha1.FederatedHPA) {
			f.Annotations, f.Spec.MaxReplicas = nil, 12
		})
		w.bounds("")
		w.expectConditions("web", "ScalingActive=True/ValidMetricFound: the desired replica count is calculated from")
		if got := w.conditions("web"); strings.Contains(got, "BoundsSplit") {
			t.Errorf("it still has %s", got)
		}
		w.scheduler("")
	})
}

func TestAutoscalersAreDeletedAfterHubRestart(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t, controllertest.Deployment)
		f := w.scaler("web")
		f.Annotations = map[string]string{wellknown.AutoscalingModeAnnotation: autoscalingv1alpha1.ModeDistributed}
		w.Make(f)
		w.bounds("a 1-6, b 1-6")
		w.stop()
		w.Gone(w.scaler("web"))
		w.run()
		w.bounds("")
	})
}

func TestAutoscalerLeavesClusterAfterWorkload(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t, controllertest.Deployment)
		w.Make(w.distributed())
		w.bounds("a 1-6, b 1-6")
		w.moves(nil)
		w.bounds("a 2-12, b 1-6")
		controllertest.Change(w.Hub, w.binding(),
			func(b *workv1alpha2.ResourceBinding) { b.Spec.GracefulEvictionTasks = nil })
		w.bounds("a 2-12")
	})
}

func TestAutoscalersAreDeletedWithWorkload(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t, controllertest.Deployment)
		f := w.scaler("web")
		f.Annotations = map[string]string{wellknown.AutoscalingModeAnnotation: autoscalingv1alpha1.ModeDistributed}
		w.Make(f)
		w.bounds("a 1-6, b 1-6")
		w.Gone(w.workload())
		w.expectConditions("web", "AbleToScale=False/FailedGetScaleTargetRef")
		w.Quiet()
		w.bounds("a 1-6, b 1-6") // while it has a binding, the template may only be unknown
		w.Gone(w.binding())
		w.bounds("")
	})
}

func TestDuplicatedReplicasCannotBeSplit(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t, controllertest.Deployment)
		controllertest.Change(w.Hub, w.binding(), func(b *workv1alpha2.ResourceBinding) {
			b.Spec.Placement.ReplicaScheduling.ReplicaSchedulingType = policyv1alpha1.ReplicaSchedulingTypeDuplicated
		})
		f := w.scaler("web")
		f.Annotations = map[string]string{wellknown.AutoscalingModeAnnotation: autoscalingv1alpha1.ModeDistributed}
		w.Make(f)
		w.expectConditions("web", "BoundsSplit=False/ReplicasDuplicated")
		w.bounds("")
	})
}

func TestUsersOwnAutoscalerIsKept(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t, controllertest.Deployment)
		// The user propagates an autoscaler of the same name.
		own := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: names.ExecutionSpace("a"),
			Name: names.Work("HorizontalPodAutoscaler", "web", "shop")}}
		own.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(
			`{"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler"}`)}}}
		w.Make(own)
		w.Make(w.distributed())
		w.bounds("a 1-6, b 1-6")
		w.expectConditions("web", "BoundsSplit=Unknown/AutoscalersPending")
		w.applied("b", metav1.ConditionTrue, "")
		w.applied("a", metav1.ConditionFalse, "it belongs to another Work")
		w.expectConditions("web", "BoundsSplit=False/AutoscalerNotApplied: some clusters do not have their autoscaler: cluster a: it belongs to another Work")
		version := own.ResourceVersion
		if !w.HasObject(own) || own.ResourceVersion != version {
			t.Errorf("the user's own has been written: %+v", own)
		}
	})
}

func TestZeroReplicasDisableDistributedScaling(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t, controllertest.Deployment)
		w.Make(w.distributed())
		w.bounds("a 1-6, b 1-6")
		w.made("a", 3, 3)
		w.scheduler(`{"a":3,"b":2}`)
		set := func(n int64) {
			w.Eventually("the workload is written", func() string {
				u := w.workload()
				if w.HasObject(u); unstructured.SetNestedField(u.Object, n, "spec", "replicas") != nil {
					return "it has no spec"
				}
				if err := w.Update(t.Context(), u); err != nil {
					return err.Error()
				}
				return ""
			})
		}
		w.becomes(5)
		set(0)
		w.bounds("")
		w.scheduler("")
		w.expectConditions("web", "ScalingActive=False/ScalingDisabled: autoscaling is disabled because the workload has zero replicas")
		w.Quiet()
		if n := w.replicas(); n != 0 {
			t.Errorf("it has been switched off, and has %d replicas", n)
		}
		for _, cluster := range []string{"a", "b"} { // the members have let them go
			controllertest.Change(w.Hub, autoscaler(cluster), func(work *workv1alpha1.Work) { work.Finalizers = nil })
		}
		set(4)
		w.bounds("a 1-6, b 1-6")
	})
}

func TestBindingOfFormerTargetIsReleased(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t, controllertest.Deployment)
		api := w.workload()
		if !w.HasObject(api) {
			t.Fatal("there is no workload")
		}
		api.SetName("api")
		api.SetUID("")
		api.SetResourceVersion("")
		w.Make(api)
		of := w.binding()
		if !w.HasObject(of) {
			t.Fatal("there is no binding")
		}
		of = of.DeepCopy()
		of.Name, of.UID, of.ResourceVersion, of.Spec.Resource.Name, of.Spec.Resource.UID = names.Binding("Deployment", "api"),
			"", "", "api", api.GetUID()
		w.Make(of)
		w.Make(w.distributed())
		w.bounds("a 1-6, b 1-6")
		w.made("a", 3, 3)
		w.scheduler(`{"a":3,"b":2}`)
		controllertest.Change(w.Hub, w.scaler("web"),
			func(f *autoscalingv1alpha1.FederatedHPA) { f.Spec.ScaleTargetRef.Name = "api" })
		w.scheduler("")
	})
}

func TestClusterWithoutExecutionNamespaceBlocksNothing(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t, controllertest.Deployment)
		w.Gone(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: names.ExecutionSpace("b")}})
		w.Make(w.distributed())
		w.bounds("a 1-6")
		w.made("a", 2, 5)
		w.becomes(7)
		w.applied("a", metav1.ConditionTrue, "")
		w.expectConditions("web", "BoundsSplit=Unknown/AutoscalersPending", "not applied yet in these clusters: b")
		w.Make(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: names.ExecutionSpace("b")}})
		w.bounds("a 1-6, b 1-6")
	})
}

func TestAutoscalersAreDeletedWithPolicy(t *testing.T) {
	for what, change := range map[string]func(*world){
		"the binding is gone": func(w *world) { w.Gone(w.binding()) },
		"it is in no cluster any more": func(w *world) {
			w.placed()
			controllertest.Change(w.Hub, w.binding(), func(b *workv1alpha2.ResourceBinding) { b.Spec.Clusters = nil })
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			controllertest.Run(t, func(t *testing.T) {
				w := newWorld(t, controllertest.Deployment)
				w.Make(w.distributed())
				w.bounds("a 1-6, b 1-6")
				change(w)
				w.bounds("")
				w.expectConditions("web", "AbleToScale=False")
				if got := w.conditions("web"); strings.Contains(got, "BoundsSplit") {
					t.Errorf("it still has %s", got)
				}
			})
		})
	}
}

// A user deletes the binding of a claimed workload. It is recreated, and the autoscalers stay meanwhile.
func TestAutoscalersStayWhileBindingIsRecreated(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t, controllertest.Deployment)
		p := &policyv1alpha1.ClusterPropagationPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p",
			Labels: map[string]string{policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel: "id"}}}
		web := &unstructured.Unstructured{}
		web.SetGroupVersionKind(w.kind.GroupVersionKind)
		web.SetNamespace("shop")
		web.SetName("web")
		controllertest.Change(w.Hub, web, func(u *unstructured.Unstructured) { propagate.Claim(u, p) })
		w.Make(w.distributed())
		w.bounds("a 1-6, b 1-6")
		before := autoscaler("a")
		w.HasObject(before)
		stays := func(when string) {
			t.Helper()
			w.Quiet()
			w.bounds("a 1-6, b 1-6")
			if now := autoscaler("a"); !w.HasObject(now) || now.UID != before.UID {
				t.Errorf("%s, the autoscaler of a is another", when)
			}
		}

		old := w.binding()
		w.HasObject(old)
		w.Gone(w.binding())
		w.expectConditions("web", "AbleToScale=False/FailedGetBinding")
		stays("while there is no binding")

		anew := old.DeepCopy()
		anew.UID, anew.ResourceVersion, anew.Spec.Clusters = "", "", nil
		w.Make(anew)
		w.expectConditions("web", "AbleToScale=False/FailedGetTargetClusters")
		stays("while it is not placed")

		controllertest.Change(w.Hub, w.binding(),
			func(b *workv1alpha2.ResourceBinding) { b.Spec.Clusters = old.Spec.Clusters })
		w.expectConditions("web", "AbleToScale=True")
		stays("when it is placed")
	})
}

// node sets the only node of a cluster.
func (w *world) node(cluster string, cordoned bool) {
	n := &corev1.Node{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}, ObjectMeta: metav1.ObjectMeta{Name: "n"},
		Spec: corev1.NodeSpec{Unschedulable: cordoned}}
	n.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("8"),
		corev1.ResourcePods: resource.MustParse("110")}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	w.members[cluster].Put(n)
}

// pending sets how many pods of the workload are unschedulable in a cluster.
func (w *world) pending(cluster string, pods ...string) {
	for _, name := range []string{"p0", "p1"} {
		w.members[cluster].Remove(membertest.Pod, "shop", name)
	}
	for _, name := range pods {
		p := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name,
				Labels: map[string]string{"app": "web", "pod-template-hash": "x"},
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-x",
					Controller: new(true)}}}}
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
			Reason: corev1.PodReasonUnschedulable}}
		w.members[cluster].Put(p)
	}
}

func TestBoundsLeaveAClusterWithoutRoomAndReturn(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t, controllertest.Deployment)
		w.stop()
		w.measures = true
		w.node("a", false)
		w.node("b", false)
		controllertest.Change(w.Hub, w.binding(), func(b *workv1alpha2.ResourceBinding) {
			b.Spec.ReplicaRequirements = &workv1alpha2.ReplicaRequirements{
				ResourceRequest: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}}
		})
		w.run()
		for _, name := range []string{"a", "b"} {
			m, err := w.connections.Get(name)
			if err != nil {
				t.Fatal(err)
			}
			<-m.Load()
		}
		w.Make(w.distributed())
		w.bounds("a 1-6, b 1-6")
		w.applied("a", metav1.ConditionTrue, "")
		w.applied("b", metav1.ConditionTrue, "")
		w.expectConditions("web", "a 1 to 6, b 1 to 6")
		w.Quiet()

		w.node("a", true)
		w.pending("a", "p0", "p1")
		w.expectConditions("web", "the bounds are divided again at 2027-01-11T08:04:00Z, unless it changes back")
		w.Quiet()
		w.clock.SetTime(w.clock.Now().Add(4 * time.Minute))
		if wrote := w.Quiet(); len(wrote) > 0 {
			t.Errorf("in the window, it writes %v", wrote)
		}
		w.bounds("a 1-6, b 1-6")
		w.clock.SetTime(w.clock.Now().Add(time.Minute))
		w.bounds("a 1-1, b 1-11")
		w.expectConditions("web", "cluster a has room for 0 replicas, so it gets less and others get more")
		w.Quiet()
		w.clock.SetTime(w.clock.Now().Add(time.Hour))
		if wrote := w.Quiet(); len(wrote) > 0 {
			t.Errorf("nothing changed, and it writes %v", wrote)
		}

		w.node("a", false)
		w.pending("a")
		w.expectConditions("web", "the bounds are divided again at")
		w.Ready("a", metav1.ConditionFalse, "ClusterNotReachable")
		w.Quiet()
		w.clock.SetTime(w.clock.Now().Add(time.Hour))
		w.Quiet()
		w.bounds("a 1-1, b 1-11") // a lost cluster keeps its bounds
		w.Ready("a", metav1.ConditionTrue, "ClusterReady")
		w.expectConditions("web", "the bounds are divided again at")
		w.clock.SetTime(w.clock.Now().Add(5 * time.Minute))
		w.bounds("a 1-6, b 1-6")
	})
}
