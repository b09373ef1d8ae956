package schedule

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
)

// placedOn returns a binding whose last run placed it on the clusters, with 3 replicas each.
func placedOn(p policyv1alpha1.Placement, clusters ...string) *workv1alpha2.ResourceBinding {
	b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop",
		Name: "web"}
	b.Spec.Replicas, b.Spec.ReplicaRequirements, b.Spec.Placement = 3, &workv1alpha2.ReplicaRequirements{}, &p
	for _, name := range clusters {
		b.Spec.Clusters = append(b.Spec.Clusters, workv1alpha2.TargetCluster{Name: name, Replicas: 3})
	}
	b.Annotations = map[string]string{policyv1alpha1.AppliedPlacementAnnotation: AppliedPlacement(&p)}
	meta.SetStatusCondition(&b.Status.Conditions, Condition(nil))
	now := metav1.Now()
	b.Status.LastScheduledTime = &now
	return b
}

// servingDeployments returns a cluster that serves Deployments.
func servingDeployments(name string, taints ...corev1.Taint) *clusterv1alpha1.Cluster {
	c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: clusterv1alpha1.ClusterSpec{Taints: taints}}
	c.Status.APIEnablements = []clusterv1alpha1.APIEnablement{{GroupVersion: "apps/v1",
		Resources: []clusterv1alpha1.APIResource{{Name: "deployments", Kind: "Deployment"}}}}
	c.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionCompleteAPIEnablements,
		Status: metav1.ConditionTrue}}
	return c
}

func TestDefaultTolerationsDoNotReschedule(t *testing.T) {
	fleet := NewSnapshot([]*clusterv1alpha1.Cluster{servingDeployments("eu"), servingDeployments("us")})
	own := corev1.Toleration{Key: "gpu", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}
	for name, was := range map[string][]corev1.Toleration{"none before": nil, "an own one before": {own}} {
		t.Run(name, func(t *testing.T) {
			b := placedOn(policyv1alpha1.Placement{ClusterTolerations: was}, "eu", "us")
			if reason, due := Due(b, fleet); due {
				t.Fatalf("the binding is due before anything changes: %s", reason)
			}
			d := membership.TolerationDefaults{NotReady: 300, Unreachable: 300}
			b.Spec.Placement.ClusterTolerations = d.WithDefaults(was)
			if reason, due := Due(b, fleet); due {
				t.Errorf("default tolerations make the binding due: %s", reason)
			}
			b.Spec.Placement.ClusterTolerations = append(b.Spec.Placement.ClusterTolerations,
				corev1.Toleration{Key: "disk", Operator: corev1.TolerationOpExists})
			if reason, _ := Due(b, fleet); reason != PlacementChanged {
				t.Errorf("another toleration makes the binding due for %q, want %q", reason, PlacementChanged)
			}
		})
	}
}

func TestLostClusterKeepsItsWorkloadsAndGetsNoNewOnes(t *testing.T) {
	lost, _ := membership.Taints(nil, &metav1.Condition{Type: clusterv1alpha1.ClusterConditionReady,
		Status: metav1.ConditionFalse}, metav1.Now().Time)
	fleet := NewSnapshot([]*clusterv1alpha1.Cluster{servingDeployments("eu", lost...), servingDeployments("us")})
	defaults := membership.TolerationDefaults{NotReady: 300, Unreachable: 300}
	for name, tolerations := range map[string][]corev1.Toleration{"without tolerations": nil,
		"with default tolerations": defaults.WithDefaults(nil)} {
		t.Run(name, func(t *testing.T) {
			placed := placedOn(policyv1alpha1.Placement{ClusterTolerations: tolerations}, "eu", "us")
			if reason, due := Due(placed, fleet); due {
				t.Errorf("the lost cluster makes the binding due: %s", reason)
			}
			// Not even a WorkloadRebalancer removes it: it is unknown whether it fits elsewhere.
			asked := metav1.NewTime(placed.Status.LastScheduledTime.Add(3600e9))
			placed.Spec.RescheduleTriggeredAt = &asked
			candidates, _ := feasible(placed, fleet, 0)
			if len(candidates) != 2 {
				t.Errorf("after a rebalancing it may be in %v, want both clusters", candidates)
			}
			candidates, rejections := feasible(placedOn(policyv1alpha1.Placement{ClusterTolerations: tolerations}), fleet, 0)
			if len(candidates) != 1 || candidates[0].Cluster.Name != "us" {
				t.Errorf("a new workload may go to %v (%v), want us alone", candidates, rejections)
			}
		})
	}
}
