package builtin

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

func TestHealthOfArgoKinds(t *testing.T) {
	judge(t, map[string][]verdict{
		"Workflow argoproj.io/v1alpha1": {
			{"not looked at yet", `{}`, ``, progressing},
			{"looked at, without a phase", `{}`, `{phase: ""}`, progressing},
			{"pending", `{}`, `{phase: Pending}`, progressing},
			{"running", `{}`, `{phase: Running, nodes: {a: {type: Pod, phase: Running}}}`, progressing},
			{"suspended by its owner", `{suspend: true}`, `{phase: Running}`, suspended},
			{"suspended before it began", `{suspend: true}`, ``, suspended},
			{"waiting at a step for approval", `{}`, `{phase: Running, nodes: {a: {type: Suspend, phase: Running}}}`, suspended},
			{"past that step", `{}`, `{phase: Running, nodes: {a: {type: Suspend, phase: Succeeded}}}`, progressing},
			{"succeeded", `{}`, `{phase: Succeeded}`, healthy},
			{"succeeded though it says suspend", `{suspend: true}`, `{phase: Succeeded}`, healthy},
			{"failed", `{}`, `{phase: Failed}`, degraded},
			{"in error", `{}`, `{phase: Error}`, degraded},
			{"of a spec that is wrong", `{}`, `{phase: "", conditions: [{type: SpecError, status: "True"}]}`, degraded},
		},
		"CronWorkflow argoproj.io/v1alpha1": {
			{"not looked at yet", `{}`, ``, healthy},
			{"active", `{}`, `{phase: Active, active: [{name: a}], failed: 3}`, healthy},
			{"suspended", `{suspend: true}`, `{phase: Active}`, suspended},
			{"stopped by its own strategy", `{}`, `{phase: Stopped}`, suspended},
			{"of a spec that is wrong", `{suspend: true}`, `{conditions: [{type: SpecError, status: "True"}]}`, degraded},
			{"that could not submit", `{}`, `{conditions: [{type: SubmissionError, status: "True"}]}`, degraded},
			{"that could not submit once", `{}`, `{conditions: [{type: SubmissionError, status: "False"}]}`, healthy},
		},
		"WorkflowTemplate argoproj.io/v1alpha1":        {{"being there", `{}`, ``, healthy}},
		"ClusterWorkflowTemplate argoproj.io/v1alpha1": {{"being there", `{}`, ``, healthy}},
		"Rollout argoproj.io/v1alpha1": {
			{"not seen yet", `{}`, `{observedGeneration: "1", phase: Healthy}`, progressing},
			{"no status yet", `{}`, ``, progressing},
			{"healthy", `{}`, `{observedGeneration: "2", phase: Healthy}`, healthy},
			{"on its way", `{}`, `{observedGeneration: "2", phase: Progressing}`, progressing},
			{"a canary that waits", `{}`, `{observedGeneration: "2", phase: Paused}`, suspended},
			{"paused by its owner before it says so", `{paused: true}`, `{observedGeneration: "2", phase: Progressing}`,
				suspended},
			{"degraded", `{}`, `{observedGeneration: "2", phase: Degraded}`, degraded},
		},
	})
}

func TestAggregateOfArgoKinds(t *testing.T) {
	const done = `generation: 5, observedGeneration: "5", resourceTemplateGeneration: 2`
	compareFolds(t, []fold{
		{
			"a Workflow says what its cluster does",
			`{apiVersion: argoproj.io/v1alpha1, kind: Workflow, status: {phase: Pending, nodes: {a: {}}}}`,
			[]string{`{phase: Running, progress: 1/3, startedAt: "2026-01-01T00:00:00Z", resourcesDuration: {cpu: 3}, outputs: {parameters: [{name: a, value: b}]}, conditions: [{type: PodRunning, status: "True"}]}`},
			`{phase: Running, progress: 1/3, startedAt: "2026-01-01T00:00:00Z", resourcesDuration: {cpu: 3}, outputs: {parameters: [{name: a, value: b}]}, conditions: [{type: PodRunning, status: "True"}]}`,
		},
		{
			"in several clusters it fails when it does in one", `{apiVersion: argoproj.io/v1alpha1, kind: Workflow}`,
			[]string{
				`{phase: Succeeded, progress: 3/3, startedAt: "2026-01-01T00:00:01Z", finishedAt: "2026-01-01T00:01:00Z", resourcesDuration: {cpu: 3, memory: 1}, conditions: [{type: PodRunning, status: "False"}, {type: Completed, status: "True"}]}`,
				`{phase: Failed, message: child failed, progress: 1/3, startedAt: "2026-01-01T00:00:00Z", finishedAt: "2026-01-01T00:02:00Z", resourcesDuration: {cpu: 2}, conditions: [{type: PodRunning, status: "False"}, {type: Completed, status: "True"}]}`,
			},
			`{phase: Failed, message: "m2: child failed", progress: 4/6, startedAt: "2026-01-01T00:00:00Z", finishedAt: "2026-01-01T00:02:00Z", resourcesDuration: {cpu: 5, memory: 1},
				conditions: [{type: Completed, status: "True", message: m1; m2}, {type: PodRunning, status: "False", message: m1; m2}]}`,
		},
		{
			"it succeeds when it does in all", `{apiVersion: argoproj.io/v1alpha1, kind: Workflow}`,
			[]string{`{phase: Succeeded, progress: 3/3, finishedAt: "2026-01-01T00:01:00Z"}`,
				`{phase: Succeeded, progress: 3/3, finishedAt: "2026-01-01T00:00:30Z"}`},
			`{phase: Succeeded, progress: 6/6, finishedAt: "2026-01-01T00:01:00Z"}`,
		},
		{
			"a cluster that has not begun holds its end back", `{apiVersion: argoproj.io/v1alpha1, kind: Workflow}`,
			[]string{`{phase: Succeeded, progress: 3/3, finishedAt: "2026-01-01T00:01:00Z"}`, ``}, `{progress: 3/3}`,
		},
		{
			"a Workflow that has finished keeps its end when it is reported to move",
			`{apiVersion: argoproj.io/v1alpha1, kind: Workflow, status: {phase: Succeeded, progress: 3/3}}`,
			[]string{``}, `{phase: Succeeded, progress: 3/3}`,
		},
		{
			"one that has not forgets the cluster that it was in",
			`{apiVersion: argoproj.io/v1alpha1, kind: Workflow, status: {phase: Running, progress: 1/3}}`,
			[]string{``}, `{}`,
		},
		{
			"a CronWorkflow counts, and lists what is active", `{apiVersion: argoproj.io/v1alpha1, kind: CronWorkflow}`,
			[]string{
				`{phase: Stopped, succeeded: 2, failed: 1, lastScheduledTime: "2026-01-01T00:05:00Z", conditions: [{type: SubmissionError, status: "True", message: no quota}]}`,
				`{phase: Active, active: [{name: a}], succeeded: 1, lastScheduledTime: "2026-01-01T00:10:00Z"}`,
			},
			`{phase: Active, active: [{name: a}], succeeded: 3, failed: 1, lastScheduledTime: "2026-01-01T00:10:00Z", conditions: [{type: SubmissionError, status: "True", message: "m1: no quota"}]}`,
		},
		{
			"an Argo Rollout adds up, with its generation as text",
			`{apiVersion: argoproj.io/v1alpha1, kind: Rollout, metadata: {generation: 2}, spec: {replicas: 5}}`,
			[]string{
				`{phase: Healthy, replicas: 2, readyReplicas: 2, updatedReplicas: 2, availableReplicas: 2, HPAReplicas: 2, selector: app=web, currentPodHash: h, stableRS: h, currentStepIndex: 4, ` + done + `}`,
				`{phase: Paused, message: CanaryPauseStep, replicas: 3, readyReplicas: 3, updatedReplicas: 1, availableReplicas: 3, HPAReplicas: 3, selector: app=web, currentPodHash: h, stableRS: g, currentStepIndex: 1, conditions: [{type: Paused, status: "True", reason: RolloutPaused, message: paused}], ` + done + `}`,
			},
			`{observedGeneration: "2", phase: Paused, message: "m2: CanaryPauseStep", replicas: 5, readyReplicas: 5, updatedReplicas: 3, availableReplicas: 5, HPAReplicas: 5, selector: app=web, currentPodHash: h, currentStepIndex: 1,
				conditions: [{type: Paused, status: "True", reason: RolloutPaused, message: "m2: paused"}]}`,
		},
		{
			"one that a cluster has not seen is not observed",
			`{apiVersion: argoproj.io/v1alpha1, kind: Rollout, metadata: {generation: 2}, spec: {replicas: 5}, status: {observedGeneration: "1"}}`,
			[]string{`{phase: Healthy, replicas: 2, generation: 5, observedGeneration: "4", resourceTemplateGeneration: 2}`},
			`{observedGeneration: "1", phase: Healthy, replicas: 2, readyReplicas: 0, updatedReplicas: 0, availableReplicas: 0, HPAReplicas: 0}`,
		},
	})
}

func TestWorkflowWithoutReportIsUnchanged(t *testing.T) {
	for _, kind := range []string{"Workflow", "CronWorkflow", "WorkflowTemplate"} {
		template := read(t, `{apiVersion: argoproj.io/v1alpha1, kind: `+kind+`, metadata: {name: a}, spec: {}}`)
		for _, reports := range [][]workv1alpha2.AggregatedStatusItem{nil, items(t, ``)} {
			if got, err := interpreter.Aggregate(t.Context(), template, reports); got != template || err != nil {
				t.Errorf("%s: got %v, %v", kind, got, err)
			}
		}
	}
}

// A fleet that waits for somebody's approval must not look like one that fails.
func TestPausedWorkloadIsNeverUnhealthy(t *testing.T) {
	for _, object := range []string{
		`{apiVersion: argoproj.io/v1alpha1, kind: Workflow, spec: {suspend: true}}`,
		`{apiVersion: argoproj.io/v1alpha1, kind: Rollout, status: {phase: Paused}}`,
		`{apiVersion: rollouts.kruise.io/v1beta1, kind: Rollout, status: {phase: Progressing, currentStepState: StepPaused}}`,
		`{apiVersion: apps.kruise.io/v1beta1, kind: BroadcastJob, spec: {paused: true}, status: {phase: paused, failed: 1}}`,
	} {
		if h, err := interpreter.Health(t.Context(), read(t, object)); err != nil ||
			h.Karmada() != workv1alpha1.ResourceHealthy {
			t.Errorf("%s: %s, %v", object, h, err)
		}
	}
}

func TestReflectOmitsGrowingWorkflowFields(t *testing.T) {
	object := `{apiVersion: argoproj.io/v1alpha1, kind: Workflow, metadata: {generation: 7}, status: {phase: Succeeded, startedAt: "2026-01-01T00:00:00Z", finishedAt: "2026-01-01T00:01:00Z",
		progress: 2/2, estimatedDuration: 9, message: done, conditions: [{type: Completed, status: "True"}], resourcesDuration: {cpu: 1}, nodes: {a: {}}, storedTemplates: {b: {}}, compressedNodes: x,
		outputs: {artifacts: [{name: big}], parameters: [{name: tag, value: v1}, {name: log, value: ` + strings.Repeat("x", 2000) + `}, {name: file, valueFrom: {path: /a}}]}}}`
	got, err := interpreter.Reflect(t.Context(), read(t, object))
	want := tree(t, `{phase: Succeeded, startedAt: "2026-01-01T00:00:00Z", finishedAt: "2026-01-01T00:01:00Z", progress: 2/2, message: done,
		conditions: [{type: Completed, status: "True"}], resourcesDuration: {cpu: 1}, outputs: {parameters: [{name: tag, value: v1}]}}`)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v\n%swant\n%s", err, show(got), show(want))
	}
	// One field that they cannot read hides all Workflows from Argo's clients.
	broken := `{apiVersion: argoproj.io/v1alpha1, kind: Workflow, status: {phase: Running, startedAt: 5, finishedAt: yesterday, progress: [1], message: {a: b}, conditions: {type: Completed}, resourcesDuration: {cpu: much}}}`
	if got, err := interpreter.Reflect(t.Context(), read(t, broken)); err != nil ||
		!reflect.DeepEqual(got, tree(t, `{phase: Running}`)) {
		t.Errorf("of what cannot be read it reports %v, %v", show(got), err)
	}
	if got, err := interpreter.Reflect(t.Context(),
		read(t, `{apiVersion: argoproj.io/v1alpha1, kind: Workflow}`)); got != nil || err != nil {
		t.Errorf("without a status: %v, %v", got, err)
	}
}

func TestRetainOfArgoKinds(t *testing.T) {
	const suspends = `metadata: {annotations: {argosy.io/template-suspends: "true"}}`
	compareKeeping(t, []keeping{
		{
			"a Workflow that was resumed in the member stays so", `{apiVersion: argoproj.io/v1alpha1, kind: Workflow, ` +
				suspends + `, spec: {suspend: true}}`,
			`{` + suspends + `, spec: {}}`,
			`{apiVersion: argoproj.io/v1alpha1, kind: Workflow, ` + suspends + `, spec: {}}`,
		},
		{
			"one that was suspended there too", `{apiVersion: argoproj.io/v1alpha1, kind: Workflow, spec: {entrypoint: main}}`,
			`{spec: {suspend: true}}`,
			`{apiVersion: argoproj.io/v1alpha1, kind: Workflow, spec: {entrypoint: main, suspend: true}}`,
		},
		{
			"until the hub resumes it", `{apiVersion: argoproj.io/v1alpha1, kind: Workflow, spec: {entrypoint: main}}`,
			`{` + suspends + `, spec: {suspend: true}}`,
			`{apiVersion: argoproj.io/v1alpha1, kind: Workflow, spec: {entrypoint: main, suspend: false}}`,
		},
		{
			"or suspends it", `{apiVersion: argoproj.io/v1alpha1, kind: Workflow, ` + suspends + `, spec: {suspend: true}}`,
			`{spec: {}}`, ``,
		},
		{"where both agree there is nothing to keep", `{apiVersion: argoproj.io/v1alpha1, kind: Workflow, ` + suspends +
			`, spec: {suspend: true}}`, `{` + suspends + `, spec: {suspend: true}}`, ``},
		{"nor where neither says anything", `{apiVersion: argoproj.io/v1alpha1, kind: Workflow, spec: {}}`, `{spec: {}}`, ``},
		{
			"a Workflow that was stopped in the member does not go on",
			`{apiVersion: argoproj.io/v1alpha1, kind: Workflow, spec: {entrypoint: main}}`, `{spec: {shutdown: Stop}}`,
			`{apiVersion: argoproj.io/v1alpha1, kind: Workflow, spec: {entrypoint: main, shutdown: Stop}}`,
		},
		{"one that the hub stops is stopped as the hub says",
			`{apiVersion: argoproj.io/v1alpha1, kind: Workflow, spec: {shutdown: Terminate}}`, `{spec: {shutdown: Stop}}`, ``},
		{"status, marks and defaults are not sent, so nothing has to be kept of them",
			`{apiVersion: argoproj.io/v1alpha1, kind: Workflow, spec: {}}`,
			`{metadata: {labels: {workflows.argoproj.io/completed: "true"}}, spec: {podGC: {strategy: x}}, status: {phase: Running}}`, ``},
		{
			"a CronWorkflow that was suspended in the member",
			`{apiVersion: argoproj.io/v1alpha1, kind: CronWorkflow, spec: {schedule: "* * * * *"}}`, `{spec: {suspend: true}}`,
			`{apiVersion: argoproj.io/v1alpha1, kind: CronWorkflow, spec: {schedule: "* * * * *", suspend: true}}`,
		},
		{
			"an Argo Rollout its replicas where they are left to it",
			`{apiVersion: argoproj.io/v1alpha1, kind: Rollout, metadata: {labels: {resourcetemplate.karmada.io/retain-replicas: "true"}}, spec: {replicas: 2}}`, `{spec: {replicas: 7}}`,
			`{apiVersion: argoproj.io/v1alpha1, kind: Rollout, metadata: {labels: {resourcetemplate.karmada.io/retain-replicas: "true"}}, spec: {replicas: 7}}`,
		},
	})
}

const workflowSpec = `
  entrypoint: main
  serviceAccountName: builder
  executor: {serviceAccountName: executor}
  imagePullSecrets: [{name: registry}]
  volumes: [{name: work, persistentVolumeClaim: {claimName: work}}, {name: own, persistentVolumeClaim: {claimName: build-scratch}}, {name: s, secret: {secretName: mounted}}, {name: p, projected: {sources: [{configMap: {name: projected}}]}}]
  volumeClaimTemplates: [{metadata: {name: scratch}}]
  workflowTemplateRef: {name: base}
  artifactRepositoryRef: {key: x}
  synchronization: {semaphores: [{configMapKeyRef: {name: limits, key: x}}], mutexes: [{name: one}]}
  arguments: {parameters: [{name: a, valueFrom: {configMapKeyRef: {name: arguments, key: x}}}], artifacts: [{name: s, git: {sshPrivateKeySecret: {name: git, key: k}}}]}
  onExit: notify
  templates:
  - name: main
    steps: [[{name: a, templateRef: {name: shared, template: t, clusterScope: true}}, {name: b, templateRef: {name: steps, template: t}}]]
  - name: graph
    dag: {tasks: [{name: a, templateRef: {name: dag, template: t}, hooks: {exit: {templateRef: {name: hook, template: t}}}}, {name: b, templateRef: {name: "{{inputs.parameters.t}}"}}]}
  - name: build
    serviceAccountName: "{{inputs.parameters.account}}"
    nodeSelector: {disk: ssd}
    memoize: {cache: {configMap: {name: cache}}}
    container: {env: [{name: A, valueFrom: {secretKeyRef: {name: env, key: k}}}, {name: B, valueFrom: {configMapKeyRef: {name: "{{workflow.parameters.b}}", key: k}}}], envFrom: [{configMapRef: {name: environment}}], resources: {requests: {cpu: "1"}, limits: {memory: 1Gi}}}
    sidecars: [{name: docker, resources: {requests: {cpu: 500m, memory: "{{inputs.parameters.memory}}"}}}]
    outputs: {artifacts: [{name: o, s3: {accessKeySecret: {name: s3, key: a}, secretKeySecret: {name: s3, key: b}, caSecret: {name: ca, key: c}}}]}
  - name: a-template-with-a-name-of-more-than-thirty-two-letters
    script: {source: x, resources: {requests: {cpu: 100m}}}
  - name: notify
    http: {headers: [{valueFrom: {secretKeyRef: {name: token, key: k}}}]}
  - name: odd
    plugin: {their: {secretKeyRef: {name: theirs, key: k}}}
`

func indented(spec string) string { return strings.ReplaceAll(spec, "\n", "\n  ") }

func TestWorkflowDependencies(t *testing.T) {
	all := []string{
		"ClusterWorkflowTemplate/shared",
		"ci WorkflowTemplate/base", "ci WorkflowTemplate/dag", "ci WorkflowTemplate/hook", "ci WorkflowTemplate/steps",
		"ci ConfigMap/arguments", "ci ConfigMap/artifact-repositories", "ci ConfigMap/cache", "ci ConfigMap/environment",
		"ci ConfigMap/limits", "ci ConfigMap/projected",
		"ci PersistentVolumeClaim/work",
		"ci Secret/ca", "ci Secret/env", "ci Secret/git", "ci Secret/mounted", "ci Secret/registry", "ci Secret/s3",
		"ci Secret/token",
		"ci ServiceAccount/builder", "ci ServiceAccount/executor",
	}
	for kind, spec := range map[string]string{
		"Workflow":         "spec:" + workflowSpec,
		"WorkflowTemplate": "spec:" + workflowSpec,
		"CronWorkflow":     "spec:\n  workflowSpec:" + indented(workflowSpec),
	} {
		got := needs(t, "apiVersion: argoproj.io/v1alpha1\nkind: "+kind+"\nmetadata: {namespace: ci, name: build}\n"+spec)
		if want := strings.Join(all, ", "); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", kind, got, want)
		}
	}
	if got := needs(t, "apiVersion: argoproj.io/v1alpha1\nkind: ClusterWorkflowTemplate\nmetadata: {name: build}\nspec:"+
		workflowSpec); got != "ClusterWorkflowTemplate/shared" {
		t.Errorf("one that is in no namespace can name only what is in none: got %s", got)
	}
	if got := needs(t, `{apiVersion: argoproj.io/v1alpha1, kind: Workflow, metadata: {namespace: ci}, spec: {serviceAccountName: default, artifactRepositoryRef: {configMap: mine}}}`); got != "ci ConfigMap/mine" {
		t.Errorf("got %s", got)
	}
}

func TestWorkflowWithArtifactsNeedsDefaultRepository(t *testing.T) {
	const repository = "ci ConfigMap/artifact-repositories"
	for spec, want := range map[string]string{
		"{templates: [{outputs: {artifacts: [{name: a, path: /a}]}}]}": repository,
		"{templates: [{archiveLocation: {archiveLogs: true}}]}":        repository,
		"{archiveLogs: true}":  repository,
		"{archiveLogs: false}": "",
		"{templates: [{outputs: {artifacts: [{name: a, path: /a, s3: {key: x}}]}}]}":                       "",
		"{templates: [{steps: [[{arguments: {artifacts: [{name: a, from: '{{steps.x}}'}]}}]]}]}":           "",
		"{artifactRepositoryRef: {configMap: mine}, templates: [{outputs: {artifacts: [{name: a}]}}]}":     "ci ConfigMap/mine",
		"{templates: [{container: {image: app}, inputs: {parameters: [{name: artifacts, value: none}]}}]}": "",
	} {
		if got := needs(t, `{apiVersion: argoproj.io/v1alpha1, kind: Workflow, metadata: {namespace: ci, name: w}, spec: `+
			spec+`}`); got != want {
			t.Errorf("%s needs %q, want %q", spec, got, want)
		}
	}
}

func TestArgoRolloutDependencies(t *testing.T) {
	got := needs(t, `{apiVersion: argoproj.io/v1alpha1, kind: Rollout, metadata: {namespace: ns}, spec: {workloadRef: {apiVersion: apps/v1, kind: Deployment, name: web}, template: {spec: {volumes: [{name: c, configMap: {name: conf}}]}},
		strategy: {canary: {canaryService: canary, stableService: stable, analysis: {templates: [{templateName: errors}]}, steps: [{setWeight: 20}, {analysis: {templates: [{templateName: latency, clusterScope: true}]}}]},
		blueGreen: {activeService: active, prePromotionAnalysis: {templates: [{templateName: smoke}]}}}}}`)
	want := "ns Deployment/web, ns AnalysisTemplate/errors, ns AnalysisTemplate/smoke, ClusterAnalysisTemplate/latency, ns ConfigMap/conf, ns Service/active, ns Service/canary, ns Service/stable"
	for _, one := range strings.Split(want, ", ") {
		if !strings.Contains(got, one) {
			t.Errorf("%s is missing in %s", one, got)
		}
	}
	if len(strings.Split(got, ", ")) != len(strings.Split(want, ", ")) {
		t.Errorf("got %s", got)
	}
}

func TestWorkflowComponents(t *testing.T) {
	for kind, spec := range map[string]string{"Workflow": "spec:" + workflowSpec,
		"CronWorkflow": "spec:\n  workflowSpec:" + indented(workflowSpec)} {
		got, err := interpreter.Components(t.Context(),
			read(t, "apiVersion: argoproj.io/v1alpha1\nkind: "+kind+"\nmetadata: {namespace: ci, name: build}\n"+spec))
		if err != nil {
			t.Fatal(err)
		}
		var output []string
		for _, c := range got {
			if len(c.Name) > 32 {
				t.Errorf("%s has %d letters", c.Name, len(c.Name))
			}
			r := c.ReplicaRequirements
			output = append(output, fmt.Sprintf("%s %d×%s/%s %v", c.Name[:5], c.Replicas, r.ResourceRequest.Cpu(),
				r.ResourceRequest.Memory(), r.NodeClaim != nil))
		}
		if s := strings.Join(output, ", "); s != "a-tem 1×100m/0 false, build 1×1500m/1Gi true" {
			t.Errorf("%s: got %s", kind, s)
		}
	}
}

func TestAnArgoRolloutIsDivided(t *testing.T) {
	obj := read(t, `{apiVersion: argoproj.io/v1alpha1, kind: Rollout, metadata: {namespace: ns}, spec: {replicas: 4, template: {spec: {containers: [{resources: {requests: {cpu: 100m}}}]}}, strategy: {canary: {steps: [{setWeight: 20}]}}}}`)
	n, req, workload, err := interpreter.Replicas(t.Context(), obj)
	if err != nil || !workload || n != 4 || req.ResourceRequest.Cpu().String() != "100m" {
		t.Errorf("got %d, %+v, %v, %v", n, req, workload, err)
	}
	revised, err := interpreter.Revise(t.Context(), obj, 3)
	if err != nil || number(revised.Object, "spec", "replicas") != 3 ||
		!reflect.DeepEqual(field(revised.Object, "spec", "strategy"), field(obj.Object, "spec", "strategy")) {
		t.Errorf("revised to %v, %v", revised, err)
	}
	if n, _, workload, err := interpreter.Replicas(t.Context(),
		read(t, `{apiVersion: argoproj.io/v1alpha1, kind: Rollout, spec: {workloadRef: {kind: Deployment, name: web}}}`)); n != 1 || !workload || err != nil {
		t.Errorf("by a workload of others: got %d, %v, %v", n, workload, err)
	}
}
