package builtin

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/test/kit/coretest"
)

var interpreter = interpret.New(Tier())

var read = coretest.Object

// tree is what a YAML text says, for comparing.
func tree(t testing.TB, text string) map[string]any {
	t.Helper()
	return read(t, "{apiVersion: v1, kind: Any, tree: "+text+"}").Object["tree"].(map[string]any)
}

func show(v any) string {
	out, _ := yaml.Marshal(v)
	return string(out)
}

// item is what a cluster reports: its status as YAML, empty for none yet, and its health.
func item(t testing.TB, cluster, status string, health workv1alpha1.ResourceHealth) workv1alpha2.AggregatedStatusItem {
	t.Helper()
	i := workv1alpha2.AggregatedStatusItem{ClusterName: cluster, Applied: true, Health: health}
	if status != "" {
		raw, err := json.Marshal(tree(t, status))
		if err != nil {
			t.Fatal(err)
		}
		i.Status = &runtime.RawExtension{Raw: raw}
	}
	return i
}

// items are reports of the clusters m1, m2, … without a word about health.
func items(t testing.TB, statuses ...string) []workv1alpha2.AggregatedStatusItem {
	t.Helper()
	var out []workv1alpha2.AggregatedStatusItem
	for n, s := range statuses {
		out = append(out, item(t, fmt.Sprintf("m%d", n+1), s, ""))
	}
	return out
}

// aggregated returns the template's new status. It checks what holds for every kind: nothing given is changed, the
// order of the reports does not matter, and a second time says the same and returns the template itself.
func aggregated(t *testing.T, template *unstructured.Unstructured,
	items []workv1alpha2.AggregatedStatusItem) map[string]any {
	t.Helper()
	before := template.DeepCopy()
	got, err := interpreter.Aggregate(t.Context(), template, items)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(before, template) {
		t.Errorf("the template was changed to\n%s", show(template.Object))
	}
	for range 5 {
		rand.Shuffle(len(items), func(i, j int) { items[i], items[j] = items[j], items[i] })
		again, err := interpreter.Aggregate(t.Context(), template, items)
		if err != nil || !reflect.DeepEqual(again.Object, got.Object) {
			t.Errorf("another order of reports gives\n%s%v, not\n%s", show(again.Object["status"]), err,
				show(got.Object["status"]))
		}
	}
	if second, err := interpreter.Aggregate(t.Context(), got, items); err != nil || second != got {
		t.Errorf("a second time gives\n%s%v, not the template as it is:\n%s", show(second.Object["status"]), err,
			show(got.Object["status"]))
	}
	status, _ := got.Object["status"].(map[string]any)
	return status
}

func TestReplicasAreReadAndRevisedPerKind(t *testing.T) {
	const template = `template: {spec: {containers: [{resources: {requests: {cpu: 100m}}}]}}`
	for _, c := range []struct {
		name, object string
		want         int32
		revised      string // path=value after a revision to 5; empty: unchanged
	}{
		{"a Deployment", `{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: ns}, spec: {replicas: 3, ` +
			template + `}}`, 3, "spec.replicas"},
		{"a Deployment of no number has one", `{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: ns}, spec: {` +
			template + `}}`, 1, "spec.replicas"},
		{"a Deployment of none", `{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: ns}, spec: {replicas: 0, ` +
			template + `}}`, 0, "spec.replicas"},
		{"a ReplicaSet", `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {namespace: ns}, spec: {replicas: 2, ` +
			template + `}}`, 2, "spec.replicas"},
		{"a StatefulSet", `{apiVersion: apps/v1, kind: StatefulSet, metadata: {namespace: ns}, spec: {replicas: 2, ` +
			template + `}}`, 2, "spec.replicas"},
		{"a Job runs as many as it may at a time",
			`{apiVersion: batch/v1, kind: Job, metadata: {namespace: ns}, spec: {parallelism: 3, completions: 9, ` + template +
				`}}`, 3, "spec.parallelism"},
		{"a Job never runs more than are to complete",
			`{apiVersion: batch/v1, kind: Job, metadata: {namespace: ns}, spec: {parallelism: 3, completions: 2, ` + template +
				`}}`, 2, "spec.parallelism"},
		{"a Job of no numbers runs one", `{apiVersion: batch/v1, kind: Job, metadata: {namespace: ns}, spec: {` + template +
			`}}`, 1, "spec.parallelism"},
		{"a Pod is one", `{apiVersion: v1, kind: Pod, metadata: {namespace: ns}, spec: {containers: [{resources: {requests: {cpu: 100m}}}]}}`, 1, ""},
		{"a CloneSet of the old version",
			`{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {namespace: ns}, spec: {replicas: 4, ` + template +
				`}}`, 4, "spec.replicas"},
		{"a CloneSet of the new version",
			`{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, metadata: {namespace: ns}, spec: {` + template + `}}`, 1,
			"spec.replicas"},
		{"an Advanced StatefulSet", `{apiVersion: apps.kruise.io/v1beta1, kind: StatefulSet, metadata: {namespace: ns}, spec: {replicas: 6, ` + template + `}}`, 6, "spec.replicas"},
	} {
		t.Run(c.name, func(t *testing.T) {
			obj := read(t, c.object)
			n, req, workload, err := interpreter.Replicas(t.Context(), obj)
			if err != nil || !workload || n != c.want {
				t.Errorf("got %d, %v, %v; want %d", n, workload, err, c.want)
			}
			if req == nil || req.Namespace != "ns" || req.ResourceRequest.Cpu().String() != "100m" {
				t.Errorf("requirements: got %+v", req)
			}
			before := obj.DeepCopy()
			revised, err := interpreter.Revise(t.Context(), obj, 5)
			if err != nil {
				t.Fatal(err)
			}
			if c.revised == "" {
				if revised != obj {
					t.Error("it has no replicas to revise and came back another")
				}
				return
			}
			if err := unstructured.SetNestedField(before.Object, int64(5), strings.Split(c.revised, ".")...); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(revised, before) {
				t.Errorf("revised to\n%s", show(revised.Object))
			}
			if reflect.DeepEqual(revised, obj) && c.want != 5 {
				t.Error("the object itself was revised")
			}
		})
	}
}

// replicasCase is a spec, how many replicas it asks for, what one needs ("unknown" for no answer), and its components.
type replicasCase struct {
	name, spec string
	replicas   int32
	needs      string
	components string
}

// checkReplicas asks for the replicas and components of objects of a kind in the namespace ns.
func checkReplicas(t *testing.T, kind string, cases []replicasCase) {
	t.Helper()
	for _, c := range cases {
		obj := read(t, `{apiVersion: `+kind+`, metadata: {namespace: ns, name: x}, spec: `+c.spec+`}`)
		n, req, workload, err := interpreter.Replicas(t.Context(), obj)
		if err != nil || !workload || n != c.replicas {
			t.Errorf("%s, %s: got %d, workload %v, %v; want %d", kind, c.name, n, workload, err, c.replicas)
		}
		needs := "unknown"
		if req != nil {
			if req.Namespace != "ns" {
				t.Errorf("%s, %s: the pods are of namespace %q", kind, c.name, req.Namespace)
			}
			needs = inWords(req.ResourceRequest, req.NodeClaim)
		}
		if needs != c.needs {
			t.Errorf("%s, %s: one needs %q, want %q", kind, c.name, needs, c.needs)
		}
		components, err := interpreter.Components(t.Context(), obj)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, part := range components {
			needs := "unknown"
			if r := part.ReplicaRequirements; r != nil {
				needs = inWords(r.ResourceRequest, r.NodeClaim)
			}
			got = append(got, strings.TrimSpace(fmt.Sprintf("%s×%d %s", part.Name, part.Replicas, needs)))
		}
		if s := strings.Join(got, ", "); s != c.components {
			t.Errorf("%s, %s: components\ngot  %s\nwant %s", kind, c.name, s, c.components)
		}
		revised, err := interpreter.Revise(t.Context(), obj, 7)
		if err != nil {
			t.Fatal(err)
		}
		want := obj.DeepCopy()
		if err := unstructured.SetNestedField(want.Object, int64(7), "spec", "replicas"); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(revised, want) {
			t.Errorf("%s, %s: revised to\n%s", kind, c.name, show(revised.Object))
		}
	}
}

// inWords is what a pod needs, in words.
func inWords(request corev1.ResourceList, nodes *workv1alpha2.NodeClaim) string {
	var words []string
	for _, name := range []corev1.ResourceName{"cpu", "memory"} {
		if q, ok := request[name]; ok {
			words = append(words, fmt.Sprintf("%s=%s", name, &q))
		}
	}
	if nodes == nil {
		return strings.Join(words, " ")
	}
	for _, key := range slices.Sorted(maps.Keys(nodes.NodeSelector)) {
		words = append(words, key+"="+nodes.NodeSelector[key])
	}
	for _, toleration := range nodes.Tolerations {
		words = append(words, "tolerates "+toleration.Key)
	}
	if a := nodes.HardNodeAffinity; a != nil {
		for _, term := range a.NodeSelectorTerms {
			var all []string
			for _, e := range term.MatchExpressions {
				all = append(all, fmt.Sprintf("%s %s %s", e.Key, e.Operator, strings.Join(e.Values, "|")))
			}
			words = append(words, "on ("+strings.Join(all, ", ")+")")
		}
	}
	return strings.Join(words, " ")
}

// checkRefused checks the errors for the replicas of invalid specs of a kind.
func checkRefused(t *testing.T, kind string, specs map[string]string) {
	t.Helper()
	for spec, want := range specs {
		obj := read(t, `{apiVersion: `+kind+`, metadata: {namespace: ns, name: x}, spec: `+spec+`}`)
		want := fmt.Sprintf("read replicas of %s ns/x: %s", obj.GetKind(), want)
		if _, _, _, err := interpreter.Replicas(t.Context(), obj); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", spec, err, want)
		}
		if _, err := interpreter.Components(t.Context(), obj); err == nil {
			t.Errorf("%s: it has components all the same", spec)
		}
	}
}

func TestKindsWithoutReplicasAreNoWorkloads(t *testing.T) {
	for _, kind := range []string{"apps/v1, kind: DaemonSet", "batch/v1, kind: CronJob", "v1, kind: Service",
		"apps.kruise.io/v1beta1, kind: DaemonSet", "apps.kruise.io/v1alpha1, kind: DaemonSet",
		"apps.kruise.io/v1beta1, kind: BroadcastJob",
		"apps.kruise.io/v1alpha1, kind: SidecarSet", "apps.kruise.io/v1beta1, kind: SidecarSet"} {
		if _, _, workload, err := interpreter.Replicas(t.Context(), read(t, `{apiVersion: `+kind+`}`)); workload ||
			err != nil {
			t.Errorf("%s: got a workload, %v", kind, err)
		}
	}
}

func TestInvalidReplicasAreAnError(t *testing.T) {
	obj := read(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: a, name: b}, spec: {replicas: three}}`)
	_, _, _, err := interpreter.Replicas(t.Context(), obj)
	if err == nil || err.Error() != "read replicas of Deployment a/b: spec.replicas: three is not an integer" {
		t.Errorf("got %v", err)
	}
}

func TestReflectReportsStatusAndGenerations(t *testing.T) {
	const meta = `metadata: {generation: 4, annotations: {resourcetemplate.karmada.io/generation: "2"}}`
	for _, c := range []struct{ name, object, want string }{
		{
			"a Deployment its counters, not conditions that say nothing",
			`{apiVersion: apps/v1, kind: Deployment, ` + meta +
				`, status: {observedGeneration: 4, replicas: 2, updatedReplicas: 2, readyReplicas: 1, availableReplicas: 1, unavailableReplicas: 1, conditions: [{type: Available}]}}`,
			`{observedGeneration: 4, replicas: 2, updatedReplicas: 2, readyReplicas: 1, availableReplicas: 1, unavailableReplicas: 1, generation: 4, resourceTemplateGeneration: 2}`,
		},
		{
			"a Deployment of its conditions what is folded, without what moves with every pod",
			`{apiVersion: apps/v1, kind: Deployment, ` + meta + `, status: {conditions: [
				{type: Progressing, status: "True", reason: ReplicaSetUpdated, message: "ReplicaSet x is progressing.", lastUpdateTime: "2026-01-01T00:01:00Z", lastTransitionTime: "2026-01-01T00:00:00Z"},
				{type: Available, status: "False", reason: MinimumReplicasUnavailable, message: Deployment does not have minimum availability., lastUpdateTime: "2026-01-01T00:01:00Z", lastTransitionTime: "2026-01-01T00:00:00Z"},
				{type: Somebodys, status: "True"}]}}`,
			`{generation: 4, resourceTemplateGeneration: 2, conditions: [
				{type: Available, status: "False", reason: MinimumReplicasUnavailable, message: Deployment does not have minimum availability., lastTransitionTime: "2026-01-01T00:00:00Z"},
				{type: Progressing, status: "True", reason: ReplicaSetUpdated, lastTransitionTime: "2026-01-01T00:00:00Z"}]}`,
		},
		{
			"a StatefulSet its revisions too",
			`{apiVersion: apps/v1, kind: StatefulSet, ` + meta +
				`, status: {observedGeneration: 4, replicas: 2, currentRevision: a, updateRevision: b, collisionCount: 0}}`,
			`{observedGeneration: 4, replicas: 2, currentRevision: a, updateRevision: b, generation: 4, resourceTemplateGeneration: 2}`,
		},
		{
			"a CloneSet all of it",
			`{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, ` + meta +
				`, status: {observedGeneration: 4, replicas: 2, labelSelector: a=b, conditions: [{type: FailedScale, status: "False"}]}}`,
			`{observedGeneration: 4, replicas: 2, labelSelector: a=b, conditions: [{type: FailedScale, status: "False"}], generation: 4, resourceTemplateGeneration: 2}`,
		},
		{
			"an object that says nothing of its template does not claim to be up to date",
			`{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 1}, status: {}}`,
			`{generation: 1}`,
		},
		{"an object without a status nothing", `{apiVersion: apps/v1, kind: Deployment, ` + meta + `}`, ``},
		{"a Service its load balancer", `{apiVersion: v1, kind: Service, spec: {type: LoadBalancer}, status: {loadBalancer: {ingress: [{ip: 1.2.3.4}]}, conditions: []}}`, `{loadBalancer: {ingress: [{ip: 1.2.3.4}]}}`},
		{"another Service nothing", `{apiVersion: v1, kind: Service, spec: {type: ClusterIP}, status: {loadBalancer: {}}}`,
			``},
		{"a PersistentVolumeClaim all of it",
			`{apiVersion: v1, kind: PersistentVolumeClaim, status: {phase: Bound, capacity: {storage: 1Gi}}}`,
			`{phase: Bound, capacity: {storage: 1Gi}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := interpreter.Reflect(t.Context(), read(t, c.object))
			if err != nil {
				t.Fatal(err)
			}
			if c.want == "" {
				if got != nil {
					t.Errorf("got %v", got)
				}
				return
			}
			if want := tree(t, c.want); !reflect.DeepEqual(got, want) {
				t.Errorf("got\n%swant\n%s", show(got), show(want))
			}
		})
	}
}

func TestDependenciesOfEachKind(t *testing.T) {
	const pods = `template: {spec: {volumes: [{name: data, persistentVolumeClaim: {claimName: any}}, {name: x, persistentVolumeClaim: {claimName: data}},
		{name: w, persistentVolumeClaim: {claimName: data-db-0}}, {name: z, persistentVolumeClaim: {claimName: shared}}, {name: c, configMap: {name: conf}}]}}`
	const claims = `volumeClaimTemplates: [{metadata: {name: data}}]`
	for _, c := range []struct{ name, object, want string }{
		{"a Deployment those of its pods",
			`{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: ns, name: db}, spec: {template: {spec: {serviceAccountName: bot}}}}`, "ns ServiceAccount/bot"},
		{"a CronJob those of its Jobs' pods",
			`{apiVersion: batch/v1, kind: CronJob, metadata: {namespace: ns}, spec: {jobTemplate: {spec: {template: {spec: {serviceAccountName: bot}}}}}}`, "ns ServiceAccount/bot"},
		{"a StatefulSet not the claims that it makes itself",
			`{apiVersion: apps/v1, kind: StatefulSet, metadata: {namespace: ns, name: db}, spec: {` + claims + `, ` + pods +
				`}}`, "ns ConfigMap/conf, ns PersistentVolumeClaim/shared"},
		{"an Advanced StatefulSet neither, and its Service",
			`{apiVersion: apps.kruise.io/v1beta1, kind: StatefulSet, metadata: {namespace: ns, name: db}, spec: {serviceName: db, ` + claims + `, ` + pods + `}}`, "ns ConfigMap/conf, ns PersistentVolumeClaim/shared, ns Service/db"},
		{"a CloneSet neither", `{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {namespace: ns, name: db}, spec: {` + claims + `, ` + pods + `}}`, "ns ConfigMap/conf, ns PersistentVolumeClaim/shared"},
		{"a UnitedDeployment those of its only template",
			`{apiVersion: apps.kruise.io/v1alpha1, kind: UnitedDeployment, metadata: {namespace: ns, name: db}, spec: {template: {cloneSetTemplate: {spec: {` + claims + `, ` + pods + `}}}}}`, "ns ConfigMap/conf, ns PersistentVolumeClaim/shared"},
		{"an Ingress its certificates, each once",
			`{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {namespace: ns}, spec: {tls: [{secretName: b}, {secretName: a}, {secretName: b}, {hosts: [x]}]}}`, "ns Secret/a, ns Secret/b"},
		{"a ServiceImport the Service made from it and its slices",
			`{apiVersion: multicluster.x-k8s.io/v1alpha1, kind: ServiceImport, metadata: {namespace: ns, name: web}}`,
			"ns EndpointSlice[kubernetes.io/service-name=derived-web], ns Service/derived-web"},
		{"a ConfigMap none", `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: ns}}`, ""},
		{"a Job without a template none", `{apiVersion: batch/v1, kind: Job}`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := dependencies(t, read(t, c.object)); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// dependencies are those of obj in words: "ns Kind/name, …".
func dependencies(t *testing.T, obj *unstructured.Unstructured) string {
	t.Helper()
	before := obj.DeepCopy()
	deps, err := interpreter.Dependencies(t.Context(), obj)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(obj, before) {
		t.Error("the object was changed")
	}
	var got []string
	for _, d := range deps {
		s := d.Namespace + " " + d.Kind
		if d.Name != "" {
			s += "/" + d.Name
		}
		if d.LabelSelector != nil {
			for k, v := range d.LabelSelector.MatchLabels {
				s += "[" + k + "=" + v + "]"
			}
		}
		got = append(got, s)
	}
	return strings.Join(got, ", ")
}

func BenchmarkAggregateDeployment(b *testing.B) {
	template := read(b, `{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 1}, spec: {replicas: 9, template: {spec: {containers: [{name: a, image: b}]}}}}`)
	const status = `{observedGeneration: 1, generation: 1, resourceTemplateGeneration: 1, replicas: 3, updatedReplicas: 3, readyReplicas: 3, availableReplicas: 3}`
	reports := []workv1alpha2.AggregatedStatusItem{item(b, "m1", status, "Healthy"), item(b, "m2", status, "Healthy"),
		item(b, "m3", status, "Healthy")}
	for b.Loop() {
		if _, err := interpreter.Aggregate(b.Context(), template, reports); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkReplicasCloneSet(b *testing.B) {
	obj := read(b, `{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, metadata: {namespace: ns}, spec: {replicas: 9, template: {metadata: {labels: {app: a}}, spec: {containers: [{name: a, image: b, resources: {requests: {cpu: 100m, memory: 1Gi}}}]}}}}`)
	for b.Loop() {
		if _, _, _, err := interpreter.Replicas(b.Context(), obj); err != nil {
			b.Fatal(err)
		}
	}
}
