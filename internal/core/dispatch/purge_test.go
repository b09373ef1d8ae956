package dispatch_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/dispatch"
)

func TestPurgeIsStuckWhileNoWorkCanBeDeleted(t *testing.T) {
	clusters := map[string]*clusterv1alpha1.Cluster{}
	for name, status := range map[string]metav1.ConditionStatus{"eu": metav1.ConditionTrue, "us": metav1.ConditionFalse,
		"ap": metav1.ConditionUnknown} {
		c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
		meta.SetStatusCondition(&c.Status.Conditions, metav1.Condition{Type: clusterv1alpha1.ClusterConditionReady,
			Status: status})
		clusters[name] = c
	}
	for _, c := range []struct {
		name  string
		in    []string
		kept  string // the cluster with the annotation hands-off
		stuck bool
	}{
		{"nothing is purged", nil, "", false},
		{"the cluster responds", []string{"eu"}, "", false},
		{"neither responds", []string{"us", "ap"}, "", true},
		{"one of them responds", []string{"us", "eu"}, "", false},
		{"the annotation hands-off keeps the object", []string{"eu"}, "eu", true},
		{"one is kept and one does not respond", []string{"eu", "us"}, "eu", true},
		{"one is kept and one responds", []string{"us", "eu"}, "us", false},
	} {
		var works []workv1alpha1.Work
		for _, cluster := range c.in {
			w := workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-" + cluster}}
			if cluster == c.kept {
				w.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkHandsOff, Status: metav1.ConditionTrue}}
			}
			works = append(works, w)
		}
		if got := dispatch.PurgeIsStuck(works, func(name string) *clusterv1alpha1.Cluster {
			return clusters[name]
		}); got != c.stuck {
			t.Errorf("%s: stuck is %t", c.name, got)
		}
	}
}

func TestHandsOffOfDeletedWorkIsAnEvent(t *testing.T) {
	free := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{}}}
	kept := free.DeepCopy()
	kept.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkHandsOff, Status: metav1.ConditionTrue}}
	if !dispatch.Moved(free, kept) || !dispatch.Moved(kept, free) || dispatch.Moved(kept, kept) {
		t.Error("the binding is not reconciled when the annotation is set or removed, or is without a change")
	}
}

func TestStuckPurgeUpdatesOtherCopiesAndStartsNoReplacement(t *testing.T) {
	const divided = "placement: {replicaScheduling: {replicaSchedulingType: Divided}}\nreplicas: 5\n"
	before := input(t, deployment, divided+"clusters: [{name: eu, replicas: 3}, {name: us, replicas: 2}]")
	existing := works(t, before)

	// It leaves eu directly: us gains one, and ap takes two.
	in := input(t, deployment, divided+"clusters: [{name: ap, replicas: 2}, {name: us, replicas: 3}]\n"+
		"gracefulEvictionTasks: [{fromCluster: eu, purgeMode: Directly, reason: R, producer: p}]")
	in.Existing = map[string]*workv1alpha1.Work{"us": existing["us"]}
	in.Template.SetLabels(map[string]string{"app": "new"})
	in.Purging = true
	got := works(t, in)
	if len(got) != 1 || got["us"] == nil {
		t.Fatalf("%d Works are made, want the one in us", len(got))
	}
	m := manifest(t, got["us"])
	if n, _, _ := unstructured.NestedInt64(m.Object, "spec", "replicas"); n != 2 || m.GetLabels()["app"] != "new" {
		t.Errorf("us gets %d replicas with the labels %v; want the 2 that it has, with the new label", n, m.GetLabels())
	}
	if n := in.Binding.BindingSpec().Clusters[1].Replicas; n != 3 {
		t.Errorf("the binding itself was changed to %d replicas", n)
	}
	// Fewer replicas replace nothing.
	in.Binding.BindingSpec().Clusters[1].Replicas = 1
	if n, _, _ := unstructured.NestedInt64(manifest(t, works(t, in)["us"]).Object, "spec", "replicas"); n != 1 {
		t.Errorf("us gets %d replicas, want 1", n)
	}

	in.Purging = false
	in.Binding.BindingSpec().Clusters[1].Replicas = 3
	got = works(t, in)
	if n, _, _ := unstructured.NestedInt64(manifest(t, got["us"]).Object, "spec", "replicas"); n != 3 || got["ap"] == nil {
		t.Errorf("after the purge, us gets %d replicas and ap %v", n, got["ap"])
	}
}
