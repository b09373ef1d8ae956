package usage_test

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/explain/overview"
	"github.com/argosy-io/argosy/internal/core/explain/usage"
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

// placed returns the binding of a template in a namespace, with replicas by cluster as "eu=2 us=1".
func placed(t *testing.T, namespace, clusters, template string) *workv1alpha2.ResourceBinding {
	t.Helper()
	u := coretest.Object(t, template)
	u.SetNamespace(namespace)
	var m propagate.Meaning
	if err := m.Interpret(t.Context(), interpret.New(tiers.WithoutUsers()...), u); err != nil {
		t.Fatal(err)
	}
	b, err := propagate.Binding(u, &policyv1alpha1.PropagationPolicy{}, m, nil)
	if err != nil {
		t.Fatal(err)
	}
	b.BindingSpec().Clusters = coretest.Targets(clusters)
	return b.(*workv1alpha2.ResourceBinding)
}

// pod is the part of a template with a container of these resources.
func pod(resources string) string {
	return `template: {spec: {containers: [{name: c, resources: ` + resources + `}]}}`
}

const small = `{requests: {cpu: 250m, memory: 1Gi}, limits: {cpu: 500m}}`

const deployment = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 3, `

// lines returns the table with one space between columns, and "-" for an empty cell.
func lines(r usage.Report) (all []string) {
	columns, rows := r.Lines()
	for _, row := range append([][]string{columns}, rows...) {
		line := ""
		for _, cell := range row {
			line += " " + cmp.Or(cell, "-")
		}
		all = append(all, line[1:])
	}
	return all
}

func TestRequestsOfEachKindAreCounted(t *testing.T) {
	t.Parallel()
	finished := placed(t, "shop", "eu=1 us=1", `{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {`+
		pod(small)+`}}`)
	end := []byte(`{"conditions":[{"type":"Complete","status":"True"}],"completionTime":"2026-03-01T12:00:00Z"}`)
	finished.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{{ClusterName: "eu",
		Status: &runtime.RawExtension{Raw: end}}}
	over := placed(t, "shop", "eu=1", `{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {`+pod(small)+`}}`)
	over.Status.Conditions = []metav1.Condition{{Type: workv1alpha2.WorksWritten, Status: metav1.ConditionTrue,
		Reason: workv1alpha2.ReasonRunFinished}}
	for name, c := range map[string]struct {
		b    *workv1alpha2.ResourceBinding
		want []string // the lines after the head
	}{
		"a divided Deployment": {placed(t, "shop", "eu=2 us=1", deployment+pod(small)+`}}`),
			[]string{"shop cpu 750m 1500m - -", "shop memory 3Gi - - -"}},
		"a duplicated CloneSet": {placed(t, "shop", "eu=3 us=3",
			`{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {name: web}, spec: {replicas: 3, `+pod(small)+`}}`),
			[]string{"shop cpu 1500m 3 - -", "shop memory 6Gi - - -"}},
		"extended resources": {placed(t, "shop", "eu=2", deployment+pod(`{limits: {example.com/gpu: 2}}`)+`}}`),
			[]string{"shop example.com/gpu 4 4 - -"}},
		"init containers and sidecars as in the scheduler": {placed(t, "shop", "eu=2", deployment+`template: {spec: {
			initContainers: [{name: i, resources: {requests: {cpu: 200m, memory: 4Gi}}},
				{name: s, restartPolicy: Always, resources: {requests: {cpu: 50m}}}],
			containers: [{name: c, resources: {requests: {cpu: 250m, memory: 1Gi}}}]}}}}`),
			[]string{"shop cpu 600m - - -", "shop memory 8Gi - - -"}},
		"a Job that has finished in one cluster": {finished, []string{"shop cpu 250m 500m - -", "shop memory 1Gi - - -"}},
		"a Job that has finished":                {over, nil},
		"a workload without requests":            {placed(t, "shop", "eu=2", deployment+pod(`{}`)+`}}`), nil},
		"a workload without a cluster":           {placed(t, "shop", "", deployment+pod(small)+`}}`), nil},
		"a DaemonSet": {placed(t, "shop", "eu=0", `{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: a}, spec: {`+
			pod(small)+`}}`), nil},
		"a ConfigMap": {placed(t, "shop", "eu=0", `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}`), nil},
		"several pod templates": {placed(t, "shop", "eu=0", `{apiVersion: kubeflow.org/v1, kind: TFJob, metadata: {name: a},
			spec: {tfReplicaSpecs: {PS: {replicas: 1, `+pod(small)+`}, Worker: {replicas: 2, `+pod(small)+`}}}}`),
			[]string{"shop cpu 750m - - -", "shop memory 3Gi - - -"}},
	} {
		got := lines(usage.ReportOf(usage.Grouping{By: usage.Namespace}, usage.Facts{Bindings: []workv1alpha2.Binding{c.b}}))
		if want := append([]string{"NAMESPACE RESOURCE REQUESTED LIMITS USED USED%"}, c.want...); !slices.Equal(got, want) {
			t.Errorf("%s: the lines are %q, want %q", name, got, want)
		}
	}
}

// fleet has workloads of two namespaces in two clusters, and what their pods use.
func fleet(t *testing.T) usage.Facts {
	return usage.Facts{
		Bindings: []workv1alpha2.Binding{placed(t, "shop", "eu=2 us=1", deployment+pod(small)+`}}`),
			placed(t, "bank", "us=4", deployment+pod(small)+`}}`)},
		Pods: []usage.Pod{
			{Cluster: "eu", Namespace: "shop", Usage: amounts("cpu=100000001n memory=100000000")},
			{Cluster: "us", Namespace: "shop", Labels: map[string]string{"team": "b"}, Usage: amounts("cpu=50m memory=1Gi")},
			{Cluster: "us", Namespace: "bank", Usage: amounts("cpu=2 memory=1Gi")},
			{Cluster: "us", Namespace: "kube-system", Usage: amounts("cpu=9 memory=9Gi")},
		},
		Quotas: []policyv1alpha1.FederatedResourceQuota{
			{ObjectMeta: metav1.ObjectMeta{Namespace: "shop"}, Spec: policyv1alpha1.FederatedResourceQuotaSpec{
				Overall: amounts("cpu=4 pods=9")}},
			{ObjectMeta: metav1.ObjectMeta{Namespace: "shop"}, Spec: policyv1alpha1.FederatedResourceQuotaSpec{
				Overall: amounts("cpu=2 memory=8Gi")}},
			{ObjectMeta: metav1.ObjectMeta{Namespace: "other"}, Spec: policyv1alpha1.FederatedResourceQuotaSpec{
				Overall: amounts("cpu=2")}}},
		Labels: map[overview.Object]map[string]string{
			{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web"}: {"team": "a"},
			{Name: "bank"}: {"team": "b"}, {Name: "shop"}: {"team": "c"}},
	}
}

func TestReportGroupsTheFleet(t *testing.T) {
	t.Parallel()
	before := fleet(t)
	before.Before = []usage.Sample{{Namespace: "shop", Cluster: "eu", CPU: 1000, Memory: 1 << 30},
		{Namespace: "gone", Cluster: "us", CPU: 500}}
	none := fleet(t)
	none.Pods = nil
	for name, c := range map[string]struct {
		by    usage.Grouping
		facts usage.Facts
		want  []string
	}{
		"by namespace": {usage.Grouping{By: usage.Namespace}, fleet(t), []string{
			"NAMESPACE RESOURCE REQUESTED LIMITS USED USED% QUOTA",
			"bank cpu 1 2 2 200% -", "bank memory 4Gi - 1Gi 25% -",
			"shop cpu 750m 1500m 151m 20% 2", "shop memory 3Gi - 1120Mi 36% 8Gi",
			"TOTAL cpu 1750m 3500m 2151m 123% -", "TOTAL memory 7Gi - 2144Mi 30% -"}},
		"by cluster": {usage.Grouping{By: usage.Cluster}, fleet(t), []string{"CLUSTER RESOURCE REQUESTED LIMITS USED USED%",
			"eu cpu 500m 1 101m 20%", "eu memory 2Gi - 96Mi 5%", "us cpu 1250m 2500m 2050m 164%", "us memory 5Gi - 2Gi 40%",
			"TOTAL cpu 1750m 3500m 2151m 123%", "TOTAL memory 7Gi - 2144Mi 30%"}},
		"one cluster has no quota": {usage.Grouping{By: usage.Namespace, Clusters: []string{"eu"}}, fleet(t), []string{
			"NAMESPACE RESOURCE REQUESTED LIMITS USED USED%", "shop cpu 500m 1 101m 20%", "shop memory 2Gi - 96Mi 5%"}},
		"by label of templates and pods, else of namespaces": {usage.Grouping{By: usage.Label, Key: "team"}, fleet(t),
			[]string{"TEAM RESOURCE REQUESTED LIMITS USED USED%", "a cpu 750m 1500m - -", "a memory 3Gi - - -",
				"b cpu 1 2 2050m 205%", "b memory 4Gi - 2Gi 50%", "c cpu 0 - 101m -", "c memory 0 - 96Mi -",
				"TOTAL cpu 1750m 3500m 2151m 123%", "TOTAL memory 7Gi - 2144Mi 30%"}},
		"with the change": {usage.Grouping{By: usage.Namespace, Clusters: []string{"eu", "us"}}, before, []string{
			"NAMESPACE RESOURCE REQUESTED LIMITS USED USED% CHANGE",
			"bank cpu 1 2 2 200% +1", "bank memory 4Gi - 1Gi 25% +4Gi", "gone cpu 0 - - - -500m",
			"shop cpu 750m 1500m 151m 20% -250m", "shop memory 3Gi - 1120Mi 36% +2Gi",
			"TOTAL cpu 1750m 3500m 2151m 123% +250m", "TOTAL memory 7Gi - 2144Mi 30% +6Gi"}},
		"with costs": {usage.Grouping{By: usage.Cluster, Clusters: []string{"eu"}, Prices: map[corev1.ResourceName]float64{
			"cpu": 0.03, "memory": 0.004}}, none, []string{"CLUSTER RESOURCE REQUESTED LIMITS USED USED% COST/30D",
			"eu cpu 500m 1 - - 10.80", "eu memory 2Gi - - - 5.76", "eu all - - - - 16.56"}},
	} {
		if got := lines(usage.ReportOf(c.by, c.facts)); !slices.Equal(got, c.want) {
			t.Errorf("%s:\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
}

func TestCSVHasPlainNumbers(t *testing.T) {
	t.Parallel()
	got := usage.ReportOf(usage.Grouping{By: usage.Namespace, Clusters: []string{"eu"}}, fleet(t)).CSV()
	want := "namespace,resource,requested,limits,used,quota,change,cost30d\nshop,cpu,0.5,1,0.101,,,\n" +
		"shop,memory,2147483648,0,100663296,,,\n"
	if got != want {
		t.Errorf("it is %q, want %q", got, want)
	}
}

func TestSamplesHaveNoObjectsWithoutRequests(t *testing.T) {
	t.Parallel()
	f := fleet(t)
	f.Bindings = append(f.Bindings, placed(t, "shop", "asia=0", `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}`))
	want := []usage.Sample{{"bank", "us", 1000, 4 << 30}, {"shop", "eu", 500, 2 << 30}, {"shop", "us", 250, 1 << 30}}
	if got := usage.Samples(f.Bindings); !slices.Equal(got, want) {
		t.Errorf("they are %v, want %v", got, want)
	}
}

func TestParseGrouping(t *testing.T) {
	t.Parallel()
	for by, valid := range map[string]bool{"namespace": true, "cluster": true, "label=team": true,
		"label=example.com/team": true, "label": false, "label=": false, "label=a b": false, "team": false, "": false} {
		if _, err := usage.ParseGrouping(by); (err == nil) != valid {
			t.Errorf("%q: %v", by, err)
		}
	}
}
