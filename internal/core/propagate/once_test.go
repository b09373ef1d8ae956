package propagate_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/core/schedule"
)

func argo(kind string, annotations map[string]string) *unstructured.Unstructured {
	u := template("ci", "build")
	u.SetAPIVersion("argoproj.io/v1alpha1")
	u.SetKind(kind)
	u.SetAnnotations(annotations)
	return u
}

// fleetOf are clusters that serve Argo's kinds, with that many CPUs free each.
func fleetOf(cpus map[string]string) schedule.Snapshot {
	var clusters []*clusterv1alpha1.Cluster
	for name, cpu := range cpus {
		c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
		c.Status.APIEnablements = []clusterv1alpha1.APIEnablement{{GroupVersion: "argoproj.io/v1alpha1",
			Resources: []clusterv1alpha1.APIResource{{Kind: "Workflow"}, {Kind: "CronWorkflow"}}}}
		c.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionCompleteAPIEnablements,
			Status: metav1.ConditionTrue}}
		if cpu != "" {
			c.Status.ResourceSummary = &clusterv1alpha1.ResourceSummary{Allocatable: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse("64Gi"),
				corev1.ResourcePods: resource.MustParse("10")}}
		}
		clusters = append(clusters, c)
	}
	return schedule.NewSnapshot(clusters)
}

func TestAWorkflowGoesToOneCluster(t *testing.T) {
	steps := []workv1alpha2.Component{
		{Name: "test", Replicas: 1, ReplicaRequirements: &workv1alpha2.ComponentReplicaRequirements{
			ResourceRequest: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}}},
		{Name: "upload", Replicas: 1, ReplicaRequirements: &workv1alpha2.ComponentReplicaRequirements{
			ResourceRequest: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("500m"), corev1.ResourceMemory: resource.MustParse("1Gi")}}},
		{Name: "notify", Replicas: 1},
	}
	weights := &policyv1alpha1.ClusterPreferences{StaticWeightList: []policyv1alpha1.StaticClusterWeight{
		{TargetCluster: policyv1alpha1.ClusterAffinity{ClusterNames: []string{"us"}}, Weight: 9},
		{TargetCluster: policyv1alpha1.ClusterAffinity{ClusterNames: []string{"eu"}}, Weight: 1},
	}}
	divided := func(preference policyv1alpha1.ReplicaDivisionPreference,
		w *policyv1alpha1.ClusterPreferences) *policyv1alpha1.ReplicaSchedulingStrategy {
		return &policyv1alpha1.ReplicaSchedulingStrategy{
			ReplicaSchedulingType: policyv1alpha1.ReplicaSchedulingTypeDivided, ReplicaDivisionPreference: preference,
			WeightPreference: w,
		}
	}
	roomy := map[string]string{"eu": "64", "us": "8", "ap": "1"}
	for _, c := range []struct {
		name      string
		placement policyv1alpha1.Placement
		fleet     map[string]string
		want      string // empty: any one
	}{
		{"that with the most room, by a policy that says nothing", policyv1alpha1.Placement{},
			map[string]string{"eu": "4", "us": "64", "ap": "1"}, "us"},
		{"though the policy duplicates",
			policyv1alpha1.Placement{ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{
				ReplicaSchedulingType: policyv1alpha1.ReplicaSchedulingTypeDuplicated}}, roomy, ""},
		{"the one that weighs most", policyv1alpha1.Placement{ReplicaScheduling: divided(
			policyv1alpha1.ReplicaDivisionPreferenceWeighted, weights)}, roomy, "us"},
		{"by room where the policy weighs by it",
			policyv1alpha1.Placement{ReplicaScheduling: divided(policyv1alpha1.ReplicaDivisionPreferenceWeighted,
				&policyv1alpha1.ClusterPreferences{DynamicWeight: policyv1alpha1.DynamicWeightByAvailableReplicas})}, roomy, "eu"},
		{"though the policy spreads over two",
			policyv1alpha1.Placement{SpreadConstraints: []policyv1alpha1.SpreadConstraint{{
				SpreadByField: policyv1alpha1.SpreadByFieldCluster, MinGroups: 2, MaxGroups: 2}}}, roomy, ""},
		{"one whose capacity nobody knows", policyv1alpha1.Placement{}, map[string]string{"eu": "", "us": "", "ap": ""}, ""},
	} {
		for _, kind := range []string{"Workflow", "CronWorkflow"} {
			t.Run(kind+"/"+c.name, func(t *testing.T) {
				p := identified(policy("ci", "p", 0), "id")
				p.PropagationSpec().Placement = c.placement
				b := bind(t, argo(kind, nil), p, propagate.Meaning{Components: steps, ID: "id"}, nil)
				spec := b.BindingSpec()
				if cpu := spec.ReplicaRequirements.ResourceRequest.Cpu().String(); spec.Replicas != 1 || cpu != "2" ||
					spec.ReplicaRequirements.ResourceRequest.Memory().String() != "1Gi" {
					t.Errorf("%d replicas that need %v; want one, that needs the most of any step", spec.Replicas,
						spec.ReplicaRequirements.ResourceRequest)
				}
				s := fleetOf(c.fleet)
				result, err := schedule.Schedule(b, s, s.Room(b))
				if err != nil || len(result.Clusters) != 1 || c.want != "" && result.Clusters[0].Name != c.want {
					t.Errorf("goes to %v, %v; want one, %s", result.Clusters, err, c.want)
				}
			})
		}
	}
}

func TestAWorkflowIsNotMovedOnceItIsPlaced(t *testing.T) {
	p := identified(policy("ci", "p", 0), "id")
	b := bind(t, argo("Workflow", nil), p, propagate.Meaning{ID: "id"}, nil)
	b.BindingSpec().Clusters = []workv1alpha2.TargetCluster{{Name: "ap", Replicas: 1}}
	again := bind(t, argo("Workflow", nil), p, propagate.Meaning{ID: "id"}, b)
	s := fleetOf(map[string]string{"eu": "64", "us": "64", "ap": "1"})
	result, err := schedule.Schedule(again, s, s.Room(again))
	if err != nil || len(result.Clusters) != 1 || result.Clusters[0].Name != "ap" {
		t.Errorf("goes to %v, %v", result.Clusters, err)
	}
}

func TestWorkflowGoesToAllClustersOfItsOwner(t *testing.T) {
	p := identified(policy("ci", "p", 0), "id")
	b := bind(t, argo("Workflow", map[string]string{"argosy.io/run-per-cluster": "true"}), p, propagate.Meaning{ID: "id"},
		nil)
	s := fleetOf(map[string]string{"eu": "4", "us": "4", "ap": "4"})
	result, err := schedule.Schedule(b, s, s.Room(b))
	if err != nil || len(result.Clusters) != 3 {
		t.Errorf("goes to %v, %v", result.Clusters, err)
	}
}

func TestWorkflowsAreSharedOutAmongEquals(t *testing.T) {
	took := map[string]int{}
	s := fleetOf(map[string]string{"eu": "64", "us": "64", "ap": "64"})
	for i := range 30 {
		u := argo("Workflow", nil)
		u.SetName(fmt.Sprint("build-", i))
		u.SetUID(types.UID(fmt.Sprint("uid-", i)))
		b := bind(t, u, identified(policy("ci", "p", 0), "id"), propagate.Meaning{ID: "id"}, nil)
		result, err := schedule.Schedule(b, s, s.Room(b))
		if err != nil || len(result.Clusters) != 1 {
			t.Fatalf("goes to %v, %v", result.Clusters, err)
		}
		took[result.Clusters[0].Name]++
	}
	if len(took) < 2 {
		t.Errorf("of 30 Workflows the clusters took %v", took)
	}
}

func TestOwnersAreWarnedOfRunsInSeveralClusters(t *testing.T) {
	each := map[string]string{"argosy.io/run-per-cluster": "true"}
	cron := argo("AdvancedCronJob", nil)
	cron.SetAPIVersion("apps.kruise.io/v1beta1")
	meant := cron.DeepCopy()
	meant.SetAnnotations(each)
	for _, c := range []struct {
		name      string
		template  *unstructured.Unstructured
		placement policyv1alpha1.Placement
		want      string
	}{
		{"a Workflow", argo("Workflow", nil), policyv1alpha1.Placement{}, "Workflow runs in one of the clusters"},
		{"a Workflow that is to run in each", argo("Workflow", each), policyv1alpha1.Placement{}, ""},
		{"a policy of one cluster", argo("Workflow", nil),
			policyv1alpha1.Placement{ClusterAffinity: &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"eu"}}}, ""},
		{"a policy that picks one", cron,
			policyv1alpha1.Placement{SpreadConstraints: []policyv1alpha1.SpreadConstraint{{SpreadByField: "cluster",
				MaxGroups: 1}}}, ""},
		{"an AdvancedCronJob", cron, policyv1alpha1.Placement{}, "AdvancedCronJob runs once per schedule in each cluster"},
		{"an AdvancedCronJob that is meant to", meant, policyv1alpha1.Placement{}, ""},
		{"a Deployment", template("ci", "web"), policyv1alpha1.Placement{}, ""},
	} {
		p := identified(policy("ci", "p", 0), "id")
		p.PropagationSpec().Placement = c.placement
		if got := propagate.RunAdvice(c.template, p); !strings.HasPrefix(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%s: reported: %q", c.name, got)
		}
	}
}
