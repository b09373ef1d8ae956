package builtin

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

func TestAggregate(t *testing.T) {
	const done = `generation: 5, observedGeneration: 5, resourceTemplateGeneration: 2`
	checkAggregate(t, []aggregateCase{
		{
			"a Deployment adds up, and is observed when every cluster has observed it",
			`{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 2}, spec: {replicas: 5}}`,
			[]string{`{replicas: 2, updatedReplicas: 2, readyReplicas: 2, availableReplicas: 2, ` + done + `}`,
				`{replicas: 3, updatedReplicas: 3, readyReplicas: 2, availableReplicas: 2, unavailableReplicas: 1, ` + done + `}`},
			`{observedGeneration: 2, replicas: 5, updatedReplicas: 5, readyReplicas: 4, availableReplicas: 4, unavailableReplicas: 1}`,
		},
		{
			"a cluster that has an older template holds the observation back",
			`{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 3}, status: {observedGeneration: 2}}`,
			[]string{`{replicas: 2, generation: 5, observedGeneration: 5, resourceTemplateGeneration: 3}`, `{replicas: 2, ` +
				done + `}`},
			`{observedGeneration: 2, replicas: 4, updatedReplicas: 0, readyReplicas: 0, availableReplicas: 0, unavailableReplicas: 0}`,
		},
		{
			"so does one whose own controller is behind",
			`{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 2}, status: {observedGeneration: 1}}`,
			[]string{`{` + done + `}`, `{generation: 5, observedGeneration: 4, resourceTemplateGeneration: 2}`},
			`{observedGeneration: 1}`,
		},
		{
			"and one that has said nothing yet, while what the others say counts",
			`{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 2}, status: {observedGeneration: 1}}`,
			[]string{`{replicas: 2, ` + done + `}`, ``},
			`{observedGeneration: 1, replicas: 2, updatedReplicas: 0, readyReplicas: 0, availableReplicas: 0, unavailableReplicas: 0}`,
		},
		{
			"a Deployment in no cluster has no pods, whatever it had before",
			`{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 2}, status: {observedGeneration: 1, replicas: 7, readyReplicas: 7}}`,
			nil,
			`{observedGeneration: 1, replicas: 0, updatedReplicas: 0, readyReplicas: 0, availableReplicas: 0, unavailableReplicas: 0}`,
		},
		{
			"a Deployment of no replicas is in no cluster, and complete there",
			`{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 2}, spec: {replicas: 0}, status: {observedGeneration: 1, replicas: 7, readyReplicas: 7}}`,
			nil,
			`{observedGeneration: 2, replicas: 0, updatedReplicas: 0, readyReplicas: 0, availableReplicas: 0, unavailableReplicas: 0, conditions: [
				{type: Available, status: "True", reason: MinimumReplicasAvailable, message: Deployment has minimum availability.},
				{type: Progressing, status: "True", reason: NewReplicaSetAvailable, message: Deployment has successfully progressed.}]}`,
		},
		{
			"a ReplicaSet",
			`{apiVersion: apps/v1, kind: ReplicaSet, metadata: {generation: 2}}`,
			[]string{`{replicas: 2, fullyLabeledReplicas: 2, readyReplicas: 2, availableReplicas: 1, ` + done + `}`,
				`{replicas: 1, ` + done + `}`},
			`{observedGeneration: 2, replicas: 3, fullyLabeledReplicas: 2, readyReplicas: 2, availableReplicas: 1}`,
		},
		{
			"a Deployment is available where all clusters say so",
			`{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 2}}`,
			[]string{
				`{conditions: [{type: Available, status: "True", reason: MinimumReplicasAvailable, lastTransitionTime: "2026-01-01T00:01:00Z"}, {type: Progressing, status: "True", reason: NewReplicaSetAvailable, lastTransitionTime: "2026-01-01T00:00:00Z"}], ` + done + `}`,
				`{conditions: [{type: Available, status: "True", reason: MinimumReplicasAvailable, lastTransitionTime: "2026-01-01T00:02:00Z"}, {type: Progressing, status: "True", reason: NewReplicaSetAvailable, lastTransitionTime: "2026-01-01T00:00:00Z"}], ` + done + `}`},
			`{observedGeneration: 2, replicas: 0, updatedReplicas: 0, readyReplicas: 0, availableReplicas: 0, unavailableReplicas: 0, conditions: [
				{type: Available, status: "True", reason: MinimumReplicasAvailable, message: Deployment has minimum availability., lastTransitionTime: "2026-01-01T00:02:00Z", lastUpdateTime: "2026-01-01T00:02:00Z"},
				{type: Progressing, status: "True", reason: NewReplicaSetAvailable, message: Deployment has successfully progressed., lastTransitionTime: "2026-01-01T00:00:00Z", lastUpdateTime: "2026-01-01T00:00:00Z"}]}`,
		},
		{
			"a Deployment is as available as its worst cluster, and fails where one does",
			`{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 2}}`,
			[]string{
				`{conditions: [{type: Available, status: "True", reason: MinimumReplicasAvailable, lastTransitionTime: "2026-01-01T00:05:00Z"}, {type: Progressing, status: "True", reason: NewReplicaSetAvailable, lastTransitionTime: "2026-01-01T00:00:00Z"}], ` + done + `}`,
				`{conditions: [{type: Available, status: "False", reason: MinimumReplicasUnavailable, message: not enough, lastTransitionTime: "2026-01-01T00:02:00Z"}, {type: Progressing, status: "False", reason: ProgressDeadlineExceeded, message: timed out, lastTransitionTime: "2026-01-01T00:04:00Z"}, {type: ReplicaFailure, status: "True", reason: FailedCreate, message: quota, lastTransitionTime: "2026-01-01T00:03:00Z"}], ` + done + `}`,
				``},
			`{observedGeneration: 0, replicas: 0, updatedReplicas: 0, readyReplicas: 0, availableReplicas: 0, unavailableReplicas: 0, conditions: [
				{type: Available, status: "False", reason: MinimumReplicasUnavailable, message: "m2: not enough", lastTransitionTime: "2026-01-01T00:02:00Z", lastUpdateTime: "2026-01-01T00:02:00Z"},
				{type: Progressing, status: "False", reason: ProgressDeadlineExceeded, message: "m2: timed out", lastTransitionTime: "2026-01-01T00:04:00Z", lastUpdateTime: "2026-01-01T00:04:00Z"},
				{type: ReplicaFailure, status: "True", reason: FailedCreate, message: "m2: quota", lastTransitionTime: "2026-01-01T00:03:00Z", lastUpdateTime: "2026-01-01T00:03:00Z"}]}`,
		},
		{
			"a Deployment is on its way as long as a cluster is, and nobody knows of one that has said nothing",
			`{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 2}}`,
			[]string{
				`{conditions: [{type: Available, status: "True", reason: MinimumReplicasAvailable, lastTransitionTime: "2026-01-01T00:01:00Z"}, {type: Progressing, status: "True", reason: NewReplicaSetAvailable, lastTransitionTime: "2026-01-01T00:00:00Z"}]}`,
				`{conditions: [{type: Progressing, status: "True", reason: ReplicaSetUpdated, lastTransitionTime: "2026-01-01T00:00:30Z"}]}`},
			`{observedGeneration: 0, replicas: 0, updatedReplicas: 0, readyReplicas: 0, availableReplicas: 0, unavailableReplicas: 0, conditions: [
				{type: Available, status: Unknown, reason: NotReported, message: "m2: the cluster has not reported it yet", lastTransitionTime: "2026-01-01T00:01:00Z", lastUpdateTime: "2026-01-01T00:01:00Z"},
				{type: Progressing, status: "True", reason: ReplicaSetUpdated, message: "m2: ReplicaSetUpdated", lastTransitionTime: "2026-01-01T00:00:30Z", lastUpdateTime: "2026-01-01T00:00:30Z"}]}`,
		},
		{
			"a CloneSet is on its way as long as a cluster is",
			`{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, metadata: {generation: 2}, spec: {replicas: 9}}`,
			[]string{`{conditions: [{type: Progressing, status: "True", reason: CloneSetAvailable}], ` + done + `}`,
				`{conditions: [{type: Progressing, status: "True", reason: CloneSetUpdated}], ` + done + `}`},
			`{observedGeneration: 2, replicas: 0, readyReplicas: 0, availableReplicas: 0, updatedReplicas: 0, updatedReadyReplicas: 0, updatedAvailableReplicas: 0, expectedUpdatedReplicas: 0,
				conditions: [{type: Progressing, status: "True", reason: CloneSetUpdated, message: m1; m2}]}`,
		},
		{
			"a StatefulSet compares the same generations as a Deployment, and agrees on revisions",
			`{apiVersion: apps/v1, kind: StatefulSet, metadata: {generation: 2}}`,
			[]string{`{replicas: 2, readyReplicas: 2, availableReplicas: 2, currentReplicas: 2, updatedReplicas: 2, currentRevision: x, updateRevision: x, ` + done + `}`, `{replicas: 1, currentRevision: x, updateRevision: x, ` + done + `}`},
			`{observedGeneration: 2, replicas: 3, readyReplicas: 2, availableReplicas: 2, currentReplicas: 2, updatedReplicas: 2, currentRevision: x, updateRevision: x}`,
		},
		{
			"revisions that clusters disagree on are left out",
			`{apiVersion: apps/v1, kind: StatefulSet, metadata: {generation: 2}}`,
			[]string{`{currentRevision: x, updateRevision: x, ` + done + `}`, `{currentRevision: y, updateRevision: y, ` + done +
				`}`},
			`{observedGeneration: 2, replicas: 0, readyReplicas: 0, availableReplicas: 0, currentReplicas: 0, updatedReplicas: 0}`,
		},
		{
			"but not so that a rollout in one of them looks finished",
			`{apiVersion: apps/v1, kind: StatefulSet, metadata: {generation: 2}}`,
			[]string{`{currentRevision: x, updateRevision: x, ` + done + `}`, `{currentRevision: y, updateRevision: z, ` + done +
				`}`},
			`{observedGeneration: 2, replicas: 0, readyReplicas: 0, availableReplicas: 0, currentReplicas: 0, updatedReplicas: 0, updateRevision: z}`,
		},
		{
			"a DaemonSet",
			`{apiVersion: apps/v1, kind: DaemonSet, metadata: {generation: 2}}`,
			[]string{`{currentNumberScheduled: 1, desiredNumberScheduled: 2, numberAvailable: 1, numberMisscheduled: 1, numberReady: 1, numberUnavailable: 1, updatedNumberScheduled: 1, ` + done + `}`, `{desiredNumberScheduled: 3, ` + done + `}`},
			`{observedGeneration: 2, currentNumberScheduled: 1, desiredNumberScheduled: 5, numberAvailable: 1, numberMisscheduled: 1, numberReady: 1, numberUnavailable: 1, updatedNumberScheduled: 1}`,
		},
		{
			"a CronJob lists what is active by cluster, and the last times of any",
			`{apiVersion: batch/v1, kind: CronJob}`,
			[]string{`{active: [{name: b}, {name: a}], lastScheduleTime: "2026-01-01T00:05:00Z"}`,
				`{active: [{name: c}], lastScheduleTime: "2026-01-01T00:10:00Z", lastSuccessfulTime: "2026-01-01T00:06:00Z"}`, ``},
			`{active: [{name: b}, {name: a}, {name: c}], lastScheduleTime: "2026-01-01T00:10:00Z", lastSuccessfulTime: "2026-01-01T00:06:00Z"}`,
		},
		{
			"a Pod is in the phase that needs a look most, and keeps what the hub says of it",
			`{apiVersion: v1, kind: Pod, status: {phase: Pending, qosClass: Burstable}}`,
			[]string{`{phase: Running, podIP: 10.0.0.1, containerStatuses: [{name: app, ready: true, restartCount: 1, state: {running: {}}, containerID: x}]}`, `{phase: Failed, containerStatuses: [{name: app, ready: false, restartCount: 0, state: {terminated: {exitCode: 1}}}]}`},
			`{phase: Failed, qosClass: Burstable, containerStatuses: [{name: app, ready: false, restartCount: 0, state: {terminated: {exitCode: 1}}}, {name: app, ready: true, restartCount: 1, state: {running: {}}}]}`,
		},
		{
			"a Pod that one cluster has not made yet is pending",
			`{apiVersion: v1, kind: Pod, status: {phase: Running}}`,
			[]string{`{phase: Running}`, ``},
			`{phase: Pending}`,
		},
		{
			"a Service has the addresses of all clusters, sorted, each once",
			`{apiVersion: v1, kind: Service, spec: {type: LoadBalancer}, status: {loadBalancer: {}, conditions: [{type: Kept}]}}`,
			[]string{`{loadBalancer: {ingress: [{ip: 2.2.2.2}, {hostname: b.example}]}}`,
				`{loadBalancer: {ingress: [{ip: 1.1.1.1}, {ip: 2.2.2.2}]}}`, ``},
			`{loadBalancer: {ingress: [{hostname: b.example}, {ip: 1.1.1.1}, {ip: 2.2.2.2}]}, conditions: [{type: Kept}]}`,
		},
		{
			"a Service in no cluster any more has none",
			`{apiVersion: v1, kind: Service, spec: {type: LoadBalancer}, status: {loadBalancer: {ingress: [{ip: 2.2.2.2}]}}}`,
			nil,
			`{loadBalancer: {}}`,
		},
		{
			"an Ingress like it",
			`{apiVersion: networking.k8s.io/v1, kind: Ingress}`,
			[]string{`{loadBalancer: {ingress: [{ip: 2.2.2.2}]}}`,
				`{loadBalancer: {ingress: [{ip: 2.2.2.2, ports: [{port: 80, protocol: TCP}]}]}}`},
			`{loadBalancer: {ingress: [{ip: 2.2.2.2, ports: [{port: 80, protocol: TCP}]}, {ip: 2.2.2.2}]}}`,
		},
		{"a claim is bound when it is bound everywhere",
			`{apiVersion: v1, kind: PersistentVolumeClaim, status: {phase: Pending}}`,
			[]string{`{phase: Bound}`, `{phase: Bound}`}, `{phase: Bound}`},
		{"a claim that is lost anywhere is lost", `{apiVersion: v1, kind: PersistentVolumeClaim}`,
			[]string{`{phase: Bound}`, `{phase: Lost}`, ``}, `{phase: Lost}`},
		{"a claim in no cluster is pending", `{apiVersion: v1, kind: PersistentVolumeClaim, status: {phase: Bound}}`, nil,
			`{phase: Pending}`},
		{"a volume that failed anywhere failed", `{apiVersion: v1, kind: PersistentVolume}`,
			[]string{`{phase: Bound}`, `{phase: Failed}`}, `{phase: Failed}`},
		{
			"a PodDisruptionBudget adds up and names no pods",
			`{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {generation: 2}}`,
			[]string{`{currentHealthy: 2, desiredHealthy: 1, disruptionsAllowed: 1, expectedPods: 2, disruptedPods: {a: x}, ` +
				done + `}`, `{currentHealthy: 1, desiredHealthy: 1, expectedPods: 1, ` + done + `}`},
			`{observedGeneration: 2, currentHealthy: 3, desiredHealthy: 2, disruptionsAllowed: 1, expectedPods: 3}`,
		},
		{
			"a HorizontalPodAutoscaler adds up, and tells what is amiss where",
			`{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {generation: 2}}`,
			[]string{
				`{currentReplicas: 2, desiredReplicas: 3, lastScaleTime: "2026-01-01T00:00:00Z", conditions: [{type: ScalingActive, status: "True", reason: ValidMetricFound, message: fine, lastTransitionTime: "2026-01-01T00:00:00Z"}, {type: ScalingLimited, status: "False", message: ok}], ` + done + `}`,
				`{currentReplicas: 1, desiredReplicas: 1, lastScaleTime: "2026-01-01T00:01:00Z", conditions: [{type: ScalingActive, status: "False", reason: FailedGetMetrics, message: no metrics, lastTransitionTime: "2026-01-01T00:01:00Z"}, {type: ScalingLimited, status: "True", message: at the top}], ` + done + `}`,
			},
			`{observedGeneration: 2, currentReplicas: 3, desiredReplicas: 4, lastScaleTime: "2026-01-01T00:01:00Z", conditions: [
				{type: ScalingActive, status: "False", reason: FailedGetMetrics, message: "m2: no metrics", lastTransitionTime: "2026-01-01T00:01:00Z"},
				{type: ScalingLimited, status: "True", message: "m2: at the top"}]}`,
		},
	})
}

// aggregateCase is a template, what the clusters m1, m2, … report of it (empty for nothing yet), and the status that
// follows.
type aggregateCase struct {
	name, template string
	items          []string
	want           string
}

func checkAggregate(t *testing.T, cases []aggregateCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := aggregated(t, read(t, c.template), items(t, c.items...))
			if want := tree(t, c.want); !reflect.DeepEqual(got, want) {
				t.Errorf("got\n%swant\n%s", show(got), show(want))
			}
		})
	}
}

func TestServiceWithoutLoadBalancerIsUnchanged(t *testing.T) {
	template := read(t, `{apiVersion: v1, kind: Service, spec: {type: ClusterIP}, status: {loadBalancer: {}}}`)
	got, err := interpreter.Aggregate(t.Context(), template, items(t, `{loadBalancer: {ingress: [{ip: 1.1.1.1}]}}`))
	if got != template || err != nil {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestOmittedZerosCauseNoWrite(t *testing.T) {
	template := read(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 2}, spec: {replicas: 2}, status: {observedGeneration: 2, replicas: 2, updatedReplicas: 2, readyReplicas: 2, availableReplicas: 2}}`)
	reports := items(t, `{replicas: 2, updatedReplicas: 2, readyReplicas: 2, availableReplicas: 2, generation: 1, observedGeneration: 1, resourceTemplateGeneration: 2}`)
	if got, err := interpreter.Aggregate(t.Context(), template, reports); got != template || err != nil {
		t.Errorf("got another object, %v:\n%s", err, show(got.Object))
	}
}

// A server writes null where a condition of its own types has no time.
func TestEqualConditionsCauseNoWrite(t *testing.T) {
	template := read(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 2}, spec: {replicas: 0}, status: {observedGeneration: 2, conditions: [
		{type: Available, status: "True", reason: MinimumReplicasAvailable, message: Deployment has minimum availability., lastTransitionTime: null, lastUpdateTime: null},
		{type: Progressing, status: "True", reason: NewReplicaSetAvailable, message: Deployment has successfully progressed., lastTransitionTime: null, lastUpdateTime: null}]}}`)
	if got, err := interpreter.Aggregate(t.Context(), template, nil); got != template || err != nil {
		t.Errorf("got another object, %v:\n%s", err, show(got.Object))
	}
}

func TestInvalidStatusErrorNamesCluster(t *testing.T) {
	reports := items(t, `{replicas: 1}`)
	reports[0].Status.Raw = []byte(`[`)
	_, err := interpreter.Aggregate(t.Context(), read(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}}`),
		reports)
	if err == nil || !strings.Contains(err.Error(), `from cluster "m1"`) {
		t.Errorf("got %v", err)
	}
}

func TestConditionNamesAtMostTenClusters(t *testing.T) {
	var statuses []string
	for range 30 {
		statuses = append(statuses, `{conditions: [{type: FailedScale, status: "True", message: no room}]}`)
	}
	got := aggregated(t, read(t, `{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, spec: {}}`), items(t, statuses...))
	message := text(objects(got, "conditions")[0], "message")
	if strings.Count(message, "no room") != 10 || !strings.HasSuffix(message, "; and 20 more") {
		t.Errorf("got %q", message)
	}
}

// argoHealthy reports whether Argo CD calls a Deployment healthy.
func argoHealthy(d *unstructured.Unstructured) bool {
	status := object(d.Object, "status")
	updated := number(status, "updatedReplicas")
	return number(status, "observedGeneration") >= d.GetGeneration() &&
		updated >= number(d.Object, "spec", "replicas") &&
		number(status, "replicas") <= updated &&
		number(status, "availableReplicas") >= updated
}

// roller is a simulated member with a Deployment: the new template arrives, is seen, pods come up, old ones go.
type roller struct {
	wanted, generation, observed, template, old, updated, available int64
}

func (m *roller) step(generation int64) {
	switch {
	case m.template < generation:
		m.template, m.generation = generation, m.generation+1
		m.old, m.updated, m.available = m.old+m.updated, 0, 0
	case m.observed < m.generation:
		m.observed = m.generation
	case m.updated < m.wanted:
		m.updated++
	case m.available < m.updated:
		m.available++
	case m.old > 0:
		m.old--
	}
}

func (m *roller) deployment() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{
			"generation":  m.generation,
			"annotations": map[string]any{workv1alpha2.TemplateGenerationAnnotation: fmt.Sprint(m.template)},
		},
		"spec": map[string]any{"replicas": m.wanted},
		"status": map[string]any{
			"observedGeneration": m.observed, "replicas": m.old + m.updated, "updatedReplicas": m.updated,
			"readyReplicas": m.old + m.available, "availableReplicas": m.old + m.available,
		},
	}}
}

// A fleet rolls a Deployment out three times, one random step of one member at a time, then a cluster joins. After each
// step the template is healthy for Argo CD exactly when every member is, be the replicas divided or all everywhere.
func TestArgoCDHealthMatchesMembers(t *testing.T) {
	rounds := uint64(80)
	if testing.Short() {
		rounds /= 10
	}
	for seed := range rounds {
		r := rand.New(rand.NewPCG(seed, 0))
		divided := seed%2 == 0
		members := make([]*roller, 1+r.IntN(4))
		replicas := int64(3)
		if divided {
			replicas = 0
		}
		for i := range members {
			members[i] = &roller{wanted: 3}
			if divided {
				members[i].wanted = r.Int64N(4)
				replicas += members[i].wanted
			}
		}
		template := read(t, fmt.Sprintf(`{apiVersion: apps/v1, kind: Deployment, spec: {replicas: %d}}`, replicas))

		rollOut := func(generation int64) {
			template.SetGeneration(generation)
			for every := false; !every; members[r.IntN(len(members))].step(generation) {
				every = true
				var reports []workv1alpha2.AggregatedStatusItem
				for i, m := range members {
					report, healthy := m.report(t, fmt.Sprint("m", i))
					reports = append(reports, report)
					every = every && m.template == generation && healthy
				}
				got, err := interpreter.Aggregate(t.Context(), template, reports)
				if err != nil {
					t.Fatal(err)
				}
				template = got
				if healthy := argoHealthy(template); healthy != every {
					t.Fatalf("divided %v, seed %d, generation %d: healthy on the hub: %v, in every member: %v\n%smembers:\n%s",
						divided, seed, generation, healthy, every, show(template.Object["status"]), show(reports))
				}
			}
		}
		for generation := range int64(3) {
			rollOut(generation + 1)
		}
		if !divided {
			members = append(members, &roller{wanted: 3})
			rollOut(3)
		}
	}
}

// report is what the member tells the hub, and whether it is healthy.
func (m *roller) report(t *testing.T, cluster string) (workv1alpha2.AggregatedStatusItem, bool) {
	t.Helper()
	item := workv1alpha2.AggregatedStatusItem{ClusterName: cluster, Health: workv1alpha1.ResourceUnknown}
	if m.generation == 0 { // not there yet
		return item, false
	}
	health, err := interpreter.Health(t.Context(), m.deployment())
	if err != nil {
		t.Fatal(err)
	}
	status, err := interpreter.Reflect(t.Context(), m.deployment())
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(status)
	if err != nil {
		t.Fatal(err)
	}
	item.Health, item.Status = health.Karmada(), &runtime.RawExtension{Raw: raw}
	return item, health == interpret.Healthy
}

func TestJob(t *testing.T) {
	const (
		running  = `{active: 1, startTime: "2026-01-01T00:00:01Z"}`
		complete = `{succeeded: 2, startTime: "2026-01-01T00:00:02Z", completionTime: "2026-01-01T00:01:00Z", conditions: [{type: SuccessCriteriaMet, status: "True"}, {type: Complete, status: "True", lastTransitionTime: "2026-01-01T00:01:00Z"}]}`
		later    = `{succeeded: 1, startTime: "2026-01-01T00:00:00Z", completionTime: "2026-01-01T00:02:00Z", conditions: [{type: Complete, status: "True", lastTransitionTime: "2026-01-01T00:02:01Z"}]}`
		failed   = `{failed: 3, startTime: "2026-01-01T00:00:01Z", conditions: [{type: Failed, status: "True", lastTransitionTime: "2026-01-01T00:03:00Z"}]}`
	)
	for _, c := range []struct {
		name, status string
		items        []string
		want         string
	}{
		{"runs while any cluster runs", `{}`, []string{complete, running},
			`{active: 1, succeeded: 2, failed: 0, startTime: "2026-01-01T00:00:01Z"}`},
		{"runs nowhere in no cluster", `{active: 1}`, nil, `{active: 0, succeeded: 0, failed: 0}`},
		{
			"is complete when every cluster is", `{active: 1, startTime: "2026-01-01T00:00:01Z"}`, []string{complete, later},
			`{active: 0, succeeded: 3, failed: 0, startTime: "2026-01-01T00:00:01Z", completionTime: "2026-01-01T00:02:01Z", conditions: [
				{type: SuccessCriteriaMet, status: "True", reason: CompletionsReached, message: Reached expected number of succeeded pods, lastProbeTime: "2026-01-01T00:02:01Z", lastTransitionTime: "2026-01-01T00:02:01Z"},
				{type: Complete, status: "True", reason: Completed, message: Job completed, lastProbeTime: "2026-01-01T00:02:01Z", lastTransitionTime: "2026-01-01T00:02:01Z"}]}`,
		},
		{
			"announces its failure while others run", `{}`, []string{running, failed},
			`{active: 1, succeeded: 0, failed: 3, startTime: "2026-01-01T00:00:01Z", conditions: [
				{type: FailureTarget, status: "True", reason: JobFailed, message: "Job executed failed in member clusters m2", lastProbeTime: "2026-01-01T00:03:00Z", lastTransitionTime: "2026-01-01T00:03:00Z"}]}`,
		},
		{
			"fails when all have finished, and says where", `{}`, []string{failed, complete, failed},
			`{active: 0, succeeded: 2, failed: 6, startTime: "2026-01-01T00:00:01Z", conditions: [
				{type: FailureTarget, status: "True", reason: JobFailed, message: "Job executed failed in member clusters m1,m3", lastProbeTime: "2026-01-01T00:03:00Z", lastTransitionTime: "2026-01-01T00:03:00Z"},
				{type: Failed, status: "True", reason: JobFailed, message: "Job executed failed in member clusters m1,m3", lastProbeTime: "2026-01-01T00:03:00Z", lastTransitionTime: "2026-01-01T00:03:00Z"}]}`,
		},
		{
			"does not get well when the cluster that failed is left",
			`{failed: 3, conditions: [{type: FailureTarget, status: "True", message: was m9}]}`, []string{complete},
			`{active: 0, succeeded: 2, failed: 3, startTime: "2026-01-01T00:00:02Z", conditions: [
				{type: FailureTarget, status: "True", message: was m9},
				{type: Failed, status: "True", reason: JobFailed, message: was m9, lastProbeTime: "2026-01-01T00:01:00Z", lastTransitionTime: "2026-01-01T00:01:00Z"}]}`,
		},
		{"never counts down", `{succeeded: 5, failed: 4}`, []string{running},
			`{active: 1, succeeded: 5, failed: 4, startTime: "2026-01-01T00:00:01Z"}`},
		{"is over when it is over", `{succeeded: 1, conditions: [{type: Complete, status: "True"}]}`,
			[]string{running, failed}, `{succeeded: 1, conditions: [{type: Complete, status: "True"}]}`},
		{"is not complete while a cluster has not answered", `{}`, []string{complete, ``},
			`{active: 0, succeeded: 2, failed: 0, startTime: "2026-01-01T00:00:02Z"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := aggregated(t, read(t, `{apiVersion: batch/v1, kind: Job, spec: {}, status: `+c.status+`}`),
				items(t, c.items...))
			if want := tree(t, c.want); !reflect.DeepEqual(got, want) {
				t.Errorf("got\n%swant\n%s", show(got), show(want))
			}
		})
	}
}
