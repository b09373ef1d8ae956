package builtin

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// everything is an object with the fields of all kinds at once, so that every kind finds its own in it.
const everything = `
apiVersion: v1
kind: Any
metadata:
  name: x
  namespace: ns
  generation: 2
  labels: {app: x, resourcetemplate.karmada.io/retain-replicas: "true"}
  annotations: {resourcetemplate.karmada.io/generation: "2", rollouts.kruise.io/in-progressing: x, kruise.io/sidecarset-hash: h, argosy.io/immutable-fields: kept}
type: kubernetes.io/service-account-token
data: {token: eA==}
secrets: [{name: x-token-1}]
spec:
  replicas: 5
  parallelism: 50%
  completions: 3
  paused: true
  suspend: false
  namespace: ns
  serviceName: web
  podManagementPolicy: Parallel
  type: LoadBalancer
  clusterIP: 10.0.0.1
  ports: [{port: 80, nodePort: 30080, protocol: TCP}]
  tls: [{secretName: tls}]
  podName: p
  image: app:1
  images: [app:1]
  pullSecrets: [pull]
  phase: running
  minReadySeconds: 3
  selector: &selector {matchLabels: {app: x}, matchExpressions: [{key: tier, operator: In, values: [a]}]}
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: ns}, matchExpressions: [{key: kubernetes.io/metadata.name, operator: In, values: [a]}]}
  completionPolicy: {type: Always, ttlSecondsAfterFinished: 3}
  failurePolicy: {type: Continue}
  scaleStrategy: {podsToDelete: [a, b], maxUnavailable: 20%}
  strategy: {canary: {steps: [{pause: {}}, {replicas: 10%}]}}
  updateStrategy: {type: RollingUpdate, partition: 10%, maxUnavailable: 1, maxSurge: 20%, paused: false, rollingUpdate: {partition: 1, maxUnavailable: 20%, maxSurge: 1}, manualUpdate: {partitions: {a: 1}}}
  targetRef: {apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, name: x}
  workloadRef: &target {apiVersion: apps/v1, kind: Deployment, name: x}
  objectRef: {workloadRef: *target}
  resource: {apiVersion: v1, kind: Secret, metadata: {name: s}}
  targets: {includedNamespaces: {list: [{name: a}]}, allNamespaces: true}
  subsets: [{name: a, maxReplicas: 3}]
  volumeClaimTemplates: [{metadata: {name: data}, spec: {storageClassName: fast, resources: {requests: {storage: 1Gi}}}}]
  topology: {subsets: [{name: a, replicas: 50%, minReplicas: 1, maxReplicas: 60%, nodeSelectorTerm: {matchExpressions: [{key: zone, operator: In, values: [z]}]}, tolerations: [{key: t}], patch: {spec: {containers: [{name: c, env: [{name: e, valueFrom: {configMapKeyRef: {name: m, key: k}}}]}]}}}, {name: b}]}
  serviceAccountName: bot
  containers: &containers [{name: c, image: app:1, env: [{name: e, valueFrom: {secretKeyRef: {name: s, key: k}}}], resources: {requests: {cpu: 1, memory: 1Gi}, limits: {cpu: "2"}}}]
  initContainers: [{name: i, image: app:1}]
  volumes: &volumes [{name: v, configMap: {name: m}}, {name: w, persistentVolumeClaim: {claimName: data}}]
  imagePullSecrets: [{name: pull}]
  jobTemplate: &job {spec: {template: &template {metadata: {labels: {app: x}}, spec: {containers: *containers, volumes: *volumes}}}}
  template:
    metadata: {labels: {app: x, tier: a}}
    spec: {containers: *containers, volumes: *volumes, nodeSelector: {disk: ssd}, tolerations: [{key: t}]}
    ephemeralContainers: *containers
    jobTemplate: *job
    broadcastJobTemplate: *job
    imageListPullJobTemplate: {spec: {images: [a], pullSecrets: [pull]}}
    statefulSetTemplate: {spec: {serviceName: web, template: *template}}
    advancedStatefulSetTemplate: {spec: {template: *template}}
    cloneSetTemplate: {spec: {template: *template, updateStrategy: {paused: true}}}
    deploymentTemplate: {spec: {template: *template, paused: true}}
  entrypoint: main
  arguments: {parameters: [{name: p, value: v, valueFrom: {configMapKeyRef: {name: m, key: k}}}], artifacts: [{name: a, s3: {accessKeySecret: {name: s, key: k}}}]}
  templates: &templates [{name: main, container: {name: c, image: app:1}, inputs: {artifacts: [{name: a, s3: {accessKeySecret: {name: s, key: k}}}]}, steps: [[{name: s, template: t}]], dag: {tasks: [{name: t, template: main, templateRef: {name: r, template: m}}]}}, {name: t, script: {image: app:1}, volumes: *volumes}]
  templateDefaults: {container: {image: app:1}}
  workflowTemplateRef: {name: r}
  workflowSpec: {entrypoint: main, templates: *templates}
  synchronization: {mutexes: [{name: m}], semaphores: [{configMapKeyRef: {name: m, key: k}}]}
status: &status
  observedGeneration: 2
  generation: 2
  resourceTemplateGeneration: 2
  replicas: 5
  readyReplicas: 5
  availableReplicas: 4
  updatedReplicas: 3
  updatedReadyReplicas: 3
  updatedAvailableReplicas: 2
  expectedUpdatedReplicas: 3
  reservedPods: 1
  matchedPods: 3
  updatedPods: 2
  readyPods: 3
  updatedReadyPods: 2
  desiredNumberScheduled: 3
  updatedNumberScheduled: 2
  numberAvailable: 3
  collisionCount: 1
  currentRevision: x-1
  updateRevision: x-2
  updatedRevision: x-2
  latestRevision: x-2
  daemonSetHash: x
  labelSelector: app=x
  phase: Running
  type: Job
  desired: 3
  active: 1
  succeeded: 1
  failed: 1
  completed: 1
  match: 3
  running: 1
  waiting: 1
  message: going
  startTime: "2026-01-01T00:00:00Z"
  completionTime: "2026-01-01T00:01:00Z"
  startedAt: "2026-01-01T00:00:00Z"
  finishedAt: "2026-01-01T00:01:00Z"
  lastScheduleTime: "2026-01-01T00:00:00Z"
  lastScheduledTime: "2026-01-01T00:00:00Z"
  lastScaleTime: "2026-01-01T00:00:00Z"
  progress: 1/2
  nodes: {a: {phase: Running}}
  failedNodes: [node]
  failedImageStatuses: [{imagePullJob: j, name: node, message: m}]
  currentHealthy: 1
  desiredHealthy: 2
  currentAvailable: 1
  desiredAvailable: 2
  totalReplicas: 3
  unavailableAllowed: 1
  disruptedPods: {p: "2026-01-01T00:00:00Z"}
  unavailablePods: {p: "2026-01-01T00:00:00Z"}
  podStates: {p: {nodeName: node}}
  containerRecreateStates: [{name: c, phase: Failed}]
  subsetReplicas: {a: 2}
  updateStatus: {updatedRevision: x-2, currentPartitions: {a: 1}}
  subsetStatuses: [{name: a, replicas: 2, readyReplicas: 2, partition: 1, missingReplicas: -1, conditions: [{type: Schedulable, status: "False", reason: Full, message: no node}]}]
  volumeClaims: [{volumeClaimName: data, compatibleReplicas: 2, compatibleReadyReplicas: 1}]
  loadBalancer: {ingress: [{ip: 1.2.3.4, ports: [{port: 80}]}]}
  containerStatuses: [{name: c, ready: true, restartCount: 1, state: {waiting: {reason: CrashLoopBackOff}}}]
  currentStepIndex: 2
  currentStepState: StepPaused
  canaryStatus: &step {currentStepIndex: 2, nextStepIndex: 3, currentStepState: StepPaused, canaryReplicas: 1, canaryReadyReplicas: 1, canaryRevision: r, stableRevision: s, message: m}
  blueGreenStatus: *step
  pauseConditions: [{reason: CanaryPauseStep, startTime: "2026-01-01T00:00:00Z"}]
  HPAReplicas: 5
  selector: app=x
  conditions: [{type: Progressing, status: "False", reason: ProgressDeadlineExceeded, message: m, lastTransitionTime: "2026-01-01T00:00:00Z", lastUpdateTime: "2026-01-01T00:00:00Z", failedNamespaces: [a]}, {type: FailedUpdate, status: "True"}, {type: Complete, status: "True"}, {type: Failed, status: "True"}]
`

// kindsOfTier returns the kinds that this package knows, in one order.
func kindsOfTier() []schema.GroupKind {
	var kinds []schema.GroupKind
	for kind := range Tier().(interpret.Kinds) {
		kinds = append(kinds, kind)
	}
	slices.SortFunc(kinds, func(a, b schema.GroupKind) int { return strings.Compare(a.String(), b.String()) })
	return kinds
}

// versionsOf are versions that the kind is served in.
func versionsOf(kind schema.GroupKind) []string {
	if strings.HasSuffix(kind.Group, "kruise.io") {
		return []string{"v1alpha1", "v1beta1"}
	}
	return []string{"v1"}
}

// surgeon takes objects apart. What it leaves is JSON, as an API server or a script would give it.
type surgeon struct{ *rand.Rand }

// odd returns a value that hardly anybody expects.
func (r surgeon) odd() any {
	values := []any{
		nil, true, false, int64(0), int64(-1), int64(1) << 40, 0.5, -1e300, "", "x", "7", "10%", "0.5%", "-5%", "NaN%",
		"101%", "2026-01-01T00:00:00Z",
		[]any{}, []any{nil}, []any{map[string]any{}}, []any{[]any{"x"}}, map[string]any{}, map[string]any{"name": []any{}},
		map[string]any{"": nil},
	}
	return runtime.DeepCopyJSONValue(values[r.IntN(len(values))])
}

// cut is v with about one part in n gone or replaced.
func (r surgeon) cut(v any, n int) any {
	if r.IntN(n) == 0 {
		return r.odd()
	}
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for _, key := range sortedKeys(v) {
			if r.IntN(n) > 0 {
				out[key] = r.cut(v[key], n)
			}
		}
		return out
	case []any:
		out := []any{}
		for _, element := range v {
			switch r.IntN(n) {
			case 0:
			case 1:
				out = append(out, r.cut(element, n), r.cut(element, n))
			default:
				out = append(out, r.cut(element, n))
			}
		}
		return out
	}
	return v
}

func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// object is one of the kind with parts missing or wrong; how many varies.
func (r surgeon) object(whole *unstructured.Unstructured, kind schema.GroupKind,
	version string) *unstructured.Unstructured {
	n := []int{3, 10, 30, 100}[r.IntN(4)]
	object, ok := r.cut(whole.Object, n).(map[string]any)
	if !ok {
		object = map[string]any{}
	}
	object["apiVersion"], object["kind"] = schema.GroupVersion{Group: kind.Group, Version: version}.String(), kind.Kind
	return &unstructured.Unstructured{Object: object}
}

// reports are what up to three clusters say of their copies.
func (r surgeon) reports(t *testing.T, whole *unstructured.Unstructured) []workv1alpha2.AggregatedStatusItem {
	t.Helper()
	var out []workv1alpha2.AggregatedStatusItem
	for i := range r.IntN(4) {
		item := workv1alpha2.AggregatedStatusItem{
			ClusterName: fmt.Sprint("m", i),
			Health: []workv1alpha1.ResourceHealth{"", workv1alpha1.ResourceHealthy, workv1alpha1.ResourceUnhealthy,
				workv1alpha1.ResourceUnknown}[r.IntN(4)],
		}
		if r.IntN(5) > 0 {
			status := r.cut(whole.Object["status"], 20)
			if _, ok := status.(map[string]any); !ok {
				status = nil
			}
			raw, err := json.Marshal(status)
			if err != nil {
				t.Fatal(err)
			}
			item.Status = &runtime.RawExtension{Raw: raw}
		}
		out = append(out, item)
	}
	return out
}

// Whatever an object lacks and whatever nonsense stands in it: nothing panics, no argument is changed, an error comes
// without a result, and what holds for every kind holds.
func TestMutilatedObjectsOfEveryKind(t *testing.T) {
	whole := read(t, everything)
	for _, kind := range kindsOfTier() {
		for _, version := range versionsOf(kind) {
			t.Run(kind.String()+" "+version, func(t *testing.T) {
				t.Parallel()
				h := fnv.New64a()
				h.Write([]byte(kind.String() + version))
				for i := range uint64(6) {
					r := surgeon{rand.New(rand.NewPCG(h.Sum64(), i))}
					callAll(t, r, r.object(whole, kind, version), r.object(whole, kind, version), r.reports(t, whole))
				}
			})
		}
	}
}

// FuzzEveryKind goes on where the test above stops: go test -fuzz FuzzEveryKind.
func FuzzEveryKind(f *testing.F) {
	whole, kinds := read(f, everything), kindsOfTier()
	f.Add(uint64(1), uint64(0))
	f.Fuzz(func(t *testing.T, seed, which uint64) {
		r := surgeon{rand.New(rand.NewPCG(seed, which))}
		kind := kinds[which%uint64(len(kinds))]
		versions := versionsOf(kind)
		version := versions[r.IntN(len(versions))]
		callAll(t, r, r.object(whole, kind, version), r.object(whole, kind, version), r.reports(t, whole))
	})
}

// callAll has every operation answer for obj, with another as the other side's.
func callAll(t *testing.T, r surgeon, obj, another *unstructured.Unstructured,
	reports []workv1alpha2.AggregatedStatusItem) {
	was, wasAnother := obj.DeepCopy(), another.DeepCopy()
	at := "nothing"
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("%s panics: %v\n%s", at, p, show(was.Object))
		}
	}()
	unchanged := func() {
		if !reflect.DeepEqual(obj, was) || !reflect.DeepEqual(another, wasAnother) {
			t.Errorf("%s, or what was asked before, changed an argument\n%s", at, show(was.Object))
		}
	}

	at = "Replicas"
	n, _, workload, replicasErr := interpreter.Replicas(t.Context(), obj)
	if replicasErr == nil && n < 0 {
		t.Errorf("%d replicas of\n%s", n, show(was.Object))
	}

	at = "Components"
	components, err := interpreter.Components(t.Context(), obj)
	names := map[string]bool{}
	var total int32
	for _, c := range components {
		total += c.Replicas
		if names[c.Name] = true; c.Replicas < 0 || len(c.Name) > 32 {
			t.Errorf("component %+v of\n%s", c, show(was.Object))
		}
	}
	if workload && replicasErr == nil && err == nil && total > n {
		t.Errorf("%d replicas, and %d in components, of\n%s", n, total, show(was.Object))
	}

	at = "Revise"
	if revised, err := interpreter.Revise(t.Context(), obj, 3); (err == nil) != (revised != nil) {
		t.Errorf("revised: %v, %v", revised, err)
	}

	at = "Reflect"
	_, _ = interpreter.Reflect(t.Context(), obj)

	at = "Health"
	if health, err := interpreter.Health(t.Context(), obj); err != nil && health != interpret.Unknown || health == "" {
		t.Errorf("health %q with %v of\n%s", health, err, show(was.Object))
	}

	at = "Dependencies"
	deps, err := interpreter.Dependencies(t.Context(), obj)
	for i, d := range deps {
		if d.Kind == "" || d.APIVersion == "" || d.Name == "" && d.LabelSelector == nil || i > 0 &&
			reflect.DeepEqual(d, deps[i-1]) {
			t.Errorf("dependency %+v of\n%s", d, show(was.Object))
		}
	}
	if err != nil && deps != nil {
		t.Errorf("dependencies %v with %v", deps, err)
	}

	at = "Retain"
	if retained, err := interpreter.Retain(t.Context(), obj, another); err == nil {
		again, err := interpreter.Retain(t.Context(), retained, another)
		if err != nil || !reflect.DeepEqual(again.Object, retained.Object) {
			t.Errorf("retaining twice: %v\n%snot\n%s", err, show(again), show(retained.Object))
		}
	}
	unchanged()

	at = "Aggregate"
	folded, err := interpreter.Aggregate(t.Context(), obj, reports)
	unchanged()
	if err != nil {
		return
	}
	r.Shuffle(len(reports), func(i, j int) { reports[i], reports[j] = reports[j], reports[i] })
	if other, err := interpreter.Aggregate(t.Context(), obj, reports); err != nil ||
		!reflect.DeepEqual(other.Object, folded.Object) {
		t.Errorf("another order of reports gives %v\n%snot\n%s", err, show(other), show(folded.Object["status"]))
	}
	if again, err := interpreter.Aggregate(t.Context(), folded, reports); err != nil || again != folded {
		t.Errorf("a second time gives %v\n%snot the template as it is:\n%s", err, show(again), show(folded.Object["status"]))
	}
	if _, err := folded.MarshalJSON(); err != nil {
		t.Errorf("the result is no JSON: %v", err)
	}
}
