package cluster

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
)

// A wrong clock in the member changes nothing: the hub looks only at whether the Lease changes.
func TestExpiredLeaseMakesAPullClusterUnknown(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := clusterv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	if err := coordinationv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	eu := cluster(metav1.ConditionTrue)
	eu.Spec.SyncMode = clusterv1alpha1.Pull
	long := metav1.NewMicroTime(time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC))
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-cluster", Name: "m1"},
		Spec: coordinationv1.LeaseSpec{RenewTime: &long}}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(eu, lease).
		WithStatusSubresource(&clusterv1alpha1.Cluster{}).Build()
	clock := clocktesting.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	l := &leases{client: c, clock: clock, seen: map[string]renewal{}}
	key := types.NamespacedName{Name: "m1"}
	status := func() metav1.ConditionStatus {
		t.Helper()
		if _, err := l.Reconcile(t.Context(), reconcile.Request{NamespacedName: key}); err != nil {
			t.Fatal(err)
		}
		now := &clusterv1alpha1.Cluster{}
		if err := c.Get(t.Context(), key, now); err != nil {
			t.Fatal(err)
		}
		return meta.FindStatusCondition(now.Status.Conditions, clusterv1alpha1.ClusterConditionReady).Status
	}
	status()
	for range 3 {
		clock.Step(30 * time.Second)
		lease.Labels = map[string]string{"renewed": clock.Now().Format("150405")}
		if err := c.Update(t.Context(), lease); err != nil {
			t.Fatal(err)
		}
		if got := status(); got != metav1.ConditionTrue {
			t.Fatalf("a renewed lease makes the cluster %s", got)
		}
	}
	clock.Step(41 * time.Second)
	if got := status(); got != metav1.ConditionUnknown {
		t.Errorf("without a renewal, the cluster is %s", got)
	}
}
