package controller

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1alpha1 "github.com/argosy-io/argosy/api/apps/v1alpha1"
	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/test/kit/controllertest"
)

// forget removes a cluster without its member, as unjoin --force does.
func forget(t *testing.T, h *controllertest.Hub, name string) {
	t.Helper()
	cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	h.Gone(cluster)
	h.Eventually("no binding targets "+name, func() string {
		var all workv1alpha2.ResourceBindingList
		if err := h.List(t.Context(), &all); err != nil {
			return err.Error()
		}
		for _, b := range all.Items {
			for _, c := range b.Spec.Clusters {
				if c.Name == name {
					return b.Name + " does"
				}
			}
		}
		return ""
	})
	var works workv1alpha1.WorkList
	if err := h.List(t.Context(), &works, client.InNamespace(names.ExecutionSpace(name))); err != nil {
		t.Fatal(err)
	}
	for i := range works.Items {
		if err := commit.RemoveFinalizer(t.Context(), h, &works.Items[i], workv1alpha2.ExecutionFinalizer,
			execute.OrderedFinalizer); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
		if err := h.Delete(t.Context(), &works.Items[i]); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
	}
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: names.ExecutionSpace(name)}}
	if err := h.Delete(t.Context(), space); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	h.Eventually(name+" is removed", func() string {
		if h.HasObject(cluster) {
			return fmt.Sprint("it is there: ", commit.RemoveFinalizer(t.Context(), h, cluster, workv1alpha2.ClusterFinalizer))
		}
		if h.HasObject(space) {
			return "its execution space is there"
		}
		return ""
	})
}

// A dead cluster keeps its pods when it is removed by force, while their replicas are placed in other clusters too.
func TestDeadClusterCountsOnceAfterRejoin(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		h, members := fleet(t, controllertest.Deployment)
		p := policy("shop", "apps/v1", "Deployment")
		p.PropagationSpec().Placement = policyv1alpha1.Placement{ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{
			ReplicaSchedulingType:     policyv1alpha1.ReplicaSchedulingTypeDivided,
			ReplicaDivisionPreference: policyv1alpha1.ReplicaDivisionPreferenceWeighted}}
		h.Make(p)
		h.Make(claimed(parsed(t, controllertest.Deployment, "web", "replicas: 12, "+pods("web")), p))

		// running waits until the members have these replicas of web, all of them ready, and the template counts so many.
		running := func(when string, counted int32, want map[string]int64) {
			t.Helper()
			template := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
			h.Eventually(when, func() string {
				got := map[string]int64{}
				for name, m := range members {
					if d := m.Object(controllertest.Deployment, "shop", "web"); d != nil {
						got[name], _, _ = unstructured.NestedInt64(d.Object, "spec", "replicas")
						ready, _, _ := unstructured.NestedInt64(d.Object, "status", "readyReplicas")
						observed, _, _ := unstructured.NestedInt64(d.Object, "status", "observedGeneration")
						if ready != got[name] || observed != d.GetGeneration() {
							runs(m, got[name])
						}
					}
				}
				if h.HasObject(template); fmt.Sprint(got) != fmt.Sprint(want) || template.Status.ReadyReplicas != counted {
					return fmt.Sprintf("members have %v, want %v; the template counts %d, want %d", got, want,
						template.Status.ReadyReplicas, counted)
				}
				return ""
			})
		}
		running("each member has its share", 12, map[string]int64{"m1": 4, "m2": 4, "m3": 4})
		uid := members["m1"].Object(controllertest.Deployment, "shop", "web").GetUID()

		members["m1"].Down(true)
		h.Ready("m1", metav1.ConditionFalse, "ClusterNotReachable")
		forget(t, h, "m1")
		running("the others have all replicas, and m1 runs on", 12, map[string]int64{"m1": 4, "m2": 6, "m3": 6})

		members["m1"].Down(false)
		h.JoinAgain("m1", members["m1"], controllertest.Deployment, controllertest.ClusterRole)
		h.Quiet()
		running("the orphan in m1 does not count", 12, map[string]int64{"m1": 4, "m2": 6, "m3": 6})

		h.Make(&appsv1alpha1.WorkloadRebalancer{ObjectMeta: metav1.ObjectMeta{Name: "return"},
			Spec: appsv1alpha1.WorkloadRebalancerSpec{Workloads: []appsv1alpha1.ObjectReference{{APIVersion: "apps/v1",
				Kind: "Deployment", Namespace: "shop", Name: "web"}}}})
		running("the hub takes over what runs in m1", 12, map[string]int64{"m1": 4, "m2": 4, "m3": 4})
		if d := members["m1"].Object(controllertest.Deployment, "shop", "web"); d.GetUID() != uid {
			t.Error("the workload in m1 was created again")
		}
	})
}
