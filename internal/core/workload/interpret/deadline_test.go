package interpret_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

func TestDeadlineAppliesOnlyToExpectedProgress(t *testing.T) {
	for name, c := range map[string]struct {
		object string
		want   time.Duration // until it is overdue; 0 for never
	}{
		"a workload that says nothing has ten minutes": {"{apiVersion: apps/v1, kind: StatefulSet, spec: {replicas: 3}}",
			600 * time.Second},
		"one with a deadline has that": {
			"{apiVersion: apps/v1, kind: Deployment, spec: {progressDeadlineSeconds: 30}}", 30 * time.Second},
		"Kubernetes' word for no deadline is none": {"{apiVersion: apps/v1, kind: Deployment, spec: {progressDeadlineSeconds: 2147483647}}", 0},
		"pods that may not be available before have it on top": {
			"{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, spec: {minReadySeconds: 900}}", 1500 * time.Second},
		"a paused Deployment":        {"{apiVersion: apps/v1, kind: Deployment, spec: {paused: true, progressDeadlineSeconds: 30}}", 0},
		"a paused CloneSet of old":   {"{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, spec: {updateStrategy: {paused: true}}}", 0},
		"a paused CloneSet of now":   {"{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, spec: {updateStrategy: {rollingUpdate: {paused: true}}}}", 0},
		"a suspended Workflow":       {"{apiVersion: argoproj.io/v1alpha1, kind: Workflow, spec: {suspend: true}}", 0},
		"a Workflow that runs":       {"{apiVersion: argoproj.io/v1alpha1, kind: Workflow, status: {phase: Running}}", 0},
		"a Workflow nobody takes up": {"{apiVersion: argoproj.io/v1alpha1, kind: Workflow}", 600 * time.Second},
		"a BroadcastJob that runs":   {"{apiVersion: apps.kruise.io/v1beta1, kind: BroadcastJob, status: {phase: running, active: 2}}", 0},
		"a canary":                   {"{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, spec: {updateStrategy: {rollingUpdate: {partition: 90%}}}, status: {replicas: 10, updatedReplicas: 1}}", 0},
		"a canary by number":         {"{apiVersion: apps/v1, kind: StatefulSet, spec: {updateStrategy: {rollingUpdate: {partition: 2}}}, status: {replicas: 3, updatedReplicas: 1}}", 0},
		"a partition that holds nothing": {
			"{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, spec: {updateStrategy: {rollingUpdate: {partition: 0%}}}, status: {replicas: 3, updatedReplicas: 1}}", 600 * time.Second},
		"a partition while nothing is rolled out": {
			"{apiVersion: apps/v1, kind: StatefulSet, spec: {updateStrategy: {rollingUpdate: {partition: 2}}}, status: {replicas: 3, updatedReplicas: 3}}", 600 * time.Second},
		"a DaemonSet that is new on some nodes": {
			"{apiVersion: apps.kruise.io/v1beta1, kind: DaemonSet, spec: {updateStrategy: {rollingUpdate: {selector: {}}}}, status: {desiredNumberScheduled: 3, updatedNumberScheduled: 1}}", 0},
		"a SidecarSet that is new in some pods": {
			"{apiVersion: apps.kruise.io/v1beta1, kind: SidecarSet, spec: {updateStrategy: {partition: 1}}, status: {matchedPods: 3, updatedPods: 1}}", 0},
		"a subset that is held": {
			"{apiVersion: apps.kruise.io/v1alpha1, kind: UnitedDeployment, spec: {updateStrategy: {manualUpdate: {partitions: {a: 1}}}}, status: {replicas: 3, updatedReplicas: 1}}", 0},
		"a UnitedDeployment of a paused Deployment": {
			"{apiVersion: apps.kruise.io/v1alpha1, kind: UnitedDeployment, spec: {template: {deploymentTemplate: {spec: {paused: true}}}}}", 0},
		"what Kruise Rollouts drives": {
			"{apiVersion: apps/v1, kind: Deployment, metadata: {annotations: {rollouts.kruise.io/in-progressing: '{}'}}}", 0},
		"a Rollout of Kruise":                    {"{apiVersion: rollouts.kruise.io/v1beta1, kind: Rollout}", 0},
		"a Rollout of Argo, which keeps its own": {"{apiVersion: argoproj.io/v1alpha1, kind: Rollout, status: {phase: Progressing}}", 0},
		"a kind of somebody":                     {"{apiVersion: guide.example.com/v1, kind: Train}", 600 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			u := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(c.object), &u.Object); err != nil {
				t.Fatal(err)
			}
			start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
			health, condition, again := interpret.Overdue(interpret.Progressing, u, nil, false, nil, start)
			if health != interpret.Progressing || again != c.want || (condition != nil) != (c.want > 0) {
				t.Fatalf("at first it is %s, to be looked at again after %s, want %s; %+v", health, again, c.want, condition)
			}
			late, over, again := interpret.Overdue(interpret.Progressing, u, condition, false, nil, start.Add(c.want+time.Hour))
			if want := map[bool]interpret.Health{true: interpret.Degraded,
				false: interpret.Progressing}[c.want > 0]; late != want || again != 0 || (over != nil) != (c.want > 0) {
				t.Errorf("an hour after that it is %s, want %s; %+v", late, want, over)
			}
		})
	}
}

func TestProgressRestartsDeadline(t *testing.T) {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "StatefulSet"}}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var was *metav1.Condition
	look := func(after time.Duration, health interpret.Health, progressed bool, want interpret.Health,
		wantAgain time.Duration) {
		t.Helper()
		now = now.Add(after)
		got, condition, again := interpret.Overdue(health, u, was, progressed, nil, now)
		if got != want || again != wantAgain {
			t.Errorf("it is %s and looked at again after %s, want %s and %s", got, again, want, wantAgain)
		}
		was = condition
	}
	const minute = time.Minute
	look(0, interpret.Progressing, true, interpret.Progressing, 10*minute)
	look(9*minute, interpret.Progressing, false, interpret.Progressing, minute)
	look(0, interpret.Progressing, true, interpret.Progressing, 10*minute)
	look(9*minute, interpret.Progressing, false, interpret.Progressing, minute)
	look(minute, interpret.Progressing, false, interpret.Degraded, 0)
	look(minute, interpret.Progressing, false, interpret.Degraded, 0)
	// A rollout that stops everywhere for it holds what is old by a partition: that does not mend it.
	u.Object["spec"] = map[string]any{"updateStrategy": map[string]any{"rollingUpdate": map[string]any{"partition": int64(
		2)}}}
	u.Object["status"] = map[string]any{"replicas": int64(3), "updatedReplicas": int64(1)}
	look(minute, interpret.Progressing, false, interpret.Degraded, 0)
	look(minute, interpret.Progressing, true, interpret.Progressing, 0)
	delete(u.Object, "spec")
	look(minute, interpret.Progressing, false, interpret.Progressing, 10*minute)
	look(11*minute, interpret.Progressing, false, interpret.Degraded, 0)
	look(minute, interpret.Progressing, true, interpret.Progressing, 10*minute)
	look(minute, interpret.Healthy, false, interpret.Healthy, 0)
	if was != nil {
		t.Errorf("of what is healthy the condition stays: %+v", was)
	}
	look(time.Hour, interpret.Progressing, true, interpret.Progressing, 10*minute)
	for _, h := range []interpret.Health{interpret.Suspended, interpret.Unknown, interpret.Degraded} {
		look(time.Hour, h, false, h, 0)
	}
}

func TestCountersShowProgress(t *testing.T) {
	for name, c := range map[string]struct {
		was, is string
		want    bool
	}{
		"the same, spelt otherwise": {`{"replicas":3,"phase":"Pending"}`, `{"phase": "Pending", "replicas": 3}`,
			false},
		"a pod more":              {`{"readyReplicas":1}`, `{"readyReplicas":2}`, true},
		"a first pod":             {`{}`, `{"readyReplicas":1}`, true},
		"a last pod":              {`{"readyReplicas":1}`, `{}`, true},
		"a zero that is left out": {`{"readyReplicas":0}`, `{}`, false},
		"a phase":                 {`{"phase":"Pending"}`, `{"phase":"Running"}`, true},
		"a spec that was seen": {`{"observedGeneration":1,"generation":1}`,
			`{"observedGeneration":2,"generation":2}`, false},
		"another partition": {`{"expectedUpdatedReplicas":1}`, `{"expectedUpdatedReplicas":2}`, false},
		"another template":  {`{"resourceTemplateGeneration":1}`, `{"resourceTemplateGeneration":2}`, true},
		"a restart": {`{"containerStatuses":[{"restartCount":1}]}`,
			`{"containerStatuses":[{"restartCount":2}]}`, false},
		"a time, or a message": {`{"message":"a","time":"1"}`, `{"message":"b","time":"2"}`, false},
		"a condition that is said once more": {`{"conditions":[{"lastUpdateTime":"1"}]}`,
			`{"conditions":[{"lastUpdateTime":"2"}]}`, false},
	} {
		raw := func(s string) *runtime.RawExtension { return &runtime.RawExtension{Raw: []byte(s)} }
		if got := interpret.Progressed(raw(c.was), raw(c.is)); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	if some := (&runtime.RawExtension{Raw: []byte("{}")}); !interpret.Progressed(nil, some) ||
		!interpret.Progressed(some, nil) || interpret.Progressed(nil, nil) {
		t.Error("that there is a status, or none, is progress")
	}
}
