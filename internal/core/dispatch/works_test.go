package dispatch_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/dispatch"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/builtin"
	"github.com/argosy-io/argosy/internal/core/workload/kruise"
	"github.com/argosy-io/argosy/test/kit/coretest"
)

const configMap = `
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: shop, uid: u-1, generation: 4, resourceVersion: "9", finalizers: [f], labels: {app: web}}
data: {color: blue}
`

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop, uid: u-2, generation: 7, labels: {app: web}, annotations: {note: hi}}
spec: {replicas: 5, template: {spec: {containers: [{name: main, image: "nginx:1"}]}}}
status: {readyReplicas: 5}
`

var object = coretest.Object

// binding returns the binding of a template with a spec in YAML; the template's scope is the binding's.
func binding(t testing.TB, template *unstructured.Unstructured, spec string) workv1alpha2.Binding {
	t.Helper()
	var s workv1alpha2.ResourceBindingSpec
	if err := yaml.UnmarshalStrict([]byte(spec), &s); err != nil {
		t.Fatal(err)
	}
	s.Resource.UID = template.GetUID()
	meta := metav1.ObjectMeta{Namespace: template.GetNamespace(),
		Name: names.Binding(template.GetKind(), template.GetName())}
	if meta.Namespace == "" {
		meta.Labels = map[string]string{workv1alpha2.ClusterResourceBindingPermanentIDLabel: "b-1"}
		return &workv1alpha2.ClusterResourceBinding{ObjectMeta: meta, Spec: s}
	}
	meta.Labels = map[string]string{workv1alpha2.ResourceBindingPermanentIDLabel: "b-1"}
	return &workv1alpha2.ResourceBinding{ObjectMeta: meta, Spec: s}
}

// input has the clusters eu, us and ap registered, and numbers new ids.
func input(t testing.TB, template, spec string) dispatch.Input {
	t.Helper()
	tmpl := object(t, template)
	n := 0
	in := dispatch.Input{
		Binding: binding(t, tmpl, spec), Template: tmpl, Clusters: map[string]*clusterv1alpha1.Cluster{},
		NewID: func() string { n++; return fmt.Sprintf("w-%d", n) },
	}
	for _, name := range []string{"eu", "us", "ap"} {
		in.Clusters[name] = &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	return in
}

func clusterOverride(t testing.TB, spec string) policyv1alpha1.Override {
	t.Helper()
	p := &policyv1alpha1.ClusterOverridePolicy{ObjectMeta: metav1.ObjectMeta{Name: "cop"}}
	if err := yaml.UnmarshalStrict([]byte(spec), &p.Spec); err != nil {
		t.Fatal(err)
	}
	return p
}

func works(t testing.TB, in dispatch.Input) map[string]*workv1alpha1.Work {
	t.Helper()
	out := map[string]*workv1alpha1.Work{}
	for _, r := range dispatch.Works(context.Background(), in, interpret.New(builtin.Tier())) {
		if r.Err != nil {
			t.Fatal(r.Err)
		}
		out[r.Cluster] = r.Work
	}
	return out
}

func manifest(t testing.TB, w *workv1alpha1.Work) *unstructured.Unstructured {
	t.Helper()
	m, err := execute.Manifest(w)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestWorkAndManifestHaveKarmadaMarks(t *testing.T) {
	in := input(t, configMap, "clusters: [{name: eu}]")
	w := works(t, in)["eu"]
	want := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
		Namespace: "karmada-es-eu", Name: names.Work("ConfigMap", "settings", "shop"),
		Finalizers: []string{"karmada.io/execution-controller"},
		Labels: map[string]string{
			"resourcebinding.karmada.io/permanent-id": "b-1",
			"work.karmada.io/permanent-id":            "w-1",
		},
		Annotations: map[string]string{
			"resourcebinding.karmada.io/namespace": "shop",
			"resourcebinding.karmada.io/name":      "settings-configmap",
			"work.karmada.io/conflict-resolution":  "abort",
		},
	}}
	got := w.DeepCopy()
	got.Spec = workv1alpha1.WorkSpec{}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	wantManifest := object(t, `
apiVersion: v1
kind: ConfigMap
metadata:
  name: settings
  namespace: shop
  labels:
    app: web
    karmada.io/managed: "true"
    resourcebinding.karmada.io/permanent-id: b-1
    work.karmada.io/permanent-id: w-1
  annotations:
    resourcebinding.karmada.io/namespace: shop
    resourcebinding.karmada.io/name: settings-configmap
    work.karmada.io/namespace: karmada-es-eu
    work.karmada.io/name: `+w.Name+`
    work.karmada.io/conflict-resolution: abort
    resourcetemplate.karmada.io/uid: u-1
    resourcetemplate.karmada.io/generation: "4"
    resourcetemplate.karmada.io/managed-labels: app,karmada.io/managed,resourcebinding.karmada.io/permanent-id,work.karmada.io/permanent-id
    resourcetemplate.karmada.io/managed-annotations: resourcebinding.karmada.io/name,resourcebinding.karmada.io/namespace,resourcetemplate.karmada.io/generation,resourcetemplate.karmada.io/managed-annotations,resourcetemplate.karmada.io/managed-labels,resourcetemplate.karmada.io/uid,work.karmada.io/conflict-resolution,work.karmada.io/name,work.karmada.io/namespace
data: {color: blue}
`)
	if diff := cmp.Diff(wantManifest.Object, manifest(t, w).Object); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(object(t, configMap).Object, in.Template.Object); diff != "" {
		t.Errorf("the template was changed: %s", diff)
	}
}

func TestAClusterScopedTemplateRefersToItsOwnKindOfBinding(t *testing.T) {
	w := works(t, input(t, "{apiVersion: v1, kind: PersistentVolume, metadata: {name: pv, uid: u}}",
		"clusters: [{name: eu}]"))["eu"]
	m := manifest(t, w)
	if w.Labels["clusterresourcebinding.karmada.io/permanent-id"] != "b-1" ||
		w.Annotations["clusterresourcebinding.karmada.io/name"] != "pv-persistentvolume" ||
		m.GetLabels()["clusterresourcebinding.karmada.io/permanent-id"] != "b-1" ||
		m.GetAnnotations()["clusterresourcebinding.karmada.io/name"] != "pv-persistentvolume" {
		t.Errorf("work labels %v annotations %v, manifest labels %v annotations %v", w.Labels, w.Annotations, m.GetLabels(),
			m.GetAnnotations())
	}
	for key := range w.Annotations {
		if strings.HasPrefix(key, "resourcebinding.") {
			t.Errorf("a cluster-scoped template has no ResourceBinding, but there is %s", key)
		}
	}
}

func TestComponentsAreSentWhole(t *testing.T) {
	in := input(t, deployment, `placement: {replicaScheduling: {replicaSchedulingType: Divided}}
components: [{name: head, replicas: 1}, {name: worker, replicas: 4}]
clusters: [{name: eu, components: [{name: head, replicas: 1}, {name: worker, replicas: 4}]}, {name: us}]`)
	for cluster, w := range works(t, in) {
		if n, _, _ := unstructured.NestedInt64(manifest(t, w).Object, "spec", "replicas"); n != 5 {
			t.Errorf("%s gets %d replicas, want the template's 5", cluster, n)
		}
	}
}

func TestReplicasFollowThePlacement(t *testing.T) {
	const divided = "placement: {replicaScheduling: {replicaSchedulingType: Divided}}\n"
	tests := []struct {
		name, template, spec string
		field                []string
		want                 map[string]int64
	}{
		{"divided replicas are each cluster's", deployment, divided +
			"replicas: 5\nclusters: [{name: eu, replicas: 3}, {name: us, replicas: 2}]", []string{"spec", "replicas"},
			map[string]int64{"eu": 3, "us": 2}},
		{"a cluster may be given none", deployment, divided + "replicas: 5\nclusters: [{name: eu, replicas: 5}, {name: us}]",
			[]string{"spec", "replicas"}, map[string]int64{"eu": 5, "us": 0}},
		{"duplicated replicas are the template's", deployment,
			"placement: {replicaScheduling: {replicaSchedulingType: Duplicated}}\nreplicas: 5\nclusters: [{name: eu, replicas: 5}, {name: us, replicas: 5}]", []string{"spec", "replicas"}, map[string]int64{"eu": 5, "us": 5}},
		{"without a placement they are, too", deployment, "replicas: 5\nclusters: [{name: eu, replicas: 1}]",
			[]string{"spec", "replicas"}, map[string]int64{"eu": 5}},
		{"a cluster of a dependent does not give its replicas", deployment,
			"requiredBy: [{name: other, clusters: [{name: ap, replicas: 9}]}]", []string{"spec", "replicas"},
			map[string]int64{"ap": 5}},
		{"a template scaled to zero is zero everywhere", strings.ReplaceAll(deployment, "replicas: 5,", "replicas: 0,"),
			divided + "clusters: [{name: eu, replicas: 3}]", []string{"spec", "replicas"}, map[string]int64{"eu": 0}},
		{"a Job's completions follow its parallelism",
			"{apiVersion: batch/v1, kind: Job, metadata: {name: j, namespace: shop, uid: u}, spec: {parallelism: 6, completions: 12}}", divided + "replicas: 6\nclusters: [{name: eu, replicas: 4}, {name: us, replicas: 2}]", []string{"spec", "completions"}, map[string]int64{"eu": 8, "us": 4}},
		{"a duplicated Job keeps its completions",
			"{apiVersion: batch/v1, kind: Job, metadata: {name: j, namespace: shop, uid: u}, spec: {parallelism: 6, completions: 12}}", "replicas: 6\nclusters: [{name: eu, replicas: 6}]", []string{"spec", "completions"}, map[string]int64{"eu": 12}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := map[string]int64{}
			for cluster, w := range works(t, input(t, tt.template, tt.spec)) {
				n, _, err := unstructured.NestedInt64(manifest(t, w).Object, tt.field...)
				if err != nil {
					t.Fatal(err)
				}
				got[cluster] = n
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestCompletionsAddUp(t *testing.T) {
	for completions := range int64(40) {
		in := input(t, fmt.Sprintf("{apiVersion: batch/v1, kind: Job, metadata: {name: j, namespace: shop, uid: u%d}, spec: {parallelism: 7, completions: %d}}", completions, completions),
			"placement: {replicaScheduling: {replicaSchedulingType: Divided}}\nreplicas: 7\nclusters: [{name: eu, replicas: 3}, {name: us, replicas: 3}, {name: ap, replicas: 1}]")
		var sum int64
		for _, w := range works(t, in) {
			n, _, _ := unstructured.NestedInt64(manifest(t, w).Object, "spec", "completions")
			sum += n
		}
		if sum != completions {
			t.Errorf("completions of %d are divided into %d", completions, sum)
		}
	}
}

func TestOverridesComeAfterTheDivisionAndAreRecorded(t *testing.T) {
	in := input(t, deployment, "placement: {replicaScheduling: {replicaSchedulingType: Divided}}\nreplicas: 5\nclusters: [{name: eu, replicas: 3}, {name: us, replicas: 2}]")
	in.Overrides = []policyv1alpha1.Override{clusterOverride(t, `
overrideRules:
- targetCluster: {clusterNames: [eu]}
  overriders:
    plaintext: [{path: /spec/replicas, operator: replace, value: 9}]
    commandOverrider: [{containerName: nobody, operator: add, value: [x]}]
`)}
	results := dispatch.Works(context.Background(), in, interpret.New(builtin.Tier()))
	if results[0].Cluster != "eu" || results[1].Cluster != "us" {
		t.Fatalf("results are not sorted: %v", results)
	}
	eu, us := results[0], results[1]
	if n, _, _ := unstructured.NestedInt64(manifest(t, eu.Work).Object, "spec", "replicas"); n != 9 {
		t.Errorf("eu has %d replicas, want 9", n)
	}
	if n, _, _ := unstructured.NestedInt64(manifest(t, us.Work).Object, "spec", "replicas"); n != 2 {
		t.Errorf("us has %d replicas, want 2: an override of one cluster must not reach another", n)
	}
	if got := eu.Work.Annotations["policy.karmada.io/applied-cluster-overrides"]; !strings.HasPrefix(got,
		`[{"policyName":"cop","overriders":{"plaintext":`) {
		t.Errorf("applied overrides are recorded as %q", got)
	}
	if _, ok := us.Work.Annotations["policy.karmada.io/applied-cluster-overrides"]; ok {
		t.Error("nothing was applied in us, but something is recorded")
	}
	if len(eu.Applied.Untouched) != 1 {
		t.Errorf("untouched = %v", eu.Applied.Untouched)
	}
}

func TestOneClustersFailureHidesNoOther(t *testing.T) {
	in := input(t, deployment, "clusters: [{name: eu}, {name: gone}, {name: us}]")
	in.Overrides = []policyv1alpha1.Override{clusterOverride(t,
		"overrideRules:\n- {targetCluster: {clusterNames: [us]}, overriders: {plaintext: [{path: /a/b, operator: add}]}}")}
	results := dispatch.Works(context.Background(), in, interpret.New(builtin.Tier()))
	if len(results) != 3 || results[0].Err != nil || results[0].Work == nil {
		t.Fatalf("results = %+v", results)
	}
	for i, want := range map[int]string{
		1: `create the work of Deployment shop/web for cluster "gone": the cluster is not registered`,
		2: `create the work of Deployment shop/web for cluster "us": apply ClusterOverridePolicy cop, spec.overrideRules[0].overriders.plaintext[0]`,
	} {
		if results[i].Err == nil || !strings.HasPrefix(results[i].Err.Error(), want) || results[i].Work != nil {
			t.Errorf("err = %v, want %s", results[i].Err, want)
		}
	}
}

func TestWorksAreTheSameEachTime(t *testing.T) {
	spec := "replicas: 5\nplacement: {replicaScheduling: {replicaSchedulingType: Divided}}\nclusters: [{name: eu, replicas: 3}, {name: us, replicas: 2}]\nrequiredBy: [{name: x, clusters: [{name: ap}]}]"
	in := input(t, deployment, spec)
	first := works(t, in)
	in.Existing = first
	for range 20 {
		again := works(t, in)
		if diff := cmp.Diff(first, again); diff != "" {
			t.Fatal(diff)
		}
		for cluster := range first {
			if dispatch.Differs(first[cluster], again[cluster]) {
				t.Fatalf("the work of %s would be written again", cluster)
			}
		}
	}
}

// A user who takes a workload out may stop halfway. The mark must not release objects later, when Works go by mistake.
func TestMarkOfALeavingWorkIsRemovedWhileItsTemplateExists(t *testing.T) {
	in := input(t, configMap, "clusters: [{name: eu}]")
	wanted := works(t, in)["eu"]
	existing := wanted.DeepCopy()
	existing.Annotations[wellknown.LeavingAnnotation] = "true"
	if !dispatch.Differs(existing, wanted) {
		t.Error("the Work keeps the annotation")
	}
}

func TestOneClustersMarksDoNotReachAnother(t *testing.T) {
	in := input(t, configMap, "clusters: [{name: ap}, {name: eu}]")
	in.NewID = nil
	labels := map[string]string{"work.karmada.io/permanent-id": "of-ap"}
	in.Existing = map[string]*workv1alpha1.Work{"ap": {ObjectMeta: metav1.ObjectMeta{Labels: labels}}}
	all := works(t, in)
	if got := manifest(t, all["ap"]).GetLabels()["work.karmada.io/permanent-id"]; got != "of-ap" {
		t.Errorf("the id of ap is %q", got)
	}
	if got := manifest(t, all["eu"]).GetLabels()["work.karmada.io/permanent-id"]; got != "" {
		t.Errorf("the id of ap is in the manifest for eu: %q", got)
	}
}

func TestDetailsOfAWork(t *testing.T) {
	const overwrite = "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: shop, annotations: {work.karmada.io/conflict-resolution: overwrite}}}"
	const nonsense = "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: shop, annotations: {work.karmada.io/conflict-resolution: maybe}}}"
	resolution := func(want string) func(*testing.T, *workv1alpha1.Work) {
		return func(t *testing.T, w *workv1alpha1.Work) {
			inManifest := manifest(t, w).GetAnnotations()["work.karmada.io/conflict-resolution"]
			if got := w.Annotations["work.karmada.io/conflict-resolution"]; got != want || inManifest != want {
				t.Errorf("conflict resolution is %q, in the manifest %q, want %q", got, inManifest, want)
			}
		}
	}
	suspended := func(want bool) func(*testing.T, *workv1alpha1.Work) {
		return func(t *testing.T, w *workv1alpha1.Work) {
			if got := w.Spec.SuspendDispatching != nil && *w.Spec.SuspendDispatching; got != want {
				t.Errorf("suspended = %v, want %v", got, want)
			}
		}
	}
	tests := []struct {
		name, template, spec string
		check                func(*testing.T, *workv1alpha1.Work)
	}{
		{"the policy resolves conflicts", configMap, "conflictResolution: Overwrite\nclusters: [{name: eu}]",
			resolution("overwrite")},
		{"the template outranks the policy", overwrite, "conflictResolution: Abort\nclusters: [{name: eu}]",
			resolution("overwrite")},
		{"what the template does not say right does not count", nonsense, "conflictResolution: Abort\nclusters: [{name: eu}]",
			resolution("abort")},
		{"a binding that says nothing aborts", configMap, "clusters: [{name: eu}]", resolution("abort")},
		{"suspension of all clusters", configMap, "suspension: {dispatching: true}\nclusters: [{name: eu}]", suspended(true)},
		{"suspension of this cluster", configMap,
			"suspension: {dispatchingOnClusters: {clusterNames: [us, eu]}}\nclusters: [{name: eu}]", suspended(true)},
		{"suspension of another cluster", configMap,
			"suspension: {dispatchingOnClusters: {clusterNames: [us]}}\nclusters: [{name: eu}]", suspended(false)},
		{"suspension of scheduling only", configMap, "suspension: {scheduling: true}\nclusters: [{name: eu}]",
			suspended(false)},
		{"preservation", configMap, "preserveResourcesOnDeletion: true\nclusters: [{name: eu}]",
			func(t *testing.T, w *workv1alpha1.Work) {
				if w.Spec.PreserveResourcesOnDeletion == nil || !*w.Spec.PreserveResourcesOnDeletion {
					t.Error("resources are not preserved")
				}
			}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { tt.check(t, works(t, input(t, tt.template, tt.spec))["eu"]) })
	}
}

func TestClusterInRemovalGetsNothingNew(t *testing.T) {
	in := input(t, configMap, "clusters: [{name: eu}, {name: us}]")
	before := works(t, in)
	now := metav1.Now()
	in.Clusters["eu"].DeletionTimestamp, in.Clusters["us"].DeletionTimestamp = &now, &now
	in.Existing = map[string]*workv1alpha1.Work{"us": before["us"]}
	after := works(t, in)
	if after["eu"] != nil || after["us"] == nil {
		t.Errorf("works for %v, want one for us alone", after)
	}
}

func TestManifestIsSentInAServedVersion(t *testing.T) {
	const cloneSet = "{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, metadata: {name: c, namespace: shop}, spec: {}}"
	serves := func(versions ...string) []clusterv1alpha1.APIEnablement {
		out := []clusterv1alpha1.APIEnablement{{GroupVersion: "apps/v1",
			Resources: []clusterv1alpha1.APIResource{{Kind: "Deployment"}}}}
		for _, v := range versions {
			out = append(out, clusterv1alpha1.APIEnablement{GroupVersion: v,
				Resources: []clusterv1alpha1.APIResource{{Kind: "CloneSet"}}})
		}
		return out
	}
	tests := []struct {
		name   string
		serves []clusterv1alpha1.APIEnablement
		want   string
	}{
		{"the template's if it is served", serves("apps.kruise.io/v1alpha1", "apps.kruise.io/v1beta1"),
			"apps.kruise.io/v1beta1"},
		{"a converted one if only that is served", serves("apps.kruise.io/v1alpha1"), "apps.kruise.io/v1alpha1"},
		{"the template's if the kind is not served at all", serves(), "apps.kruise.io/v1beta1"},
		{"the template's if nothing is known of the cluster", nil, "apps.kruise.io/v1beta1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			in := input(t, cloneSet, "clusters: [{name: eu}]")
			in.Clusters["eu"].Status.APIEnablements = tt.serves
			in.Convert = kruise.ForMember
			if got := manifest(t, works(t, in)["eu"]).GetAPIVersion(); got != tt.want {
				t.Errorf("sent as %s, want %s", got, tt.want)
			}
		})
	}
}

func TestMissingFieldOfVersionIsReportedForItsClusterOnly(t *testing.T) {
	in := input(t, "{apiVersion: apps.kruise.io/v1beta1, kind: StatefulSet, metadata: {name: s, namespace: shop}, spec: {reserveOrdinals: [1]}}",
		"clusters: [{name: eu}, {name: us}]")
	for cluster, version := range map[string]string{"eu": "apps.kruise.io/v1alpha1", "us": "apps.kruise.io/v1beta1"} {
		in.Clusters[cluster].Status.APIEnablements = []clusterv1alpha1.APIEnablement{{GroupVersion: version,
			Resources: []clusterv1alpha1.APIResource{{Kind: "StatefulSet"}}}}
	}
	in.Convert = kruise.ForMember
	for _, r := range dispatch.Works(t.Context(), in, interpret.New(builtin.Tier())) {
		const want = `create the work of StatefulSet shop/s for cluster "eu": the cluster serves apps.kruise.io/v1alpha1: StatefulSet of apps.kruise.io/v1alpha1 has no spec.reserveOrdinals`
		switch {
		case r.Cluster == "eu" && (r.Err == nil || !strings.HasPrefix(r.Err.Error(), want) || r.Work != nil):
			t.Errorf("eu: %v, want %s", r.Err, want)
		case r.Cluster == "us" && r.Err != nil:
			t.Errorf("us: %v", r.Err)
		}
	}
}

// A WorkloadSpread that names a CloneSet in a version that the member does not serve has no effect and reports no
// error.
func TestReferencesUseAServedVersion(t *testing.T) {
	const old, new = "apps.kruise.io/v1alpha1", "apps.kruise.io/v1beta1"
	for _, tt := range []struct {
		name, template string
		path           []string
		serves         []string // of CloneSet
		sent           string   // before
		want           string
	}{
		{"a version that is served stays", "WorkloadSpread", []string{"targetRef"}, []string{old, new}, "", new},
		{"one that is not becomes the one that is", "WorkloadSpread", []string{"targetRef"}, []string{old}, "", old},
		{"what a member was told stays while it is served, since it never changes there", "PersistentPodState",
			[]string{"targetRef"}, []string{old, new}, old, old},
		{"and no longer", "PersistentPodState", []string{"targetRef"}, []string{new}, old, new},
		{"a kind that is not served stays", "PodUnavailableBudget", []string{"targetRef"}, nil, "", new},
		{"a rollout", "Rollout", []string{"workloadRef"}, []string{old}, "", old},
		{"a rollout as it was", "Rollout", []string{"objectRef", "workloadRef"}, []string{old}, "", old},
		{"an autoscaler", "HorizontalPodAutoscaler", []string{"scaleTargetRef"}, []string{old}, "", old},
	} {
		group := map[string]string{"WorkloadSpread": "apps.kruise.io", "PersistentPodState": "apps.kruise.io",
			"PodUnavailableBudget": "policy.kruise.io",
			"Rollout":              "rollouts.kruise.io", "HorizontalPodAutoscaler": "autoscaling"}[tt.template]
		template := func(version string) *unstructured.Unstructured {
			u := object(t, fmt.Sprintf("{apiVersion: %s/v1, kind: %s, metadata: {name: s, namespace: shop}}", group,
				tt.template))
			if err := unstructured.SetNestedMap(u.Object, map[string]any{"apiVersion": version, "kind": "CloneSet", "name": "c"},
				append([]string{"spec"}, tt.path...)...); err != nil {
				t.Fatal(err)
			}
			return u
		}
		in := input(t, configMap, "clusters: [{name: eu}]")
		in.Template = template(new)
		for _, version := range tt.serves {
			in.Clusters["eu"].Status.APIEnablements = append(in.Clusters["eu"].Status.APIEnablements,
				clusterv1alpha1.APIEnablement{GroupVersion: version, Resources: []clusterv1alpha1.APIResource{{Kind: "CloneSet"}}})
		}
		if tt.sent != "" {
			raw, err := json.Marshal(template(tt.sent))
			if err != nil {
				t.Fatal(err)
			}
			w := &workv1alpha1.Work{}
			w.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: raw}}}
			in.Existing = map[string]*workv1alpha1.Work{"eu": w}
		}
		before := in.Template.DeepCopy()
		got, _, _ := unstructured.NestedString(manifest(t, works(t, in)["eu"]).Object,
			append(append([]string{"spec"}, tt.path...), "apiVersion")...)
		if got != tt.want {
			t.Errorf("%s: %s names %s, want %s", tt.name, tt.template, got, tt.want)
		}
		if diff := cmp.Diff(before, in.Template); diff != "" {
			t.Errorf("%s: the template was changed:\n%s", tt.name, diff)
		}
	}
}

func TestUnwantedWorks(t *testing.T) {
	tmpl := object(t, configMap)
	existing := func() []workv1alpha1.Work {
		var all []workv1alpha1.Work
		for _, c := range []string{"ap", "eu", "us"} {
			w := workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-" + c, Name: "w",
				Labels: map[string]string{"resourcebinding.karmada.io/permanent-id": "b-1"}}}
			all = append(all, w)
			w.Labels = map[string]string{"resourcebinding.karmada.io/permanent-id": "b-2"}
			all = append(all, w)
		}
		return append(all, workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "elsewhere", Name: "w",
			Labels: map[string]string{"resourcebinding.karmada.io/permanent-id": "b-1"}}})
	}()
	tests := []struct {
		name, spec        string
		deleted           bool
		unwanted, purging []string
	}{
		{"in clusters that are no targets", "clusters: [{name: eu}]", false, []string{"ap", "us"}, nil},
		{"not where a dependent needs it", "clusters: [{name: eu}]\nrequiredBy: [{name: x, clusters: [{name: us}]}]", false,
			[]string{"ap"}, nil},
		{"not while it leaves gracefully",
			"clusters: [{name: eu}]\ngracefulEvictionTasks: [{fromCluster: us, purgeMode: Gracefully, reason: R, producer: p}, {fromCluster: ap, reason: R, producer: p}]", false, nil, nil},
		{"when it leaves directly, and that comes first",
			"clusters: [{name: eu}]\ngracefulEvictionTasks: [{fromCluster: us, purgeMode: Directly, reason: R, producer: p}, {fromCluster: ap, purgeMode: Never, reason: R, producer: p}]", false, []string{"us"}, []string{"us"}},
		{"all when the binding is deleted", "clusters: [{name: eu}]", true, []string{"ap", "eu", "us"}, nil},
		{"all when it has no clusters left", "{}", false, []string{"ap", "eu", "us"}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := binding(t, tmpl, tt.spec)
			if tt.deleted {
				b.SetDeletionTimestamp(new(metav1.Now()))
			}
			clusters := func(works []workv1alpha1.Work) []string {
				var out []string
				for _, w := range works {
					if w.Labels["resourcebinding.karmada.io/permanent-id"] != "b-1" {
						t.Errorf("the work of another binding in %s is among them", w.Namespace)
					}
					out = append(out, strings.TrimPrefix(w.Namespace, "karmada-es-"))
				}
				return out
			}
			unwanted, _ := dispatch.Unwanted(b, existing, time.Now())
			if diff := cmp.Diff(tt.unwanted, clusters(unwanted)); diff != "" {
				t.Errorf("unwanted: %s", diff)
			}
			if diff := cmp.Diff(tt.purging, clusters(dispatch.Purging(b, existing))); diff != "" {
				t.Errorf("purging: %s", diff)
			}
		})
	}
	t.Run("what a binding made again inherits, not at once", func(t *testing.T) {
		in := input(t, configMap, "{placement: {}, clusters: [{name: eu}]}")
		in.Binding.SetLabels(map[string]string{"resourcebinding.karmada.io/permanent-id": "the old one"})
		of := []workv1alpha1.Work{*works(t, in)["eu"]}
		now := time.Now()
		for _, tt := range []struct {
			story, spec     string
			age             time.Duration
			placed, deleted bool
			unwanted        int
			again           time.Duration
		}{
			{"made this moment, placed elsewhere", "{placement: {}, clusters: [{name: us}]}", 0, true, false, 0, time.Minute},
			{"followed by one, and perhaps soon by more", "requiredBy: [{name: x, clusters: [{name: us}]}]", 20 * time.Second,
				false, false, 0, 40 * time.Second},
			{"made by a clock that is ahead", "{placement: {}, clusters: [{name: us}]}", -time.Hour, true, false, 0,
				time.Minute},
			{"a minute old", "{placement: {}, clusters: [{name: us}]}", time.Minute, true, false, 1, 0},
			{"a minute old, and followed by one", "requiredBy: [{name: x, clusters: [{name: us}]}]", time.Minute, false, false,
				1, 0},
			{"made this moment, with replicas elsewhere", "{placement: {}, replicas: 2, clusters: [{name: us, replicas: 2}]}", 0,
				true, false, 1, 0},
			{"with replicas, and not placed yet", "{placement: {}, replicas: 2}", 0, false, false, 0, 0},
			{"with replicas, and followed", "{placement: {}, replicas: 2, clusters: [{name: us, replicas: 2}], requiredBy: [{name: x, clusters: [{name: us}]}]}", 0, true, false, 0, time.Minute},
			{"never placed", "placement: {}", time.Hour, false, false, 0, 0},
			{"placed once, and without clusters since", "placement: {}", time.Hour, true, false, 1, 0},
			{"deleted, as somebody ordered", "placement: {}", 0, false, true, 1, 0},
		} {
			b := binding(t, tmpl, tt.spec)
			b.SetCreationTimestamp(metav1.NewTime(now.Add(-tt.age)))
			if tt.placed {
				b.BindingStatus().LastScheduledTime = &metav1.Time{Time: now}
			}
			if tt.deleted {
				b.SetDeletionTimestamp(&metav1.Time{Time: now})
			}
			if got, again := dispatch.Unwanted(b, of, now); len(got) != tt.unwanted || again != tt.again {
				t.Errorf("%s: %d are unwanted, and it is looked at again after %s; want %d, %s", tt.story, len(got), again,
					tt.unwanted, tt.again)
			}
		}
	})
	t.Run("none of a binding without an id", func(t *testing.T) {
		b := binding(t, tmpl, "{}")
		b.SetLabels(nil)
		if got, _ := dispatch.Unwanted(b,
			append(existing, workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-eu"}}),
			time.Now()); len(got) > 0 {
			t.Errorf("unwanted: %v", got)
		}
	})
}

func TestUnchangedWorkIsNotWritten(t *testing.T) {
	wanted := works(t, input(t, deployment, "clusters: [{name: eu}]"))["eu"]
	tests := []struct {
		name   string
		change func(*workv1alpha1.Work)
		want   bool
	}{
		{"what the server sets does not count", func(w *workv1alpha1.Work) {
			w.UID, w.ResourceVersion, w.Generation = "u",
				"5", 3
		}, false},
		{"what others add does not count", func(w *workv1alpha1.Work) {
			w.Labels["team"], w.Annotations["note"], w.Finalizers = "x", "y", append(w.Finalizers, "other/finalizer")
		}, false},
		{"the status does not count", func(w *workv1alpha1.Work) {
			w.Status.Conditions = []metav1.Condition{{Type: "Applied"}}
		}, false},
		{"false is the same as nothing", func(w *workv1alpha1.Work) {
			w.Spec.SuspendDispatching, w.Spec.PreserveResourcesOnDeletion = new(false), new(false)
		}, false},
		{"the order of keys does not count", func(w *workv1alpha1.Work) {
			raw := w.Spec.Workload.Manifests[0].Raw
			w.Spec.Workload.Manifests[0].Raw = append([]byte(`{"kind":"Deployment",`),
				append([]byte(strings.Replace(string(raw[1:len(raw)-1]), `"kind":"Deployment",`, "", 1)), "}"...)...)
			if !json.Valid(w.Spec.Workload.Manifests[0].Raw) {
				t.Fatal("the test made invalid JSON")
			}
		}, false},
		{"a lost label", func(w *workv1alpha1.Work) { delete(w.Labels, "resourcebinding.karmada.io/permanent-id") }, true},
		{"a lost finalizer", func(w *workv1alpha1.Work) { w.Finalizers = nil }, true},
		{"another annotation", func(w *workv1alpha1.Work) { w.Annotations["resourcebinding.karmada.io/name"] = "x" }, true},
		{"overrides that are applied no more",
			func(w *workv1alpha1.Work) { w.Annotations["policy.karmada.io/applied-overrides"] = "[]" }, true},
		{"suspension", func(w *workv1alpha1.Work) { w.Spec.SuspendDispatching = new(true) }, true},
		{"another manifest", func(w *workv1alpha1.Work) {
			w.Spec.Workload.Manifests[0].Raw = []byte(strings.Replace(string(w.Spec.Workload.Manifests[0].Raw), "nginx:1",
				"nginx:2", 1))
		}, true},
		{"a manifest that cannot be read", func(w *workv1alpha1.Work) { w.Spec.Workload.Manifests[0].Raw = []byte("{") },
			true},
		{"no manifest", func(w *workv1alpha1.Work) { w.Spec.Workload.Manifests = nil }, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			existing := wanted.DeepCopy()
			tt.change(existing)
			if got := dispatch.Differs(existing, wanted); got != tt.want {
				t.Fatalf("differs = %v, want %v", got, tt.want)
			}
			written := dispatch.Onto(existing, wanted)
			if dispatch.Differs(written, wanted) {
				t.Error("written, it still differs")
			}
			if written.UID != existing.UID || written.Labels["team"] != existing.Labels["team"] {
				t.Error("what is not ours was lost")
			}
		})
	}
}

func TestNamespacesGoEverywhere(t *testing.T) {
	in := input(t, "{apiVersion: v1, kind: Namespace, metadata: {name: shop, uid: u, generation: 1, resourceVersion: '5', labels: {team: a}}, status: {phase: Active}}", "{}")
	in.Binding = nil
	in.Clusters["ap"].DeletionTimestamp = new(metav1.Now())
	namespaced := &policyv1alpha1.OverridePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "op"},
		Spec: policyv1alpha1.OverrideSpec{OverrideRules: []policyv1alpha1.RuleWithCluster{{
			Overriders: policyv1alpha1.Overriders{LabelsOverrider: []policyv1alpha1.LabelAnnotationOverrider{
				{Operator: "add", Value: map[string]string{"x": "y"}},
			}},
		}}},
	}
	in.Overrides = []policyv1alpha1.Override{
		clusterOverride(t, "overrideRules:\n- {targetCluster: {clusterNames: [eu]}, overriders: {labelsOverrider: [{operator: add, value: {in: eu}}]}}"),
		namespaced,
	}
	results := dispatch.Namespaces(in)
	if len(results) != 2 || results[0].Cluster != "eu" || results[1].Cluster != "us" {
		t.Fatalf("results = %+v", results)
	}
	w, m := results[0].Work, manifest(t, results[0].Work)
	if w.Namespace != "karmada-es-eu" || w.Name != names.Work("Namespace", "shop", "") || w.OwnerReferences != nil {
		t.Errorf("work = %+v", w.ObjectMeta)
	}
	want := map[string]string{"team": "a", "in": "eu", "karmada.io/managed": "true",
		"work.karmada.io/permanent-id": w.Labels["work.karmada.io/permanent-id"]}
	if diff := cmp.Diff(want, m.GetLabels()); diff != "" {
		t.Error(diff)
	}
	if m.GetUID() != types.UID("") || m.Object["status"] != nil {
		t.Errorf("the manifest is not pruned: %v", m.Object)
	}
	if _, ok := m.GetAnnotations()["work.karmada.io/conflict-resolution"]; ok {
		t.Error("a namespace has no policy that could resolve conflicts")
	}
	if manifest(t, results[1].Work).GetLabels()["in"] != "" {
		t.Error("the override for eu reached us")
	}
}

func TestSystemNamespacesStayOnTheHub(t *testing.T) {
	for text, want := range map[string]bool{
		"{name: shop}":           true,
		"{name: default}":        false,
		"{name: kube-system}":    false,
		"{name: kubernetes}":     true,
		"{name: karmada-system}": false,
		"{name: karmada-es-eu}":  false,
		"{name: shop, labels: {namespace.karmada.io/skip-auto-propagation: 'true'}}":  false,
		"{name: shop, labels: {namespace.karmada.io/skip-auto-propagation: 'false'}}": true,
	} {
		if got := dispatch.AutoPropagated(object(t, "{apiVersion: v1, kind: Namespace, metadata: "+text+"}")); got != want {
			t.Errorf("%s is propagated: %v, want %v", text, got, want)
		}
	}
}

// The Works of one core meet the other: what dispatch writes, execute accepts without adding to it.
func TestExecuteTakesAManifestAsItIs(t *testing.T) {
	w := works(t, input(t, deployment, "clusters: [{name: eu}]"))["eu"]
	desired, err := execute.Desired(w, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(manifest(t, w).Object, desired.Object); diff != "" {
		t.Error(diff)
	}
}

func BenchmarkWorksOfADeploymentInThreeClusters(b *testing.B) {
	in := input(b, deployment, "replicas: 5\nplacement: {replicaScheduling: {replicaSchedulingType: Divided}}\nclusters: [{name: eu, replicas: 3}, {name: us, replicas: 1}, {name: ap, replicas: 1}]")
	i := interpret.New(builtin.Tier())
	b.ReportAllocs()
	for b.Loop() {
		dispatch.Works(context.Background(), in, i)
	}
}

func BenchmarkDiffersOfAnUnchangedWork(b *testing.B) {
	in := input(b, deployment, "clusters: [{name: eu}]")
	w := works(b, in)["eu"]
	existing := w.DeepCopy()
	b.ReportAllocs()
	for b.Loop() {
		if dispatch.Differs(existing, w) {
			b.Fatal("differs")
		}
	}
}

func reason(failed bool) string {
	if failed {
		return workv1alpha2.ReasonRunFailed
	}
	return workv1alpha2.ReasonRunFinished
}

// A run that is in one cluster, or divided, is not run again where the template comes later.
func TestAFinishedRunGetsNoNewWork(t *testing.T) {
	const workflow = `{apiVersion: argoproj.io/v1alpha1, kind: Workflow, metadata: {name: w, namespace: shop, uid: u}, `
	const job = `{apiVersion: batch/v1, kind: Job, metadata: {name: w, namespace: shop, uid: u},
  spec: {parallelism: 2, completions: 2, template: {spec: {containers: [{name: c}]}}}, `
	const complete = `status: {conditions: [{type: Complete, status: "True"}]}}`
	const placed = `{clusters: [{name: us, replicas: 1}]}`
	const divided = `{replicas: 2, placement: {replicaScheduling: {replicaSchedulingType: Divided}}, clusters: [{name: us, replicas: 2}]}`
	for name, c := range map[string]struct {
		template, spec string
		works          int
		finished       bool
	}{
		"a Workflow that has finished":  {workflow + `status: {phase: Succeeded}}`, placed, 0, true},
		"a Workflow that has failed":    {workflow + `status: {phase: Failed}}`, placed, 0, true},
		"a Workflow that failed early":  {workflow + `status: {phase: Error}}`, placed, 0, true},
		"a divided Job that has failed": {job + strings.Replace(complete, "Complete", "Failed", 1), divided, 0, true},
		"a Workflow that runs":          {workflow + `status: {phase: Running}}`, placed, 1, false},
		"a Workflow for each cluster": {strings.Replace(workflow, "uid: u",
			`uid: u, annotations: {argosy.io/run-per-cluster: "true"}`, 1) +
			`status: {phase: Succeeded}}`, placed, 1, false},
		"a divided Job that has finished":           {job + complete, divided, 0, true},
		"a divided Job that runs":                   {job + `status: {active: 2}}`, divided, 1, false},
		"a Job in each cluster":                     {job + complete, placed, 1, false},
		"a Job that has finished, nowhere now":      {job + complete, `{}`, 0, true},
		"a Job that runs, nowhere now":              {job + `status: {active: 2}}`, `{}`, 0, false},
		"a Workflow that has finished, nowhere now": {workflow + `status: {phase: Succeeded}}`, `{}`, 0, true},
		"a divided run that a change of its spec starts again": {
			`{apiVersion: sparkoperator.k8s.io/v1beta2, kind: SparkApplication, metadata: {name: w, namespace: shop, uid: u,
  generation: 2}, status: {applicationState: {state: COMPLETED}}}`, divided, 1, false},
		"the same, nowhere now": {
			`{apiVersion: sparkoperator.k8s.io/v1beta2, kind: SparkApplication, metadata: {name: w, namespace: shop, uid: u},
  status: {applicationState: {state: COMPLETED}}}`, `{}`, 0, false},
		"no run": {configMap, `{}`, 0, false},
	} {
		in := input(t, c.template, c.spec)
		d := dispatch.Decide(t.Context(), in, interpret.New(builtin.Tier()))
		if d.Err != nil || len(d.Results) != c.works || (d.RunEnd != "") != c.finished {
			t.Errorf("%s: %d Works, finished: %t (%v)", name, len(d.Results), d.RunEnd != "", d.Err)
		}
		written := meta.FindStatusCondition(d.Report(nil, nil, nil, metav1.Now()), workv1alpha2.WorksWritten)
		if (written != nil) != c.finished || written != nil && (written.Status != metav1.ConditionTrue ||
			written.Reason != reason(strings.Contains(name, "failed"))) {
			t.Errorf("%s: the condition is %+v", name, written)
		}
		if c.works > 0 || len(in.Binding.BindingSpec().Clusters) == 0 {
			continue
		}
		in.Existing = map[string]*workv1alpha1.Work{"us": {}} // it has run there
		if d := dispatch.Decide(t.Context(), in, interpret.New(builtin.Tier())); d.RunEnd != "" || len(d.Results) != 1 {
			t.Errorf("%s, in its cluster: %d Works, finished: %t", name, len(d.Results), d.RunEnd != "")
		}
	}
}
