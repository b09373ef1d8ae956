package deschedule

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/schedule"
)

var start = time.Unix(1_800_000_000, 0)

// counts parses "m1=2 m2=1".
func counts(text string) map[string]int32 {
	out := map[string]int32{}
	for _, f := range strings.Fields(text) {
		name, n, _ := strings.Cut(f, "=")
		i, err := strconv.Atoi(n)
		if err != nil {
			panic(err)
		}
		out[name] = int32(i)
	}
	return out
}

// placed writes a binding's clusters in that form.
func placed(clusters []workv1alpha2.TargetCluster) string {
	var out []string
	for _, t := range clusters {
		out = append(out, fmt.Sprintf("%s=%d", t.Name, t.Replicas))
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func dynamic() policyv1alpha1.Placement {
	return policyv1alpha1.Placement{ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{
		ReplicaSchedulingType:     policyv1alpha1.ReplicaSchedulingTypeDivided,
		ReplicaDivisionPreference: policyv1alpha1.ReplicaDivisionPreferenceWeighted,
		WeightPreference: &policyv1alpha1.ClusterPreferences{
			DynamicWeight: policyv1alpha1.DynamicWeightByAvailableReplicas},
	}}
}

func aggregated() policyv1alpha1.Placement {
	return policyv1alpha1.Placement{ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{
		ReplicaSchedulingType:     policyv1alpha1.ReplicaSchedulingTypeDivided,
		ReplicaDivisionPreference: policyv1alpha1.ReplicaDivisionPreferenceAggregated,
	}}
}

// binding returns the binding of a Deployment at rest, placed as "m1=2 m2=1", with the CPU request per replica.
func binding(name, clusters string, cpu int64, p policyv1alpha1.Placement) *workv1alpha2.ResourceBinding {
	b := &workv1alpha2.ResourceBinding{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name,
			Labels:      map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "id"},
			Annotations: map[string]string{policyv1alpha1.AppliedPlacementAnnotation: schedule.AppliedPlacement(&p)},
		},
		Spec: workv1alpha2.ResourceBindingSpec{
			Resource: workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop",
				Name: name, UID: "u"},
			Placement: &p,
			ReplicaRequirements: &workv1alpha2.ReplicaRequirements{ResourceRequest: corev1.ResourceList{
				corev1.ResourceCPU: *resource.NewQuantity(cpu, resource.DecimalSI)}},
		},
		Status: workv1alpha2.ResourceBindingStatus{Conditions: []metav1.Condition{{Type: workv1alpha2.Scheduled,
			Status: metav1.ConditionTrue}}},
	}
	at := counts(clusters)
	for _, name := range slices.Sorted(maps.Keys(at)) {
		b.Spec.Clusters = append(b.Spec.Clusters, workv1alpha2.TargetCluster{Name: name, Replicas: at[name]})
		b.Spec.Replicas += at[name]
	}
	report(b, nil)
	return b
}

// report sets the statuses of b's clusters: all pods exist, some of them not ready.
func report(b *workv1alpha2.ResourceBinding, unready map[string]int32) {
	b.Status.AggregatedStatus = nil
	for _, t := range b.Spec.Clusters {
		setStatus(b, t.Name, fmt.Sprintf(`{"replicas":%d,"readyReplicas":%d}`, t.Replicas, t.Replicas-unready[t.Name]))
	}
}

// setStatus replaces what a cluster tells; nothing, if empty.
func setStatus(b *workv1alpha2.ResourceBinding, cluster, status string) {
	items := slices.DeleteFunc(b.Status.AggregatedStatus, func(i workv1alpha2.AggregatedStatusItem) bool {
		return i.ClusterName == cluster
	})
	if status != "" {
		items = append(items, workv1alpha2.AggregatedStatusItem{ClusterName: cluster, Applied: true,
			Status: &runtime.RawExtension{Raw: []byte(status)}})
	}
	b.Status.AggregatedStatus = items
}

// cluster has this many CPUs, and CPU requests of running and of pending pods.
func cluster(name string, cpu, allocated, allocating int64) *clusterv1alpha1.Cluster {
	list := func(n int64) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(n, resource.DecimalSI)}
	}
	return &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status: clusterv1alpha1.ClusterStatus{
			APIEnablements: []clusterv1alpha1.APIEnablement{{GroupVersion: "apps/v1",
				Resources: []clusterv1alpha1.APIResource{{Name: "deployments", Kind: "Deployment"}}}},
			ResourceSummary: &clusterv1alpha1.ResourceSummary{Allocatable: list(cpu), Allocated: list(allocated),
				Allocating: list(allocating)},
		},
	}
}

// room is the same for each binding and does not shrink.
type room schedule.Capacity

func (r room) Free(workv1alpha2.Binding) schedule.Capacity             { return schedule.Capacity(r) }
func (r room) Take(workv1alpha2.Binding, []workv1alpha2.TargetCluster) {}

func unknown(string) map[corev1.ResourceName]float64 { return nil }

func mustSucceed(t *testing.T, ok bool, format string, args ...any) {
	t.Helper()
	if !ok {
		t.Fatalf(format, args...)
	}
}

// fleetOf returns a fleet with the given room.
func fleetOf(names ...string) []*clusterv1alpha1.Cluster {
	var out []*clusterv1alpha1.Cluster
	for _, name := range names {
		out = append(out, cluster(name, 100, 0, 0))
	}
	return out
}
