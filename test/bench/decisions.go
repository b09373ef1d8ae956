package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/schedule"
)

// decisions counts how many bindings a second the core places, replicas divided by the room there is, under these
// constraints.
func decisions(clusters int, must float64, karmada string, constraints ...policyv1alpha1.SpreadConstraint) Row {
	s, work := problem(clusters, 1000)
	what := "dynamic weights"
	if len(constraints) > 0 {
		what += " over regions"
	}
	for _, b := range work {
		b.Spec.Placement.SpreadConstraints = constraints
	}
	began, done := time.Now(), 0
	for time.Since(began) < time.Second {
		for _, b := range work {
			if _, err := schedule.Schedule(b, s, s.Room(b)); err == nil {
				done++
			}
		}
	}
	return Row{Work: fmt.Sprintf("scheduler decisions in core, %d clusters, %s", clusters, what), Unit: "1/s",
		Value: float64(done) / time.Since(began).Seconds(), Must: must, AtLeast: true, Karmada: karmada}
}

// growth is how the time in which the core places all bindings grows with them and with the clusters: each cell once.
func growth(ctx context.Context) (rows []Row, err error) {
	for _, of := range cells {
		s, work := problem(of.clusters, of.bindings)
		began := time.Now()
		for _, b := range work {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			if _, err := schedule.Schedule(b, s, s.Room(b)); err != nil {
				return nil, fmt.Errorf("place %s in %d clusters: %w", b.Name, of.clusters, err)
			}
		}
		rows = append(rows, Row{Work: fmt.Sprintf("… %d clusters × %d bindings, placed in core", of.clusters, of.bindings),
			Unit: "ms", Value: milliseconds(time.Since(began))})
	}
	return rows, nil
}

// problem returns a fleet, and bindings to place in it.
func problem(clusters, bindings int) (schedule.Snapshot, []*workv1alpha2.ResourceBinding) {
	rng := rand.New(rand.NewPCG(1, 2))
	fleet := make([]*clusterv1alpha1.Cluster, clusters)
	for i := range fleet {
		quantity := func(format string, n int) resource.Quantity { return resource.MustParse(fmt.Sprintf(format, n)) }
		fleet[i] = &clusterv1alpha1.Cluster{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("cluster-%04d", i),
				Labels: map[string]string{"tier": []string{"a", "b"}[i%2]}},
			Spec: clusterv1alpha1.ClusterSpec{Region: fmt.Sprintf("region-%d", i%(1+clusters/20))},
			Status: clusterv1alpha1.ClusterStatus{
				Conditions: []metav1.Condition{
					{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionTrue},
					{Type: clusterv1alpha1.ClusterConditionCompleteAPIEnablements, Status: metav1.ConditionTrue}},
				APIEnablements: []clusterv1alpha1.APIEnablement{{GroupVersion: "apps/v1",
					Resources: []clusterv1alpha1.APIResource{{Name: "deployments", Kind: "Deployment"}}}},
				ResourceSummary: &clusterv1alpha1.ResourceSummary{Allocatable: corev1.ResourceList{
					corev1.ResourceCPU: quantity("%d", 50+rng.IntN(200)), corev1.ResourceMemory: quantity("%dGi", 100+rng.IntN(400)),
					corev1.ResourcePods: quantity("%d", 1000+rng.IntN(1000))}},
			},
		}
	}
	work := make([]*workv1alpha2.ResourceBinding, bindings)
	for i := range work {
		work[i] = &workv1alpha2.ResourceBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("b-%d", i),
				UID:    types.UID(fmt.Sprintf("uid-%d", i)),
				Labels: map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "p"}},
			Spec: workv1alpha2.ResourceBindingSpec{
				Resource: workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "default",
					Name: fmt.Sprintf("d-%d", i), UID: types.UID(fmt.Sprintf("t-%d", i))},
				Replicas: int32(1 + rng.IntN(500)),
				ReplicaRequirements: &workv1alpha2.ReplicaRequirements{ResourceRequest: corev1.ResourceList{
					corev1.ResourceCPU: resource.MustParse("250m"), corev1.ResourceMemory: resource.MustParse("256Mi")}},
				Placement: &policyv1alpha1.Placement{ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{
					ReplicaSchedulingType:     policyv1alpha1.ReplicaSchedulingTypeDivided,
					ReplicaDivisionPreference: policyv1alpha1.ReplicaDivisionPreferenceWeighted,
					WeightPreference: &policyv1alpha1.ClusterPreferences{
						DynamicWeight: policyv1alpha1.DynamicWeightByAvailableReplicas}}},
			},
		}
	}
	return schedule.NewSnapshot(fleet), work
}
