package propagate_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/admission/quota"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/tiers"
	"github.com/argosy-io/argosy/test/kit/coretest"
)

// amounts parses "cpu=2 memory=1Gi".
func amounts(text string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for field := range strings.FieldsSeq(text) {
		name, quantity, _ := strings.Cut(field, "=")
		list[corev1.ResourceName(name)] = resource.MustParse(quantity)
	}
	return list
}

// usage has replicas by cluster as "m1=2 m2=1", each of which requests some.
func usage(requests, clusters string) *workv1alpha2.ResourceBindingSpec {
	return &workv1alpha2.ResourceBindingSpec{Clusters: coretest.Targets(clusters),
		ReplicaRequirements: &workv1alpha2.ReplicaRequirements{ResourceRequest: amounts(requests)}}
}

func TestUsedCountsReplicasInClusters(t *testing.T) {
	components := usage("", "m1=0 m2=0")
	components.Components = []workv1alpha2.Component{
		{Name: "leader", Replicas: 1, ReplicaRequirements: &workv1alpha2.ComponentReplicaRequirements{
			ResourceRequest: amounts("cpu=1")}},
		{Name: "worker", Replicas: 3, ReplicaRequirements: &workv1alpha2.ComponentReplicaRequirements{
			ResourceRequest: amounts("cpu=500m example.com/gpu=1")}},
		{Name: "other", Replicas: 9},
	}
	moving := usage("cpu=1", "m1=2")
	moving.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{FromCluster: "m2", Replicas: new(int32(3))}}
	moving.RequiredBy = []workv1alpha2.BindingSnapshot{{Name: "other", Clusters: coretest.Targets("m3=4")}}
	for name, tc := range map[string]struct {
		spec *workv1alpha2.ResourceBindingSpec
		want string
	}{
		"no binding":                     {nil, ""},
		"no requests":                    {&workv1alpha2.ResourceBindingSpec{Clusters: coretest.Targets("m1=2")}, ""},
		"no clusters":                    {usage("cpu=1", ""), ""},
		"no replicas":                    {usage("cpu=1", "m1=0"), ""},
		"a request of nothing":           {usage("cpu=0 memory=1Gi", "m1=2"), "memory=2Gi"},
		"replicas of all clusters":       {usage("cpu=250m memory=1Gi", "m1=2 m2=1"), "cpu=750m memory=3Gi"},
		"replicas that failover keeps":   {moving, "cpu=2"},
		"all components in each cluster": {components, "cpu=5 example.com/gpu=6"},
	} {
		if got := propagate.Used(tc.spec); !equality.Semantic.DeepEqual(got, amounts(tc.want)) {
			t.Errorf("%s: it uses %v, want %s", name, got, tc.want)
		}
	}
}

func TestDemandReadsTemplates(t *testing.T) {
	i := interpret.New(tiers.WithoutUsers()...)
	const pod = `template: {spec: {containers: [{name: c, resources: {requests: {cpu: 250m}}}]}}}}`
	for text, want := range map[string]string{
		`{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, namespace: shop}, spec: {replicas: 4, ` + pod:               "cpu=1",
		`{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {name: a, namespace: shop}, spec: {replicas: 2, ` + pod: "cpu=500m",
		`{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: a, namespace: shop}, spec: {` + pod:                             "",
		`{apiVersion: argoproj.io/v1alpha1, kind: Workflow, metadata: {name: a, namespace: shop}, spec: {templates: [
			{name: a, container: {resources: {requests: {cpu: "2"}}}}, {name: b, container: {resources: {requests: {cpu: "1"}}}}]}}`: "cpu=2",
		`{apiVersion: batch/v1, kind: CronJob, metadata: {name: a, namespace: shop}, spec: {jobTemplate: {spec: {` + pod + `}}`: "",
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop}}`:                                               "",
	} {
		got := propagate.Demand(t.Context(), i, coretest.Object(t, text))
		if !equality.Semantic.DeepEqual(got, amounts(want)) {
			t.Errorf("%s: it needs %v, want %s", text, got, want)
		}
	}
}

// The schemas of many kinds permit negative requests and replicas. They give nothing to other workloads.
func TestNegativeRequestsGiveNothing(t *testing.T) {
	customization := func(kind, rules string) *configv1alpha1.ResourceInterpreterCustomization {
		c := &configv1alpha1.ResourceInterpreterCustomization{}
		if err := yaml.Unmarshal([]byte("{metadata: {name: "+strings.ToLower(kind)+"}, spec: {target: "+
			"{apiVersion: example.com/v1, kind: "+kind+"}, customizations: {"+rules+"}}}"), c); err != nil {
			t.Fatal(err)
		}
		return c
	}
	i := tiers.Offline([]*configv1alpha1.ResourceInterpreterCustomization{
		customization("Train", `replicaResource: {luaScript: "function GetReplicas(obj) return 2, {resourceRequest = {cpu = obj.spec.cpu, memory = '1Gi'}} end"}`),
		customization("Convoy", `componentResource: {luaScript: "function GetComponents(obj) return {{name = 'a', replicas = 2, replicaRequirements = {resourceRequest = {cpu = obj.spec.cpu}}}, {name = 'b', replicas = 1, replicaRequirements = {resourceRequest = {cpu = '3'}}}} end"}`),
	})
	const pod = `template: {spec: {containers: [{name: c, resources: {%s: {cpu: "-1000", memory: 1Gi}}}]}}`
	pods := func(in string) string { return strings.Replace(pod, "%s", in, 1) }
	const three = `template: {spec: {containers: [{name: c, resources: {requests: {cpu: "3"}}}]}}`
	for text, want := range map[string]string{
		`{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {name: a, namespace: shop}, spec: {replicas: 2, ` + pods("requests") + `}}`:   "memory=2Gi",
		`{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {name: a, namespace: shop}, spec: {replicas: 2, ` + pods("limits") + `}}`:     "memory=2Gi",
		`{apiVersion: apps.kruise.io/v1beta1, kind: StatefulSet, metadata: {name: a, namespace: shop}, spec: {replicas: 2, ` + pods("requests") + `}}`: "memory=2Gi",
		`{apiVersion: argoproj.io/v1alpha1, kind: Rollout, metadata: {name: a, namespace: shop}, spec: {replicas: 2, ` + pods("requests") + `}}`:       "memory=2Gi",
		`{apiVersion: ray.io/v1, kind: RayCluster, metadata: {name: a, namespace: shop}, spec: {headGroupSpec: {` + pods("requests") +
			`}, workerGroupSpecs: [{groupName: w, replicas: 2, ` + three + `}]}}`: "cpu=6 memory=1Gi",
		`{apiVersion: kubeflow.org/v1, kind: TFJob, metadata: {name: a, namespace: shop}, spec: {tfReplicaSpecs: {PS: {replicas: 1, ` +
			pods("requests") + `}, Worker: {replicas: 2, ` + three + `}}}}`: "cpu=6 memory=1Gi",
		`{apiVersion: example.com/v1, kind: Train, metadata: {name: a, namespace: shop}, spec: {cpu: "-1000"}}`:  "memory=2Gi",
		`{apiVersion: example.com/v1, kind: Convoy, metadata: {name: a, namespace: shop}, spec: {cpu: "-1000"}}`: "cpu=3",
	} {
		got := propagate.Demand(t.Context(), i, coretest.Object(t, text))
		if !equality.Semantic.DeepEqual(got, amounts(want)) {
			t.Errorf("%s: it needs %v, want %s", text, got, want)
		}
	}

	negative, one, large := usage("cpu=-1000", "m1=3"), usage("cpu=1", "m1=1"), usage("cpu=3", "m1=1")
	sum := propagate.Sum(map[string]*workv1alpha2.ResourceBinding{"a": {Spec: *negative}, "b": {Spec: *one}})
	if !equality.Semantic.DeepEqual(sum, amounts("cpu=1")) {
		t.Errorf("the sum is %v", sum)
	}
	if propagate.Grows(nil, negative) || propagate.Grows(one, negative) || !propagate.Grows(negative, one) {
		t.Error("negative requests count as growth, or their end does not")
	}
	quotas := []policyv1alpha1.FederatedResourceQuota{{
		Spec: policyv1alpha1.FederatedResourceQuotaSpec{Overall: amounts("cpu=3")}}}
	if quota.Check(quotas, sum, nil, large) == nil {
		t.Error("3 CPUs are permitted besides 1, of 3")
	}
}
