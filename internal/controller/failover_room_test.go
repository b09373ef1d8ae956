package controller

import (
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/schedule"
	"github.com/argosy-io/argosy/test/kit/controllertest"
	"github.com/argosy-io/argosy/test/kit/coretest"
)

// While a workload is moved out of a lost cluster, another binding takes the room that the plan found in m2. The next
// plan finds room in m3.
func TestFailoverPlansAgainIfItsRoomIsTaken(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.addNode("m1", "big", 40)
		w.addNode("m2", "big", 20)
		w.write(coretest.Object(t, "{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, metadata: {namespace: shop, name: p}, "+
			"spec: {resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}], placement: {clusterAffinity: {clusterNames: [m1, m2, m3]}, "+
			"replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Aggregated}}}}"))
		w.write(coretest.Object(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: shop, name: a}, spec: {replicas: 2, selector: {}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: web, resources: {requests: {cpu: "1"}}}]}}}}`))
		w.settle()
		placed := func() string { return w.placed()["Deployment shop/a"] }
		if got := placed(); got != "PropagationPolicy shop/p to [{m1 2 []}]" {
			t.Fatalf("at first it is placed by %s", got)
		}
		other := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "other"}}
		other.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop",
			Name: "other"}
		for _, cpu := range w.members["m2"].cpu {
			other.Spec.Replicas += int32(cpu)
		}
		other.Spec.ReplicaRequirements = &workv1alpha2.ReplicaRequirements{ResourceRequest: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("1")}}
		var taken atomic.Int32
		w.room.Estimate(func(workv1alpha2.Binding, schedule.Snapshot) schedule.Capacity {
			return func(cluster string) (int32, bool) {
				if cluster == "m2" && taken.Add(1) == 1 { // the plan has read the room in m2
					w.room.Assume(other, []workv1alpha2.TargetCluster{{Name: "m2", Replicas: other.Spec.Replicas}})
				}
				return 0, false
			}
		})
		w.members["m1"].down = true
		w.members["m1"].Down(true)
		w.Advance(time.Minute)
		w.settle()
		w.pass(10)
		w.settle()
		if got := placed(); got != "PropagationPolicy shop/p to [{m3 2 []}]" {
			t.Errorf("it is placed by %s, and m2 was asked %d times", got, taken.Load())
		}
	})
}
