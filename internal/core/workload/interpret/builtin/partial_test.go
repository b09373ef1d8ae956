package builtin

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// wholeSpec and wholeStatus have what this package reads of any kind; mangled takes parts away and puts others in their
// place.
const wholeSpec = `
  replicas: 3
  parallelism: 2
  paused: true
  suspend: true
  shutdown: Stop
  disabled: false
  serviceName: db
  selector: {matchLabels: {app: x}}
  pullSecrets: [a]
  podName: p
  completionPolicy: {type: Never, ttlSecondsAfterFinished: 5}
  failurePolicy: {type: Continue}
  ttlSecondsAfterFinished: 5
  ttlStrategy: {secondsAfterSuccess: 5}
  subsets: [{name: a, replicas: 1}, {name: b}]
  topology: {subsets: [{name: a, replicas: 1}]}
  targetRef: {kind: CloneSet, name: web}
  workloadRef: {kind: Deployment, name: web}
  releasePlan: {paused: true}
  strategy: {paused: true, canary: {canaryService: a, steps: [{analysis: {templates: [{templateName: t}]}}]}, blueGreen: {activeService: a}}
  updateStrategy: {type: RollingUpdate, partition: 1, rollingUpdate: {partition: "50%", paused: true}}
  template: {spec: {containers: [{name: a, image: b, resources: {requests: {cpu: "1"}}}], volumes: [{name: c, configMap: {name: c}}]}, ephemeralContainers: [{name: e}], imageListPullJobTemplate: {spec: {pullSecrets: [a]}}, jobTemplate: {spec: {template: {spec: {containers: [{name: a}]}}}}}
  workflowSpec: {templates: [{name: a, container: {image: b}}]}`

const wholeStatus = `
  observedGeneration: 2
  phase: Running
  startTime: "2026-01-01T00:00:00Z"
  completionTime: "2026-01-01T00:00:00Z"
  startedAt: "2026-01-01T00:00:00Z"
  finishedAt: "2026-01-01T00:00:00Z"
  lastScheduleTime: "2026-01-01T00:00:00Z"
  progress: 1/2
  message: m
  type: Job
  active: [{name: a}]
  desired: 3
  failed: 1
  failedNodes: [n1]
  failedImageStatuses: [{name: a, message: b}]
  currentStepIndex: 1
  currentStepState: StepPaused
  canaryStatus: {currentStepIndex: 1, nextStepIndex: 2, canaryReplicas: 1}
  blueGreenStatus: {currentStepIndex: 1}
  resourcesDuration: {cpu: 1}
  outputs: {parameters: [{name: a, value: b}]}
  nodes: {a: {type: Suspend, phase: Running}}
  podStates: {a: {nodeName: b}}
  subsetStatuses: [{name: a, replicas: 1, missingReplicas: -1, conditions: [{type: Schedulable, status: "False"}], creatingPods: {a: b}}]
  containerRecreateStates: [{name: a, phase: Failed}]
  conditions: [{type: Complete, status: "True", lastTransitionTime: "2026-01-01T00:00:00Z", failedNamespaces: [a]}, {type: Progressing, status: "False", reason: x}]`

// mangled is v with parts of it gone, or of another type.
func mangled(r *rand.Rand, v any) any {
	switch r.IntN(24) {
	case 0:
		return nil
	case 1:
		return []any{int64(-1), "x", nil, 1.5, true, map[string]any{"name": int64(3)}, []any{[]any{}}, "{{x}}",
			"9999999999999999%", int64(1) << 62}[r.IntN(10)]
	}
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if r.IntN(16) > 0 {
				out[key] = mangled(r, v[key])
			}
		}
		return out
	case []any:
		out := []any{}
		for _, item := range v {
			out = append(out, mangled(r, item))
		}
		return out
	}
	return v
}

// Whatever a user or a member sends, an answer or an error comes back, and what was given stays as it was.
func TestMalformedObjectsDoNotPanic(t *testing.T) {
	kinds := Tier().(interpret.Kinds)
	object := read(t, "apiVersion: v1\nkind: Any\nspec:"+wholeSpec+workflowSpec+"status:"+wholeStatus)
	for kind := range kinds {
		for seed := range uint64(12) {
			r := rand.New(rand.NewPCG(seed, uint64(len(kind.Kind))))
			random := func() *unstructured.Unstructured {
				u := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "a", "namespace": "ns",
					"generation": int64(2)}}}
				for _, part := range []string{"spec", "status"} {
					if v := mangled(r, object.Object[part]); r.IntN(12) > 0 {
						u.Object[part] = v
					}
				}
				version := []string{"v1alpha1", "v1beta1"}[seed%2]
				u.SetAPIVersion(strings.TrimPrefix(kind.Group+"/"+version, "/"))
				u.SetKind(kind.Kind)
				return u
			}
			try(t, random(), random(), r)
		}
	}
}

// try asks everything about an object and the member's copy of it.
func try(t *testing.T, template, observed *unstructured.Unstructured, r *rand.Rand) {
	t.Helper()
	was, wasObserved := template.DeepCopy(), observed.DeepCopy()
	defer func() {
		if p := recover(); p != nil {
			t.Fatalf("panic: %v\ntemplate\n%sobserved\n%s", p, show(was.Object), show(wasObserved.Object))
		}
	}()
	ctx := t.Context()
	_, _, _, _ = interpreter.Replicas(ctx, template)
	_, _ = interpreter.Components(ctx, template)
	_, _ = interpreter.Revise(ctx, template, 3)
	_, _ = interpreter.Retain(ctx, template, observed)
	_, _ = interpreter.Dependencies(ctx, template)
	_, _ = interpreter.Health(ctx, observed)
	_, _ = interpret.Expiry(template)
	_ = interpret.CleansUp(observed)
	var reports []workv1alpha2.AggregatedStatusItem
	for _, cluster := range []string{"m1", "m2"} {
		status, err := interpreter.Reflect(ctx, observed)
		if err != nil || status == nil || r.IntN(4) == 0 {
			reports = append(reports, item(t, cluster, "", ""))
			continue
		}
		i := item(t, cluster, "{}", "")
		if i.Status.Raw, err = json.Marshal(status); err != nil {
			t.Fatal(err)
		}
		reports = append(reports, i)
	}
	if folded, err := interpreter.Aggregate(ctx, template, reports); err == nil {
		if again, err := interpreter.Aggregate(ctx, folded, reports); err != nil || again != folded {
			t.Errorf("a second time gives %v\n%swith template\n%s", err, show(again.Object["status"]), show(folded.Object))
		}
	}
	if !reflect.DeepEqual(template, was) || !reflect.DeepEqual(observed, wasObserved) {
		t.Errorf("an argument was changed: it was\n%s", show(was.Object))
	}
}
