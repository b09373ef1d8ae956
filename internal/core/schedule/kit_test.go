package schedule

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/test/kit/coretest"
)

// Workloads whose ties go to the first, and to the last cluster by name.
const (
	evenUID = types.UID("a")
	oddUID  = types.UID("b")
)

// with changes a cluster.
type with = coretest.With

var (
	cluster    = coretest.Cluster
	labelled   = coretest.Labelled
	located    = coretest.Located
	targets    = coretest.Targets
	targetList = coretest.TargetsText
)

func tainted(key string, effect corev1.TaintEffect) with {
	return func(c *clusterv1alpha1.Cluster) {
		c.Spec.Taints = append(c.Spec.Taints, corev1.Taint{Key: key, Effect: effect})
	}
}

func leaving(c *clusterv1alpha1.Cluster) { c.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }

func undiscovered(c *clusterv1alpha1.Cluster) {
	c.Status.APIEnablements, c.Status.Conditions = nil, nil
}

// free sets the free capacity, as "cpu=2 memory=4Gi pods=10".
func free(text string) with {
	return func(c *clusterv1alpha1.Cluster) {
		c.Status.ResourceSummary = &clusterv1alpha1.ResourceSummary{Allocatable: quantities(text)}
	}
}

func quantities(text string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for _, field := range strings.Fields(text) {
		name, value, _ := strings.Cut(field, "=")
		list[corev1.ResourceName(name)] = resource.MustParse(value)
	}
	return list
}

func fleet(clusters ...*clusterv1alpha1.Cluster) Snapshot { return NewSnapshot(clusters) }

// named are plain clusters.
func named(names ...string) []*clusterv1alpha1.Cluster {
	var clusters []*clusterv1alpha1.Cluster
	for _, n := range names {
		clusters = append(clusters, cluster(n))
	}
	return clusters
}

// deployment returns the binding of a Deployment that was never scheduled, claimed by a policy of that placement.
func deployment(replicas int32, p policyv1alpha1.Placement) *workv1alpha2.ResourceBinding {
	return &workv1alpha2.ResourceBinding{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "web-deployment",
			Labels: map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "id"},
		},
		Spec: workv1alpha2.ResourceBindingSpec{
			Resource: workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "default", Name: "web",
				UID: evenUID},
			Replicas: replicas, Placement: &p,
			ReplicaRequirements: &workv1alpha2.ReplicaRequirements{},
		},
	}
}

// configMap returns the same of a ConfigMap.
func configMap(p policyv1alpha1.Placement) *workv1alpha2.ResourceBinding {
	b := deployment(0, p)
	b.Spec.Resource.APIVersion, b.Spec.Resource.Kind, b.Spec.ReplicaRequirements = "v1", "ConfigMap", nil
	return b
}

func divided(preference policyv1alpha1.ReplicaDivisionPreference,
	weights *policyv1alpha1.ClusterPreferences) policyv1alpha1.Placement {
	return policyv1alpha1.Placement{ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{
		ReplicaSchedulingType:     policyv1alpha1.ReplicaSchedulingTypeDivided,
		ReplicaDivisionPreference: preference, WeightPreference: weights,
	}}
}

func byWeight(weights string) policyv1alpha1.Placement {
	p := &policyv1alpha1.ClusterPreferences{}
	for _, t := range targets(weights) {
		p.StaticWeightList = append(p.StaticWeightList, policyv1alpha1.StaticClusterWeight{
			TargetCluster: policyv1alpha1.ClusterAffinity{ClusterNames: []string{t.Name}}, Weight: int64(t.Replicas),
		})
	}
	return divided(policyv1alpha1.ReplicaDivisionPreferenceWeighted, p)
}

func equally() policyv1alpha1.Placement {
	return divided(policyv1alpha1.ReplicaDivisionPreferenceWeighted, nil)
}

func byAvailability() policyv1alpha1.Placement {
	return divided(policyv1alpha1.ReplicaDivisionPreferenceWeighted,
		&policyv1alpha1.ClusterPreferences{DynamicWeight: policyv1alpha1.DynamicWeightByAvailableReplicas})
}

func together() policyv1alpha1.Placement {
	return divided(policyv1alpha1.ReplicaDivisionPreferenceAggregated, nil)
}

// restrictedTo restricts a placement to clusters by name.
func restrictedTo(p policyv1alpha1.Placement, names ...string) policyv1alpha1.Placement {
	p.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: names}
	return p
}

// upTo bounds the clusters of a placement.
func upTo(p policyv1alpha1.Placement, minimum, maximum int) policyv1alpha1.Placement {
	p.SpreadConstraints = append(p.SpreadConstraints, policyv1alpha1.SpreadConstraint{
		SpreadByField: policyv1alpha1.SpreadByFieldCluster, MinGroups: minimum, MaxGroups: maximum,
	})
	return p
}

// room reads answers as "a=1 b=2".
func room(text string) Capacity {
	answers := map[string]int32{}
	for _, t := range targets(text) {
		answers[t.Name] = t.Replicas
	}
	return Answers(answers)
}

// record writes a run into the binding, as the controller does.
func record(b workv1alpha2.Binding, r Result, err error, now time.Time) {
	spec, status := b.BindingSpec(), b.BindingStatus()
	spec.Clusters = r.Clusters
	b.SetAnnotations(map[string]string{policyv1alpha1.AppliedPlacementAnnotation: AppliedPlacement(spec.Placement)})
	status.SchedulerObservedAffinityName = r.AffinityName
	status.LastScheduledTime = &metav1.Time{Time: now}
	c := Condition(err)
	c.LastTransitionTime = metav1.Time{Time: now}
	meta.SetStatusCondition(&status.Conditions, c)
}

// placed returns the binding after a successful run that chose these targets.
func placed(b *workv1alpha2.ResourceBinding, list string) *workv1alpha2.ResourceBinding {
	record(b, Result{Clusters: targets(list)}, nil, time.Unix(100, 0))
	return b
}

// rebalanced asks for a fresh run.
func rebalanced(b *workv1alpha2.ResourceBinding) *workv1alpha2.ResourceBinding {
	b.Spec.RescheduleTriggeredAt = &metav1.Time{Time: b.Status.LastScheduledTime.Add(time.Minute)}
	return b
}

// schedule fails the test if the run does.
func schedule(t *testing.T, b workv1alpha2.Binding, s Snapshot, room Capacity) string {
	t.Helper()
	r, err := Schedule(b, s, room)
	if err != nil {
		t.Fatalf("Schedule: %v", err)
	}
	return targetList(r.Clusters)
}

// rng is seeded, so that a failure names the seed that shows it.
func rng(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

func shuffled[T any](r *rand.Rand, list []T) []T {
	list = slices.Clone(list)
	r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}
