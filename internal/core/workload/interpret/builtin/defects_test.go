package builtin

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// The scripts that Karmada ships for these kinds get some things wrong. Each test says what they do, and shows what is
// right. How one partition becomes the shares of many clusters is in core/workload/fleet, and that image, command and
// args overriders know the kinds, in core/override.

// Karmada: unhealthy while fewer pods are updated than desired, so that failover evicts every canary.
func TestACanaryIsNotUnhealthy(t *testing.T) {
	const canary = `status: {observedGeneration: 2, replicas: 4, readyReplicas: 4, availableReplicas: 4, updatedReplicas: 1, updatedReadyReplicas: 1, updatedAvailableReplicas: 1,
		matchedPods: 4, updatedPods: 1, updatedReadyPods: 1, desiredNumberScheduled: 4, updatedNumberScheduled: 1, numberAvailable: 4, subsetStatuses: [{name: a, replicas: 4}]}`
	for kind, keptByPartition := range map[string][]string{
		"v1alpha1, kind: CloneSet": {`{partition: 3}`, `{partition: "75%"}`, `{paused: true}`},
		"v1beta1, kind: CloneSet": {`{rollingUpdate: {partition: 3}}`, `{rollingUpdate: {partition: "75%"}}`,
			`{rollingUpdate: {paused: true}}`},
		"v1alpha1, kind: StatefulSet":      {`{rollingUpdate: {partition: 3}}`, `{rollingUpdate: {paused: true}}`},
		"v1beta1, kind: StatefulSet":       {`{rollingUpdate: {partition: 3}}`, `{rollingUpdate: {paused: true}}`},
		"v1alpha1, kind: SidecarSet":       {`{partition: 3}`, `{partition: "75%"}`, `{paused: true}`, `{type: NotUpdate}`},
		"v1beta1, kind: SidecarSet":        {`{partition: 3}`, `{selector: {matchLabels: {canary: x}}}`},
		"v1alpha1, kind: UnitedDeployment": {`{manualUpdate: {partitions: {a: 3}}}`},
		"v1beta1, kind: UnitedDeployment":  {`{manualUpdate: {partitions: {a: 3}}}`},
		"v1alpha1, kind: DaemonSet":        {`{rollingUpdate: {partition: 3}}`, `{rollingUpdate: {paused: true}}`},
		"v1beta1, kind: DaemonSet": {`{rollingUpdate: {partition: "75%"}}`,
			`{rollingUpdate: {selector: {matchLabels: {canary: x}}}}`},
	} {
		for _, strategy := range keptByPartition {
			obj := read(t, `{apiVersion: apps.kruise.io/`+kind+
				`, metadata: {generation: 2}, spec: {replicas: 4, updateStrategy: `+strategy+`}, `+canary+`}`)
			health, err := interpreter.Health(t.Context(), obj)
			if err != nil || health != interpret.Suspended || health.Karmada() != workv1alpha1.ResourceHealthy {
				t.Errorf("%s %s: %s, which is %s, %v", kind, strategy, health, health.Karmada(), err)
			}
		}
	}
}

// Karmada: arithmetic on what is absent is an error, so health is Unknown and aggregation is tried for ever.
func TestAbsentFieldsAreNoError(t *testing.T) {
	for _, kind := range kruiseWorkloads {
		for _, status := range []string{``, `, status: null`, `, status: {}`,
			`, status: {observedGeneration: 2, replicas: null, conditions: null, subsetStatuses: null}`} {
			obj := read(t, `{apiVersion: apps.kruise.io/`+kind+`, metadata: {generation: 2}`+status+`}`)
			if health, err := interpreter.Health(t.Context(), obj); err != nil || health == interpret.Unknown {
				t.Errorf("%s%s: health %s, %v", kind, status, health, err)
			}
			if _, err := interpreter.Reflect(t.Context(), obj); err != nil {
				t.Errorf("%s%s: reflect: %v", kind, status, err)
			}
			if _, err := interpreter.Dependencies(t.Context(), obj); err != nil {
				t.Errorf("%s%s: dependencies: %v", kind, status, err)
			}
			for _, reports := range [][]workv1alpha2.AggregatedStatusItem{nil, items(t, ``),
				items(t, `{}`, ``, `{replicas: null, conditions: null}`)} {
				if _, err := interpreter.Aggregate(t.Context(), obj, reports); err != nil {
					t.Errorf("%s%s: aggregate: %v", kind, status, err)
				}
			}
		}
	}
}

// Karmada: the revision and the selector of the cluster that was read last, as if the others had them too.
func TestDifferingRevisionsAreNotMerged(t *testing.T) {
	for kind, field := range map[string]string{
		"v1beta1, kind: CloneSet": "currentRevision", "v1beta1, kind: StatefulSet": "currentRevision",
		"v1beta1, kind: SidecarSet": "latestRevision",
		"v1beta1, kind: DaemonSet":  "updateRevision", "v1beta1, kind: UnitedDeployment": "currentRevision",
	} {
		template := read(t, `{apiVersion: apps.kruise.io/`+kind+`, spec: {selector: {matchLabels: {app: x}}}}`)
		got := aggregated(t, template, items(t, `{`+field+`: a, labelSelector: from=m1}`, `{`+field+
			`: b, labelSelector: from=m2}`))
		if text(got, field) != "" {
			t.Errorf("%s: the %s is %q", kind, field, text(got, field))
		}
		if s := text(got, "labelSelector"); s != "" && s != "app=x" {
			t.Errorf("%s: the labelSelector is %q, not the template's", kind, s)
		}
	}
}

// Karmada: replicas are left to an autoscaler for Deployments alone; for these kinds the two fight.
func TestMemberAutoscalerKeepsReplicas(t *testing.T) {
	for _, kind := range []string{"CloneSet", "StatefulSet", "UnitedDeployment"} {
		for _, version := range []string{"v1alpha1", "v1beta1"} {
			desired := read(t, `{apiVersion: apps.kruise.io/`+version+`, kind: `+kind+
				`, metadata: {labels: {resourcetemplate.karmada.io/retain-replicas: "true"}}, spec: {replicas: 1}}`)
			got := retained(t, desired, read(t, `{apiVersion: apps.kruise.io/`+version+`, kind: `+kind+`, spec: {replicas: 6}}`))
			if n := number(got.Object, "spec", "replicas"); n != 6 {
				t.Errorf("%s %s: %d replicas", version, kind, n)
			}
		}
	}
}

// Karmada: some of these kinds have no observedGeneration on the hub, others one that a single cluster is enough for.
func TestObservedGenerationNeedsAllClusters(t *testing.T) {
	const seen, stale, old = `{generation: 3, observedGeneration: 3, resourceTemplateGeneration: 7}`,
		`{generation: 3, observedGeneration: 2, resourceTemplateGeneration: 7}`,
		`{generation: 3, observedGeneration: 3, resourceTemplateGeneration: 6}`
	for _, kind := range kruiseWorkloads {
		// No cluster has what is wanted, so that no rollout looks finished.
		template := read(t, `{apiVersion: apps.kruise.io/`+kind+
			`, metadata: {generation: 7}, spec: {replicas: 9}, status: {observedGeneration: 6}}`)
		for _, c := range []struct {
			reports []string
			want    int64
		}{
			{[]string{seen, seen}, 7}, {[]string{seen, stale}, 6}, {[]string{old, seen}, 6}, {[]string{seen, ``}, 6}, {nil, 6},
		} {
			if got := number(aggregated(t, template, items(t, c.reports...)), "observedGeneration"); got != c.want {
				t.Errorf("%s, reports %q: observed %d, want %d", kind, c.reports, got, c.want)
			}
		}
	}
}

// Karmada: the counters of an update in place are summed in part. Here a fleet's counter is the sum of the clusters',
// whichever it is and however the clusters are grouped.
func TestCountersAreSums(t *testing.T) {
	counters := map[string][]string{
		"CloneSet": {"replicas", "readyReplicas", "availableReplicas", "updatedReplicas", "updatedReadyReplicas",
			"updatedAvailableReplicas", "expectedUpdatedReplicas"},
		"StatefulSet": {"replicas", "readyReplicas", "availableReplicas", "currentReplicas", "updatedReplicas",
			"updatedReadyReplicas", "updatedAvailableReplicas"},
		"SidecarSet":       {"matchedPods", "updatedPods", "readyPods", "updatedReadyPods"},
		"UnitedDeployment": {"replicas", "readyReplicas", "updatedReplicas", "updatedReadyReplicas", "reservedPods"},
		"DaemonSet": {"currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady",
			"numberAvailable", "numberUnavailable", "updatedNumberScheduled"},
	}
	for _, kind := range kruiseWorkloads {
		_, name, _ := strings.Cut(kind, "kind: ")
		template := read(t, `{apiVersion: apps.kruise.io/`+kind+`}`)
		for seed := range uint64(10) {
			r := rand.New(rand.NewPCG(seed, 0))
			var reports []workv1alpha2.AggregatedStatusItem
			for i := range 2 + r.IntN(5) {
				var fields []string
				for _, c := range counters[name] {
					if r.IntN(4) > 0 { // zeros are left out now and then, as servers do
						fields = append(fields, fmt.Sprintf("%s: %d", c, r.IntN(50)))
					}
				}
				reports = append(reports, item(t, fmt.Sprint("m", i), `{`+strings.Join(fields, ", ")+`}`, ""))
			}
			cut := 1 + r.IntN(len(reports)-1)
			some, others := aggregated(t, template, reports[:cut]), aggregated(t, template, reports[cut:])
			all := aggregated(t, template, reports)
			for _, c := range counters[name] {
				if _, there := all[c]; !there || number(all, c) != number(some, c)+number(others, c) {
					t.Errorf("%s, seed %d: %s is %v of all, %v of some and %v of the others", kind, seed, c, all[c], some[c],
						others[c])
				}
			}
		}
	}
}

// Karmada: a version without a script of its own means nothing. Here both versions of a kind say the same of the same
// object.
func TestBothVersionsMeanTheSame(t *testing.T) {
	const spec = `spec: {replicas: 3, selector: {matchLabels: {app: x}}, updateStrategy: {partition: 1, rollingUpdate: {partition: 1}, manualUpdate: {partitions: {a: 1}}}, namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: ns}},
		imagePullSecrets: [{name: pull}], template: {spec: {serviceAccountName: bot}, cloneSetTemplate: {spec: {template: {spec: {serviceAccountName: bot}}}}}},
		status: {observedGeneration: 2, replicas: 3, readyReplicas: 3, availableReplicas: 3, updatedReplicas: 2, updatedAvailableReplicas: 2, matchedPods: 3, updatedPods: 3, updatedReadyPods: 3,
		desiredNumberScheduled: 3, updatedNumberScheduled: 2, numberAvailable: 3, subsetStatuses: [{name: a, replicas: 3, partition: 1}]}`
	for _, kind := range []string{"CloneSet", "StatefulSet", "SidecarSet", "UnitedDeployment", "DaemonSet"} {
		var answers []string
		for _, version := range []string{"v1alpha1", "v1beta1"} {
			obj := read(t, `{apiVersion: apps.kruise.io/`+version+`, kind: `+kind+
				`, metadata: {namespace: ns, name: x, generation: 2}, `+spec+`}`)
			n, req, workload, err := interpreter.Replicas(t.Context(), obj)
			components, err2 := interpreter.Components(t.Context(), obj)
			health, err3 := interpreter.Health(t.Context(), obj)
			status, err4 := interpreter.Reflect(t.Context(), obj)
			if err != nil || err2 != nil || err3 != nil || err4 != nil {
				t.Fatal(err, err2, err3, err4)
			}
			answers = append(answers, fmt.Sprint(n, req, workload, show(components), health, show(status), dependencies(t, obj)))
		}
		if !reflect.DeepEqual(answers[0], answers[1]) {
			t.Errorf("%s: v1alpha1 says %s\nv1beta1 says %s", kind, answers[0], answers[1])
		}
	}
}

// Karmada: a UnitedDeployment is read by fields that it does not have, so one replica needs nothing, nothing is
// depended on and health is Unknown for ever.
func TestUnitedDeploymentFieldsOfBothVersions(t *testing.T) {
	obj := read(t, `{apiVersion: apps.kruise.io/v1alpha1, kind: UnitedDeployment, metadata: {namespace: ns, name: u, generation: 1}, spec: {replicas: 2, template: {statefulSetTemplate: {spec: {serviceName: web,
		template: {spec: {containers: [{name: c, resources: {requests: {cpu: "1"}}, envFrom: [{secretRef: {name: s}}]}]}}}}}, topology: {subsets: [{name: a}]}},
		status: {observedGeneration: 1, replicas: 2, readyReplicas: 2, updatedReplicas: 2, updatedReadyReplicas: 2, subsetStatuses: [{name: a, replicas: 2, readyReplicas: 2}]}}`)
	n, req, _, err := interpreter.Replicas(t.Context(), obj)
	if err != nil || n != 2 || req.ResourceRequest.Cpu().String() != "1" {
		t.Errorf("got %d of %+v, %v", n, req, err)
	}
	if health, err := interpreter.Health(t.Context(), obj); health != interpret.Healthy {
		t.Errorf("got %s, %v", health, err)
	}
	if got, want := dependencies(t, obj), "ns Secret/s, ns Service/web"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Karmada: a SidecarSet's status comes back on an object without a spec.
func TestAggregateKeepsSpec(t *testing.T) {
	for _, kind := range kruiseWorkloads {
		template := read(t, `{apiVersion: apps.kruise.io/`+kind+
			`, metadata: {name: x, labels: {a: b}}, spec: {selector: {matchLabels: {app: x}}, containers: [{name: c}]}}`)
		got, err := interpreter.Aggregate(t.Context(), template, items(t, `{replicas: 1, matchedPods: 1, numberReady: 1}`))
		if err != nil {
			t.Fatal(err)
		}
		if got == template || !reflect.DeepEqual(got.Object["spec"], template.Object["spec"]) ||
			!reflect.DeepEqual(got.Object["metadata"], template.Object["metadata"]) {
			t.Errorf("%s: got\n%s", kind, show(got.Object))
		}
	}
}

// kruiseWorkloads are the workloads of OpenKruise in every version.
var kruiseWorkloads = []string{
	"v1alpha1, kind: CloneSet", "v1beta1, kind: CloneSet", "v1alpha1, kind: StatefulSet", "v1beta1, kind: StatefulSet",
	"v1alpha1, kind: SidecarSet", "v1beta1, kind: SidecarSet", "v1alpha1, kind: UnitedDeployment",
	"v1beta1, kind: UnitedDeployment",
	"v1alpha1, kind: DaemonSet", "v1beta1, kind: DaemonSet",
}
