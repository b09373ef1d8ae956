package builtin

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// The tables of this file are of OpenKruise's jobs and helpers and of Kruise Rollouts, of Argo's kinds in argo_test.go.

// verdict is a state of an object and its health.
type verdict struct {
	name, spec, status string
	want               interpret.Health
}

const (
	healthy     = interpret.Healthy
	progressing = interpret.Progressing
	suspended   = interpret.Suspended
	degraded    = interpret.Degraded
)

// judge compares the health of objects of each of the versions, at generation 2.
func judge(t *testing.T, kinds map[string][]verdict) {
	for kind, verdicts := range kinds {
		name, versions, _ := strings.Cut(kind, " ")
		for _, version := range strings.Fields(versions) {
			t.Run(name+"/"+strings.ReplaceAll(version, "/", "."), func(t *testing.T) {
				for _, c := range verdicts {
					text := `{apiVersion: ` + version + `, kind: ` + name + `, metadata: {generation: 2}, spec: ` + c.spec
					if c.status != "" {
						text += `, status: ` + c.status
					}
					if got, err := interpreter.Health(t.Context(), read(t, text+`}`)); got != c.want || err != nil {
						t.Errorf("%s: got %s, %v; want %s", c.name, got, err, c.want)
					}
				}
			})
		}
	}
}

// fold is what clusters m1, m2, … say, and what the template says of that.
type fold struct {
	name, template string
	reports        []string
	want           string
}

func compareFolds(t *testing.T, folds []fold) {
	for _, c := range folds {
		t.Run(c.name, func(t *testing.T) {
			got := aggregated(t, read(t, c.template), items(t, c.reports...))
			if want := tree(t, c.want); !reflect.DeepEqual(got, want) {
				t.Errorf("got\n%swant\n%s", show(got), show(want))
			}
		})
	}
}

func TestHealthOfKruiseJobsAndHelpers(t *testing.T) {
	const both = " apps.kruise.io/v1alpha1 apps.kruise.io/v1beta1"
	judge(t, map[string][]verdict{
		"BroadcastJob" + both: {
			{"not looked at yet", `{}`, ``, progressing},
			{"under way", `{}`, `{phase: running, startTime: "2026-01-01T00:00:00Z", desired: 3, active: 2, succeeded: 1}`,
				progressing},
			{"completed", `{}`, `{phase: completed, desired: 3, succeeded: 3, conditions: [{type: Complete, status: "True"}]}`,
				healthy},
			{"completed with failed pods, which it was told to bear", `{failurePolicy: {type: Continue}}`,
				`{phase: completed, desired: 3, succeeded: 2, failed: 1}`, healthy},
			{"completed though it is paused since", `{paused: true}`, `{phase: completed}`, healthy},
			{"failed", `{}`, `{phase: failed, failed: 1, conditions: [{type: Failed, status: "True"}]}`, degraded},
			{"paused by its owner", `{paused: true}`, `{phase: running, active: 1, desired: 3}`, suspended},
			{"paused by its failure policy", `{failurePolicy: {type: Pause}}`, `{phase: paused, failed: 1, desired: 3}`,
				degraded},
			{"on no node", `{}`, `{phase: running, startTime: "2026-01-01T00:00:00Z", desired: 0}`, healthy},
			{"lasting, on all nodes that there are", `{completionPolicy: {type: Never}}`,
				`{phase: running, desired: 3, succeeded: 3}`, healthy},
			{"lasting, with failed pods that it bears", `{completionPolicy: {type: Never}, failurePolicy: {type: Continue}}`,
				`{phase: running, desired: 3, failed: 1}`, healthy},
			{"lasting, with failed pods", `{completionPolicy: {type: Never}}`, `{phase: running, desired: 3, failed: 1}`,
				progressing},
		},
		"AdvancedCronJob" + both: {
			{"not looked at yet", `{}`, ``, healthy},
			{"active", `{}`, `{type: Job, active: [{name: a}]}`, healthy},
			{"paused", `{paused: true}`, `{type: Job}`, suspended},
		},
		"ImagePullJob" + both: {
			{"not looked at yet", `{}`, ``, progressing},
			{"under way", `{}`, `{desired: 3, active: 1, succeeded: 2}`, progressing},
			{"under way with a node that failed", `{}`, `{desired: 3, active: 1, failed: 1}`, progressing},
			{"done", `{}`, `{desired: 3, succeeded: 3, completionTime: "2026-01-01T00:00:00Z"}`, healthy},
			{"done with a node that failed", `{}`,
				`{desired: 3, succeeded: 2, failed: 1, completionTime: "2026-01-01T00:00:00Z"}`, degraded},
			{"lasting", `{completionPolicy: {type: Never}}`, `{desired: 3, active: 1}`, healthy},
			{"lasting with a node that failed", `{completionPolicy: {type: Never}}`, `{desired: 3, failed: 1}`, degraded},
		},
		"ImageListPullJob" + both: {
			{"not looked at yet", `{}`, ``, progressing},
			{"under way", `{}`, `{desired: 2, active: 1, completed: 1, succeeded: 1}`, progressing},
			{"done", `{}`, `{desired: 2, completed: 2, succeeded: 2, completionTime: "2026-01-01T00:00:00Z"}`, healthy},
			{"done without one image", `{}`,
				`{desired: 2, completed: 2, succeeded: 1, failedImageStatuses: [{name: nginx}], completionTime: "2026-01-01T00:00:00Z"}`, degraded},
		},
		"WorkloadSpread" + both: {
			{"not seen yet", `{}`, `{observedGeneration: 1}`, progressing},
			{"all there", `{}`, `{observedGeneration: 2, subsetStatuses: [{name: a, missingReplicas: 0, conditions: [{type: Schedulable, status: "False"}]}]}`, healthy},
			{"room wanted where there is none", `{}`,
				`{observedGeneration: 2, subsetStatuses: [{name: a, missingReplicas: 1, conditions: [{type: Schedulable, status: "False"}]}]}`, progressing},
			{"without limit where there is no room", `{}`,
				`{observedGeneration: 2, subsetStatuses: [{name: a, missingReplicas: -1, conditions: [{type: Schedulable, status: "False"}]}]}`, progressing},
			{"more to come where there is room", `{}`,
				`{observedGeneration: 2, subsetStatuses: [{name: a, missingReplicas: 1, conditions: [{type: Schedulable, status: "True"}]}]}`, healthy},
		},
		"PodUnavailableBudget policy.kruise.io/v1alpha1 policy.kruise.io/v1beta1": {
			{"not seen yet", `{}`, `{observedGeneration: 1, desiredAvailable: 2}`, progressing},
			{"enough pods", `{}`, `{observedGeneration: 2, currentAvailable: 2, desiredAvailable: 2}`, healthy},
			{"too few pods", `{}`, `{observedGeneration: 2, currentAvailable: 1, desiredAvailable: 2}`, degraded},
		},
		"PersistentPodState" + both: {
			{"whatever it keeps", `{}`, `{podStates: {a: {nodeName: n}}}`, healthy},
		},
		"ResourceDistribution" + both: {
			{"not seen yet", `{}`, `{observedGeneration: 1, desired: 2, succeeded: 2}`, progressing},
			{"in all namespaces", `{}`, `{observedGeneration: 2, desired: 2, succeeded: 2}`, healthy},
			{"not in one", `{}`, `{observedGeneration: 2, desired: 2, succeeded: 1, failed: 1}`, degraded},
		},
		"ContainerRecreateRequest" + both: {
			{"not looked at yet", `{}`, ``, progressing},
			{"waiting", `{}`, `{phase: Pending}`, progressing},
			{"recreating, one container failed", `{}`,
				`{phase: Recreating, containerRecreateStates: [{name: a, phase: Failed}]}`, progressing},
			{"completed", `{}`, `{phase: Completed, containerRecreateStates: [{name: a, phase: Succeeded}]}`, healthy},
			{"succeeded", `{}`, `{phase: Succeeded}`, healthy},
			{"completed without one container", `{}`, `{phase: Completed, containerRecreateStates: [{name: a, phase: Failed}]}`,
				degraded},
			{"failed", `{}`, `{phase: Failed}`, degraded},
		},
		"EphemeralJob apps.kruise.io/v1alpha1": {
			{"not looked at yet", `{}`, ``, progressing},
			{"waiting for pods", `{}`, `{phase: Waiting}`, progressing},
			{"running", `{}`, `{phase: Running, match: 2, running: 1}`, progressing},
			{"paused", `{paused: true}`, `{phase: Running, match: 2}`, suspended},
			{"succeeded", `{}`, `{phase: Succeeded, match: 2, succeeded: 2}`, healthy},
			{"failed in one pod", `{}`, `{phase: Running, match: 2, failed: 1}`, degraded},
			{"in error", `{}`, `{phase: Error}`, degraded},
		},
		"PodProbeMarker apps.kruise.io/v1alpha1": {
			{"not seen yet", `{}`, `{observedGeneration: 1}`, progressing},
			{"seen", `{}`, `{observedGeneration: 2, matchedPods: 3}`, healthy},
		},
		"Rollout rollouts.kruise.io/v1alpha1 rollouts.kruise.io/v1beta1": {
			{"not seen yet", `{}`, `{observedGeneration: 1, phase: Healthy}`, progressing},
			{"nothing to roll out", `{}`, `{observedGeneration: 2, phase: Healthy, conditions: [{type: Succeeded, status: "True"}]}`, healthy},
			{"switched off", `{disabled: true}`, `{observedGeneration: 2, phase: Disabled}`, healthy},
			{"rolling a step out", `{}`, `{observedGeneration: 2, phase: Progressing, canaryStatus: {currentStepState: StepUpgrade}}`, progressing},
			{"waiting at a step", `{}`, `{observedGeneration: 2, phase: Progressing, canaryStatus: {currentStepState: StepPaused}}`, suspended},
			{"waiting at a step, told on top", `{}`, `{observedGeneration: 2, phase: Progressing, currentStepState: StepPaused}`,
				suspended},
			{"waiting between blue and green", `{}`,
				`{observedGeneration: 2, phase: Progressing, blueGreenStatus: {currentStepState: StepPaused}}`, suspended},
			{"paused by its owner", `{strategy: {paused: true}}`, `{observedGeneration: 2, phase: Progressing}`, suspended},
			{"rolled back", `{}`, `{observedGeneration: 2, phase: Progressing, conditions: [{type: Progressing, status: "True", reason: Cancelling}]}`, degraded},
			{"after a rollback", `{}`, `{observedGeneration: 2, phase: Healthy, conditions: [{type: Succeeded, status: "False"}]}`, degraded},
			{"on its way out", `{}`, `{observedGeneration: 2, phase: Terminating}`, progressing},
		},
		"BatchRelease rollouts.kruise.io/v1alpha1 rollouts.kruise.io/v1beta1": {
			{"on its way", `{}`, `{observedGeneration: 2, phase: Progressing}`, progressing},
			{"paused", `{releasePlan: {paused: true}}`, `{observedGeneration: 2, phase: Progressing}`, suspended},
			{"done", `{}`, `{observedGeneration: 2, phase: Completed}`, healthy},
		},
		"TrafficRouting rollouts.kruise.io/v1alpha1": {
			{"set up", `{}`, `{observedGeneration: 2, phase: Healthy}`, healthy},
			{"routing", `{}`, `{observedGeneration: 2, phase: Progressing}`, healthy},
			{"being set up", `{}`, `{observedGeneration: 2, phase: Initial}`, progressing},
		},
	})
}

func TestAggregateOfKruiseJobsAndHelpers(t *testing.T) {
	const done = `generation: 5, observedGeneration: 5, resourceTemplateGeneration: 2`
	compareFolds(t, []fold{
		{
			"a BroadcastJob runs while any cluster's does", `{apiVersion: apps.kruise.io/v1beta1, kind: BroadcastJob}`,
			[]string{
				`{phase: completed, desired: 2, succeeded: 2, startTime: "2026-01-01T00:00:01Z", completionTime: "2026-01-01T00:01:00Z", conditions: [{type: Complete, status: "True"}]}`,
				`{phase: running, desired: 3, active: 2, succeeded: 1, startTime: "2026-01-01T00:00:00Z"}`,
			},
			`{phase: running, desired: 5, active: 2, succeeded: 3, failed: 0, startTime: "2026-01-01T00:00:00Z"}`,
		},
		{
			"and while a cluster has not answered", `{apiVersion: apps.kruise.io/v1beta1, kind: BroadcastJob}`,
			[]string{`{phase: completed, desired: 2, succeeded: 2, completionTime: "2026-01-01T00:01:00Z", conditions: [{type: Complete, status: "True"}]}`, ``},
			`{phase: running, desired: 2, active: 0, succeeded: 2, failed: 0}`,
		},
		{
			"it is complete when it is everywhere", `{apiVersion: apps.kruise.io/v1alpha1, kind: BroadcastJob}`,
			[]string{
				`{phase: completed, desired: 2, succeeded: 2, startTime: "2026-01-01T00:00:01Z", completionTime: "2026-01-01T00:01:00Z", conditions: [{type: Complete, status: "True", reason: Done, lastTransitionTime: "2026-01-01T00:01:00Z"}]}`,
				`{phase: completed, desired: 1, succeeded: 1, startTime: "2026-01-01T00:00:02Z", completionTime: "2026-01-01T00:02:00Z", conditions: [{type: Complete, status: "True", lastTransitionTime: "2026-01-01T00:02:00Z"}]}`,
			},
			`{phase: completed, desired: 3, active: 0, succeeded: 3, failed: 0, startTime: "2026-01-01T00:00:01Z", completionTime: "2026-01-01T00:02:00Z",
				conditions: [{type: Complete, status: "True", reason: Done, message: "Complete in m1, m2", lastTransitionTime: "2026-01-01T00:02:00Z"}]}`,
		},
		{
			"it failed when it did anywhere", `{apiVersion: apps.kruise.io/v1beta1, kind: BroadcastJob}`,
			[]string{
				`{phase: running, desired: 2, active: 2}`,
				`{phase: failed, desired: 1, failed: 1, conditions: [{type: Failed, status: "True", reason: failed, lastTransitionTime: "2026-01-01T00:02:00Z"}]}`,
				`{phase: paused, desired: 1}`,
			},
			`{phase: failed, desired: 4, active: 2, succeeded: 0, failed: 1, conditions: [{type: Failed, status: "True", reason: failed, message: "Failed in m2", lastTransitionTime: "2026-01-01T00:02:00Z"}]}`,
		},
		{"in no cluster it has no phase",
			`{apiVersion: apps.kruise.io/v1beta1, kind: BroadcastJob, status: {phase: running, active: 3}}`, nil,
			`{active: 0, succeeded: 0, failed: 0, desired: 0}`},
		{
			"an AdvancedCronJob lists what is active by cluster", `{apiVersion: apps.kruise.io/v1beta1, kind: AdvancedCronJob}`,
			[]string{
				`{type: Job, active: [{name: b}, {name: a}], lastScheduleTime: "2026-01-01T00:05:00Z"}`,
				`{type: Job, active: [{name: c}], lastScheduleTime: "2026-01-01T00:10:00Z"}`, ``,
			},
			`{type: Job, active: [{name: b}, {name: a}, {name: c}], lastScheduleTime: "2026-01-01T00:10:00Z"}`,
		},
		{
			"types that differ are left out", `{apiVersion: apps.kruise.io/v1alpha1, kind: AdvancedCronJob}`,
			[]string{`{type: Job}`, `{type: BroadcastJob}`}, `{}`,
		},
		{
			"an ImagePullJob names the nodes that failed, and is over when it is everywhere",
			`{apiVersion: apps.kruise.io/v1beta1, kind: ImagePullJob}`,
			[]string{
				`{desired: 3, succeeded: 2, failed: 1, failedNodes: [n1], message: job is running, startTime: "2026-01-01T00:00:00Z"}`,
				`{desired: 1, succeeded: 1, startTime: "2026-01-01T00:00:01Z", completionTime: "2026-01-01T00:00:09Z", message: job has completed}`,
			},
			`{desired: 4, active: 0, succeeded: 3, failed: 1, failedNodes: [m1/n1], startTime: "2026-01-01T00:00:00Z", message: "m1: job is running; m2: job has completed"}`,
		},
		{
			"an ImageListPullJob the images", `{apiVersion: apps.kruise.io/v1beta1, kind: ImageListPullJob}`,
			[]string{
				`{desired: 2, completed: 2, succeeded: 1, failedImageStatuses: [{imagePullJob: j-1, name: nginx, message: no such tag}], completionTime: "2026-01-01T00:00:09Z"}`,
				`{desired: 2, completed: 2, succeeded: 2, completionTime: "2026-01-01T00:00:08Z"}`,
			},
			`{desired: 4, active: 0, completed: 4, succeeded: 3, failedImageStatuses: [{imagePullJob: j-1, name: nginx, message: "m1: no such tag"}], completionTime: "2026-01-01T00:00:09Z"}`,
		},
		{
			"a WorkloadSpread adds up subsets by name, in its own order",
			`{apiVersion: apps.kruise.io/v1beta1, kind: WorkloadSpread, metadata: {generation: 2}, spec: {subsets: [{name: b}, {name: a}]}}`,
			[]string{
				`{subsetStatuses: [{name: b, replicas: 2, missingReplicas: 1, conditions: [{type: Schedulable, status: "True"}]}, {name: a, replicas: 1, missingReplicas: -1}, {name: old, replicas: 1, missingReplicas: 0}], ` + done + `}`,
				`{subsetStatuses: [{name: b, replicas: 1, missingReplicas: 2, conditions: [{type: Schedulable, status: "False", message: no room}]}, {name: a, replicas: 4, missingReplicas: -1}], ` + done + `}`,
			},
			`{observedGeneration: 2, subsetStatuses: [
				{name: b, replicas: 3, missingReplicas: 3, conditions: [{type: Schedulable, status: "False", message: "m2: no room"}]},
				{name: a, replicas: 5, missingReplicas: -1}, {name: old, replicas: 1, missingReplicas: 0}]}`,
		},
		{
			"a PodUnavailableBudget adds up and names no pods",
			`{apiVersion: policy.kruise.io/v1beta1, kind: PodUnavailableBudget, metadata: {generation: 2}}`,
			[]string{`{unavailableAllowed: 1, currentAvailable: 3, desiredAvailable: 2, totalReplicas: 3, disruptedPods: {a: x}, ` + done + `}`, `{currentAvailable: 1, desiredAvailable: 1, totalReplicas: 2, ` + done + `}`},
			`{observedGeneration: 2, unavailableAllowed: 1, currentAvailable: 4, desiredAvailable: 3, totalReplicas: 5}`,
		},
		{
			"a PersistentPodState leaves pods to the clusters, whose names may meet",
			`{apiVersion: apps.kruise.io/v1beta1, kind: PersistentPodState, metadata: {generation: 2}}`,
			[]string{`{podStates: {db-0: {nodeName: n1}}, ` + done + `}`, `{podStates: {db-0: {nodeName: n2}}, ` + done + `}`},
			`{observedGeneration: 2}`,
		},
		{
			"a ResourceDistribution names clusters and namespaces",
			`{apiVersion: apps.kruise.io/v1beta1, kind: ResourceDistribution, metadata: {generation: 2}}`,
			[]string{
				`{desired: 3, succeeded: 2, failed: 1, conditions: [{type: ConflictOccurred, status: "True", failedNamespaces: [shop]}, {type: GetResourceFailed, status: "False"}], ` + done + `}`,
				`{desired: 3, succeeded: 3, conditions: [{type: ConflictOccurred, status: "False"}], ` + done + `}`,
			},
			`{observedGeneration: 2, desired: 6, succeeded: 5, failed: 1, conditions: [{type: ConflictOccurred, status: "True", message: m1, failedNamespaces: [m1/shop]}, {type: GetResourceFailed, status: "False", message: m1}]}`,
		},
		{
			"in the spelling of its version, whatever that of the member",
			`{apiVersion: apps.kruise.io/v1alpha1, kind: ResourceDistribution, metadata: {generation: 2}}`,
			[]string{`{desired: 3, failed: 1, conditions: [{type: ConflictOccurred, status: "True", failedNamespaces: [shop]}], ` + done + `}`},
			`{observedGeneration: 2, desired: 3, succeeded: 0, failed: 1, conditions: [{type: ConflictOccurred, status: "True", message: m1, failedNamespace: [m1/shop]}]}`,
		},
		{
			"a ContainerRecreateRequest says what the cluster with its pod does",
			`{apiVersion: apps.kruise.io/v1alpha1, kind: ContainerRecreateRequest}`,
			[]string{``, `{phase: Completed, completionTime: "2026-01-01T00:00:09Z", containerRecreateStates: [{name: app, phase: Succeeded}]}`, ``},
			`{phase: Completed, completionTime: "2026-01-01T00:00:09Z", containerRecreateStates: [{name: app, phase: Succeeded}]}`,
		},
		{
			"and where several have one of that name, what is worst",
			`{apiVersion: apps.kruise.io/v1alpha1, kind: ContainerRecreateRequest}`,
			[]string{
				`{phase: Completed, completionTime: "2026-01-01T00:00:09Z", containerRecreateStates: [{name: app, phase: Succeeded}]}`,
				`{phase: Recreating, message: busy, containerRecreateStates: [{name: app, phase: Recreating, message: stopping}]}`,
			},
			`{phase: Recreating, message: "m2: busy", containerRecreateStates: [{name: app, phase: Succeeded, message: m1}, {name: app, phase: Recreating, message: "m2: stopping"}]}`,
		},
		{
			"an EphemeralJob adds up", `{apiVersion: apps.kruise.io/v1alpha1, kind: EphemeralJob}`,
			[]string{
				`{phase: Succeeded, match: 2, succeeded: 2, startTime: "2026-01-01T00:00:00Z", completionTime: "2026-01-01T00:00:09Z", conditions: [{type: JobSucceeded, status: "True"}]}`,
				`{phase: Failed, match: 1, failed: 1, startTime: "2026-01-01T00:00:01Z", completionTime: "2026-01-01T00:00:08Z", conditions: [{type: JobFailed, status: "True", message: exit 1}]}`,
			},
			`{phase: Failed, match: 3, running: 0, succeeded: 2, waiting: 0, failed: 1, startTime: "2026-01-01T00:00:00Z", completionTime: "2026-01-01T00:00:09Z",
				conditions: [{type: JobFailed, status: "True", message: "m2: exit 1"}, {type: JobSucceeded, status: "True", message: m1}]}`,
		},
		{
			"a PodProbeMarker adds up", `{apiVersion: apps.kruise.io/v1alpha1, kind: PodProbeMarker, metadata: {generation: 2}}`,
			[]string{`{matchedPods: 2, ` + done + `}`, `{matchedPods: 3, ` + done + `}`},
			`{observedGeneration: 2, matchedPods: 5}`,
		},
		{
			"one that a cluster has not seen is not observed",
			`{apiVersion: apps.kruise.io/v1alpha1, kind: PodProbeMarker, metadata: {generation: 2}, status: {observedGeneration: 1}}`,
			[]string{`{matchedPods: 2, ` + done + `}`, ``}, `{observedGeneration: 1, matchedPods: 2}`,
		},
		{
			"a Kruise Rollout is as far as the last cluster",
			`{apiVersion: rollouts.kruise.io/v1beta1, kind: Rollout, metadata: {generation: 2}}`,
			[]string{
				`{phase: Healthy, message: done, currentStepIndex: 3, currentStepState: Completed, canaryStatus: {currentStepIndex: 3, nextStepIndex: -1, currentStepState: Completed, canaryReplicas: 0, rolloutHash: h, canaryRevision: r1}, conditions: [{type: Succeeded, status: "True"}, {type: Progressing, status: "False", reason: Completed}], ` + done + `}`,
				`{phase: Progressing, message: waiting, currentStepIndex: 1, currentStepState: StepPaused, canaryStatus: {currentStepIndex: 1, nextStepIndex: 2, currentStepState: StepPaused, canaryReplicas: 2, canaryReadyReplicas: 1, rolloutHash: h, canaryRevision: r2, lastUpdateTime: "2026-01-01T00:00:09Z"}, conditions: [{type: Progressing, status: "True", reason: InRolling}], ` + done + `}`,
			},
			`{observedGeneration: 2, phase: Progressing, message: "m1: done; m2: waiting", currentStepIndex: 1, currentStepState: StepPaused,
				canaryStatus: {currentStepIndex: 1, nextStepIndex: 2, currentStepState: StepPaused, canaryReplicas: 2, canaryReadyReplicas: 1, rolloutHash: h, lastUpdateTime: "2026-01-01T00:00:09Z"},
				conditions: [{type: Progressing, status: "True", reason: InRolling, message: m2}, {type: Succeeded, status: "True", message: m1}]}`,
		},
		{
			"or between blue and green", `{apiVersion: rollouts.kruise.io/v1beta1, kind: Rollout, metadata: {generation: 2}}`,
			[]string{`{phase: Progressing, blueGreenStatus: {currentStepIndex: 2, updatedReplicas: 2, updatedReadyReplicas: 2}, ` + done + `}`, `{phase: Terminating, blueGreenStatus: {currentStepIndex: 3, updatedReplicas: 1}, ` + done + `}`},
			`{observedGeneration: 2, phase: Terminating, blueGreenStatus: {currentStepIndex: 2, updatedReplicas: 3, updatedReadyReplicas: 2}}`,
		},
		{
			"a TrafficRouting", `{apiVersion: rollouts.kruise.io/v1alpha1, kind: TrafficRouting, metadata: {generation: 2}}`,
			[]string{`{phase: Healthy, ` + done + `}`, `{phase: Finalizing, message: cleaning up, ` + done + `}`},
			`{observedGeneration: 2, phase: Finalizing, message: "m2: cleaning up"}`,
		},
	})
}

func TestGatheredListIsLimited(t *testing.T) {
	var nodes []string
	for i := range 60 {
		nodes = append(nodes, fmt.Sprint("n", i))
	}
	status := `{desired: 60, failed: 60, failedNodes: [` + strings.Join(nodes, ", ") + `], message: failed}`
	var statuses []string
	for range 12 {
		statuses = append(statuses, status)
	}
	got := aggregated(t, read(t, `{apiVersion: apps.kruise.io/v1beta1, kind: ImagePullJob}`), items(t, statuses...))
	failed := list(got, "failedNodes")
	if len(failed) != 100 || failed[0] != "m1/n0" {
		t.Errorf("%d nodes, the first %v", len(failed), failed[0])
	}
	if m := text(got, "message"); !strings.HasSuffix(m, "; and 2 more") {
		t.Errorf("the message is %q", m)
	}
}

func TestReflectOfKruiseHelpers(t *testing.T) {
	for _, c := range []struct{ name, object, want string }{
		{
			"a WorkloadSpread not the pods that come and go",
			`{apiVersion: apps.kruise.io/v1beta1, kind: WorkloadSpread, metadata: {generation: 2}, status: {observedGeneration: 2, subsetStatuses: [{name: a, replicas: 1, creatingPods: {x: t}, deletingPods: {y: t}}], versionedSubsetStatuses: {r1: [{name: a}]}}}`,
			`{observedGeneration: 2, generation: 2, subsetStatuses: [{name: a, replicas: 1}]}`,
		},
		{
			"a PodUnavailableBudget neither",
			`{apiVersion: policy.kruise.io/v1alpha1, kind: PodUnavailableBudget, metadata: {generation: 2}, status: {observedGeneration: 2, currentAvailable: 1, disruptedPods: {a: t}, unavailablePods: {b: t}}}`,
			`{observedGeneration: 2, generation: 2, currentAvailable: 1}`,
		},
		{
			"a PersistentPodState all of it",
			`{apiVersion: apps.kruise.io/v1alpha1, kind: PersistentPodState, metadata: {generation: 2}, status: {observedGeneration: 2, podStates: {db-0: {nodeName: n}}}}`,
			`{observedGeneration: 2, generation: 2, podStates: {db-0: {nodeName: n}}}`,
		},
		{
			"a BroadcastJob, whose generation nobody observes, its status",
			`{apiVersion: apps.kruise.io/v1alpha1, kind: BroadcastJob, metadata: {generation: 2}, status: {phase: running, active: 1}}`,
			`{phase: running, active: 1}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := interpreter.Reflect(t.Context(), read(t, c.object))
			if want := tree(t, c.want); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("got %v\n%swant\n%s", err, show(got), show(want))
			}
		})
	}
}

// keeping is what is sent, what the member has, and what is sent because of that; without want nothing changes.
type keeping struct{ name, desired, observed, want string }

func compareKeeping(t *testing.T, cases []keeping) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			desired, observed := read(t, c.desired), read(t, `{apiVersion: v1, kind: Observed, `+c.observed[1:])
			wasDesired, wasObserved := desired.DeepCopy(), observed.DeepCopy()
			got, err := interpreter.Retain(t.Context(), desired, observed)
			if err != nil {
				t.Fatal(err)
			}
			if c.want == "" && got != desired {
				t.Errorf("got another object:\n%s", show(got.Object))
			} else if c.want != "" && !reflect.DeepEqual(got.Object, read(t, c.want).Object) {
				t.Errorf("got\n%swant\n%s", show(got.Object), show(read(t, c.want).Object))
			}
			if !reflect.DeepEqual(desired, wasDesired) || !reflect.DeepEqual(observed, wasObserved) {
				t.Error("an argument was changed")
			}
			if again, err := interpreter.Retain(t.Context(), got, observed); err != nil ||
				!reflect.DeepEqual(again.Object, got.Object) {
				t.Errorf("a second time gives %v\n%s", err, show(again.Object))
			}
		})
	}
}

func TestRetainOfKruiseJobs(t *testing.T) {
	compareKeeping(t, []keeping{
		{
			"a ContainerRecreateRequest is the member's, who filled in what it knows of the pod",
			`{apiVersion: apps.kruise.io/v1alpha1, kind: ContainerRecreateRequest, metadata: {labels: {app: x, crr.apps.kruise.io/pod-uid: stale}}, spec: {podName: p, containers: [{name: app}]}}`,
			`{metadata: {labels: {app: y, crr.apps.kruise.io/pod-uid: u, crr.apps.kruise.io/node-name: node-1}}, spec: {podName: p, containers: [{name: app, ports: [{containerPort: 80}], statusContext: {containerID: c}}]}}`,
			`{apiVersion: apps.kruise.io/v1alpha1, kind: ContainerRecreateRequest, metadata: {labels: {app: x, crr.apps.kruise.io/pod-uid: u, crr.apps.kruise.io/node-name: node-1}}, spec: {podName: p, containers: [{name: app, ports: [{containerPort: 80}], statusContext: {containerID: c}}]}}`,
		},
		{
			"the label of an active one goes when its controller takes it off",
			`{apiVersion: apps.kruise.io/v1beta1, kind: ContainerRecreateRequest, metadata: {labels: {crr.apps.kruise.io/active: "true"}}, spec: {podName: p}}`,
			`{spec: {podName: p}}`,
			`{apiVersion: apps.kruise.io/v1beta1, kind: ContainerRecreateRequest, metadata: {}, spec: {podName: p}}`,
		},
		{
			"an ImagePullJob its pull secrets, which may not change",
			`{apiVersion: apps.kruise.io/v1beta1, kind: ImagePullJob, spec: {image: v2, pullSecrets: [b]}}`,
			`{spec: {image: v1, pullSecrets: [a]}}`,
			`{apiVersion: apps.kruise.io/v1beta1, kind: ImagePullJob, metadata: {annotations: {argosy.io/immutable-fields: "pullSecrets are unchanged, but the template has others"}}, spec: {image: v2, pullSecrets: [a]}}`,
		},
		{
			"that it has none, too",
			`{apiVersion: apps.kruise.io/v1beta1, kind: ImageListPullJob, spec: {images: [v2], pullSecrets: [b]}}`,
			`{spec: {images: [v1]}}`,
			`{apiVersion: apps.kruise.io/v1beta1, kind: ImageListPullJob, metadata: {annotations: {argosy.io/immutable-fields: "pullSecrets are unchanged, but the template has others"}}, spec: {images: [v2]}}`,
		},
		{
			"one that changes something else is not marked",
			`{apiVersion: apps.kruise.io/v1beta1, kind: ImagePullJob, spec: {image: v2, pullSecrets: [a]}}`,
			`{spec: {image: v1, pullSecrets: [a]}}`, ``,
		},
		{
			"a BroadcastJob nothing: its labels and its pause are the template's",
			`{apiVersion: apps.kruise.io/v1beta1, kind: BroadcastJob, spec: {paused: false, template: {metadata: {labels: {app: x}}}}}`,
			`{spec: {paused: true, template: {metadata: {labels: {app: x, controller-uid: u}}}}}`, ``,
		},
		{
			"a Kruise Rollout nothing: what it writes it writes elsewhere",
			`{apiVersion: rollouts.kruise.io/v1beta1, kind: Rollout, spec: {strategy: {paused: true}}}`,
			`{spec: {strategy: {paused: false}}}`, ``,
		},
	})
}

// needs are dependencies as "namespace Kind/name, …".
func needs(t *testing.T, object string) string {
	t.Helper()
	deps, err := interpreter.Dependencies(t.Context(), read(t, object))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, d := range deps {
		out = append(out, strings.TrimPrefix(d.Namespace+" "+d.Kind+"/"+d.Name, " "))
	}
	return strings.Join(out, ", ")
}

func TestKruiseJobDependencies(t *testing.T) {
	const pods = `template: {spec: {serviceAccountName: bot, volumes: [{name: c, configMap: {name: conf}}]}}`
	for _, c := range []struct{ name, object, want string }{
		{"a BroadcastJob what its pods do",
			`{apiVersion: apps.kruise.io/v1beta1, kind: BroadcastJob, metadata: {namespace: ns}, spec: {` + pods + `}}`,
			"ns ConfigMap/conf, ns ServiceAccount/bot"},
		{"an AdvancedCronJob what the pods of its Jobs do",
			`{apiVersion: apps.kruise.io/v1alpha1, kind: AdvancedCronJob, metadata: {namespace: ns}, spec: {template: {jobTemplate: {spec: {` + pods + `}}}}}`, "ns ConfigMap/conf, ns ServiceAccount/bot"},
		{"or those of its BroadcastJobs",
			`{apiVersion: apps.kruise.io/v1beta1, kind: AdvancedCronJob, metadata: {namespace: ns}, spec: {template: {broadcastJobTemplate: {spec: {` + pods + `}}}}}`, "ns ConfigMap/conf, ns ServiceAccount/bot"},
		{"or the secrets of the images that it pulls",
			`{apiVersion: apps.kruise.io/v1beta1, kind: AdvancedCronJob, metadata: {namespace: ns}, spec: {template: {imageListPullJobTemplate: {spec: {pullSecrets: [b, a]}}}}}`, "ns Secret/a, ns Secret/b"},
		{"an ImagePullJob its secrets", `{apiVersion: apps.kruise.io/v1alpha1, kind: ImagePullJob, metadata: {namespace: ns}, spec: {pullSecrets: [a, a]}}`, "ns Secret/a"},
		{"an ImageListPullJob its secrets",
			`{apiVersion: apps.kruise.io/v1beta1, kind: ImageListPullJob, metadata: {namespace: ns}, spec: {pullSecrets: [a]}}`,
			"ns Secret/a"},
		{"an EphemeralJob what its containers name",
			`{apiVersion: apps.kruise.io/v1alpha1, kind: EphemeralJob, metadata: {namespace: ns}, spec: {template: {ephemeralContainers: [{name: debug, env: [{name: A, valueFrom: {secretKeyRef: {name: s, key: k}}}]}]}}}`, "ns Secret/s"},
		{"a ContainerRecreateRequest nothing",
			`{apiVersion: apps.kruise.io/v1alpha1, kind: ContainerRecreateRequest, metadata: {namespace: ns}, spec: {podName: p}}`, ""},
		{"a WorkloadSpread nothing: it follows its workload",
			`{apiVersion: apps.kruise.io/v1alpha1, kind: WorkloadSpread, metadata: {namespace: ns}, spec: {targetRef: {kind: CloneSet, name: web}}}`, ""},
		{"a ResourceDistribution nothing",
			`{apiVersion: apps.kruise.io/v1beta1, kind: ResourceDistribution, spec: {resource: {kind: Secret, metadata: {name: s}}}}`, ""},
	} {
		if got := needs(t, c.object); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}

func TestJobsAndHelpersAreNotDivided(t *testing.T) {
	for _, kind := range []string{
		"apps.kruise.io/v1alpha1, kind: BroadcastJob", "apps.kruise.io/v1alpha1, kind: AdvancedCronJob",
		"apps.kruise.io/v1beta1, kind: ImagePullJob",
		"apps.kruise.io/v1beta1, kind: ImageListPullJob", "apps.kruise.io/v1alpha1, kind: WorkloadSpread",
		"policy.kruise.io/v1alpha1, kind: PodUnavailableBudget",
		"apps.kruise.io/v1alpha1, kind: PersistentPodState", "apps.kruise.io/v1alpha1, kind: ResourceDistribution",
		"apps.kruise.io/v1alpha1, kind: ContainerRecreateRequest", "apps.kruise.io/v1alpha1, kind: EphemeralJob",
		"apps.kruise.io/v1alpha1, kind: PodProbeMarker",
		"rollouts.kruise.io/v1beta1, kind: Rollout", "argoproj.io/v1alpha1, kind: Workflow",
		"argoproj.io/v1alpha1, kind: CronWorkflow",
	} {
		obj := read(t, `{apiVersion: `+kind+`, spec: {parallelism: "10%", replicas: 3}}`)
		if _, _, workload, err := interpreter.Replicas(t.Context(), obj); workload || err != nil {
			t.Errorf("%s is a workload, %v", kind, err)
		}
		if got, err := interpreter.Revise(t.Context(), obj, 7); got != obj || err != nil {
			t.Errorf("%s was revised, %v", kind, err)
		}
	}
}
