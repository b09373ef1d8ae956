package builtin

import (
	"strings"
	"testing"

	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

func TestUnitedDeploymentReplicas(t *testing.T) {
	const template = `template: {deploymentTemplate: {spec: {template: {spec: {containers: [{name: a, resources: {requests: {cpu: 100m}}}]}}}}}`
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		kind := "apps.kruise.io/" + version + ", kind: UnitedDeployment"
		checkReplicas(t, kind, []replicasCase{
			{"as many as it says, evenly over its subsets", `{replicas: 5, ` + template +
				`, topology: {subsets: [{name: b}, {name: a}]}}`, 5, "cpu=100m", "a×2 cpu=100m, b×3 cpu=100m"},
			{"the sum of the subsets when it does not say", `{` + template +
				`, topology: {subsets: [{name: a, replicas: 2}, {name: b, replicas: 3}]}}`, 5, "cpu=100m",
				"a×2 cpu=100m, b×3 cpu=100m"},
			{"one when nobody says", `{` + template + `, topology: {subsets: [{name: a}]}}`, 1, "cpu=100m", "a×1 cpu=100m"},
			{"a percentage of them, half a one rounded up, and the rest for the others", `{replicas: 5, ` + template +
				`, topology: {subsets: [{name: a, replicas: "50%"}, {name: b}]}}`, 5, "cpu=100m", "a×3 cpu=100m, b×2 cpu=100m"},
			{"first the least of each, then the most of each, then what is open", `{replicas: 10, ` + template +
				`, topology: {subsets: [{name: a, minReplicas: 1, maxReplicas: 3}, {name: b, minReplicas: 2}]}}`, 10, "cpu=100m",
				"a×3 cpu=100m, b×7 cpu=100m"},
			{"no more than there are, however much is asked for", `{replicas: 1, ` + template +
				`, topology: {subsets: [{name: a, minReplicas: 2}, {name: b, replicas: 3}]}}`, 1, "cpu=100m",
				"a×0 cpu=100m, b×1 cpu=100m"},
			{"what a subset adds about nodes", `{replicas: 1, template: {cloneSetTemplate: {spec: {template: {spec: {tolerations: [{key: x}]}}}}},
				topology: {subsets: [{name: a, nodeSelectorTerm: {matchExpressions: [{key: zone, operator: In, values: [z1]}]}, tolerations: [{key: spot, operator: Exists}]}]}}`,
				1, "tolerates x", "a×1 tolerates x tolerates spot on (zone In z1)"},
			{"what the pods ask for of nodes as well, in every alternative", `{replicas: 1, template: {statefulSetTemplate: {spec: {template: {spec: {affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [
				{matchExpressions: [{key: gpu, operator: Exists}]}, {matchExpressions: [{key: tpu, operator: Exists}]}]}}}}}}}},
				topology: {subsets: [{name: a, nodeSelectorTerm: {matchExpressions: [{key: zone, operator: In, values: [z1]}]}}]}}`,
				1, "on (gpu Exists ) on (tpu Exists )", "a×1 on (gpu Exists , zone In z1) on (tpu Exists , zone In z1)"},
			{"what the patch of a subset changes", `{replicas: 1, ` + template +
				`, topology: {subsets: [{name: a, patch: {spec: {containers: [{name: a, resources: {requests: {cpu: "2"}}}]}}}]}}`,
				1, "cpu=100m", "a×1 cpu=2"},
			{"no template, nothing known", `{replicas: 2, topology: {subsets: [{name: a}]}}`, 2, "unknown", "a×2 unknown"},
			{"no subsets", `{replicas: 2, ` + template + `}`, 2, "cpu=100m", ""},
			{"a name longer than components may have", `{replicas: 1, ` + template + `, topology: {subsets: [{name: ` +
				strings.Repeat("a", 40) + `}]}}`, 1, "cpu=100m", strings.Repeat("a", 23) + "-eb83bc4d×1 cpu=100m"},
		})
		checkRefused(t, kind, map[string]string{
			`{replicas: many}`: "spec.replicas: many is not an integer",
			`{topology: {subsets: [{name: a, replicas: "50%"}]}}`: `spec.replicas is not set, but subset "a" has 50% of it`,
			`{topology: {subsets: [{name: a, replicas: -2}]}}`:    "spec.replicas: -2 is not a number of replicas",
			`{topology: {subsets: [{replicas: 2000000000}, {replicas: 2000000000}]}}`: "spec.replicas: 4000000000 " +
				"is not a number of replicas",
		})
	}
}

func TestInvalidSubsetIsNamed(t *testing.T) {
	const template = `template: {deploymentTemplate: {spec: {template: {spec: {containers: [{name: a}]}}}}}`
	for spec, want := range map[string]string{
		`{replicas: 2, topology: {subsets: [{name: a, maxReplicas: "two"}]}}`: `maxReplicas of subset "a": ` +
			`"two" is neither a whole number nor a percentage`,
		`{replicas: 2, topology: {subsets: [{name: a, minReplicas: {}}]}}`:                    `minReplicas of subset "a"`,
		`{replicas: 2, ` + template + `, topology: {subsets: [{name: a, tolerations: [x]}]}}`: `read the nodes of subset "a"`,
		`{replicas: 2, ` + template +
			`, topology: {subsets: [{name: a, patch: {spec: {containers: 7}}}]}}`: `apply the patch of subset "a"`,
		`{replicas: 2, ` + template + `, topology: {subsets: [{name: a, patch: {spec: {containers: [{name: [b]}]}}}]}}`: `apply the patch of subset "a": it is not a valid patch of a pod template`,
	} {
		_, err := interpreter.Components(t.Context(),
			read(t, `{apiVersion: apps.kruise.io/v1beta1, kind: UnitedDeployment, metadata: {namespace: ns, name: x}, spec: `+
				spec+`}`))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", spec, err, want)
		}
	}
}

func TestUnitedDeploymentHealth(t *testing.T) {
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		checkHealth(t, "apps.kruise.io/"+version+", kind: UnitedDeployment", []healthCase{
			{"all there", `{replicas: 4}`, `{observedGeneration: 2, replicas: 4, readyReplicas: 4, updatedReplicas: 4}`,
				interpret.Healthy},
			{"all there of the sum of its subsets", `{topology: {subsets: [{name: a, replicas: 2}, {name: b, replicas: 2}]}}`,
				`{observedGeneration: 2, replicas: 4, readyReplicas: 4, updatedReplicas: 4}`, interpret.Healthy},
			{"scaled to none", `{replicas: 0}`, `{observedGeneration: 2}`, interpret.Healthy},
			{"no status yet", `{replicas: 4}`, ``, interpret.Progressing},
			{"not seen yet", `{replicas: 4}`, `{observedGeneration: 1, replicas: 4, readyReplicas: 4, updatedReplicas: 4}`,
				interpret.Progressing},
			{"a pod missing", `{replicas: 4}`, `{observedGeneration: 2, replicas: 3, readyReplicas: 3, updatedReplicas: 3}`,
				interpret.Progressing},
			{"a pod not ready", `{replicas: 4}`, `{observedGeneration: 2, replicas: 4, readyReplicas: 3, updatedReplicas: 4}`,
				interpret.Progressing},
			{"a pod not updated", `{replicas: 4}`, `{observedGeneration: 2, replicas: 4, readyReplicas: 4, updatedReplicas: 3}`,
				interpret.Progressing},
			{"a canary in one subset", `{replicas: 4, updateStrategy: {manualUpdate: {partitions: {a: 2}}}}`,
				`{observedGeneration: 2, replicas: 4, readyReplicas: 4, updatedReplicas: 2, subsetStatuses: [{name: a, replicas: 2, readyReplicas: 2, partition: 2}, {name: b, replicas: 2, readyReplicas: 2}]}`, interpret.Suspended},
			{"a canary on its way", `{replicas: 4, updateStrategy: {manualUpdate: {partitions: {a: 1}}}}`,
				`{observedGeneration: 2, replicas: 4, readyReplicas: 4, updatedReplicas: 2, subsetStatuses: [{name: a, replicas: 2}, {name: b, replicas: 2}]}`, interpret.Progressing},
			{"more kept back than a subset has", `{replicas: 4, updateStrategy: {manualUpdate: {partitions: {a: 9}}}}`,
				`{observedGeneration: 2, replicas: 4, readyReplicas: 4, updatedReplicas: 1, subsetStatuses: [{name: a, replicas: 2}, {name: b, replicas: 2}]}`, interpret.Progressing},
			{"a canary, told in maps", `{replicas: 4, updateStrategy: {manualUpdate: {partitions: {a: 2}}}}`,
				`{observedGeneration: 2, replicas: 4, readyReplicas: 4, updatedReplicas: 2, subsetReplicas: {a: 2, b: 2}, updateStatus: {currentPartitions: {a: 2, b: 0}}}`, interpret.Suspended},
			{"its Deployments paused", `{replicas: 4, template: {deploymentTemplate: {spec: {paused: true}}}}`,
				`{observedGeneration: 2, replicas: 4, readyReplicas: 4, updatedReplicas: 1}`, interpret.Suspended},
			{"its CloneSets paused", `{replicas: 4, template: {cloneSetTemplate: {spec: {updateStrategy: {rollingUpdate: {paused: true}}}}}}`, `{observedGeneration: 2, replicas: 4, readyReplicas: 4, updatedReplicas: 1}`, interpret.Suspended},
			{"its StatefulSets updated when users like",
				`{replicas: 4, template: {statefulSetTemplate: {spec: {updateStrategy: {type: OnDelete}}}}}`,
				`{observedGeneration: 2, replicas: 4, readyReplicas: 4, updatedReplicas: 1}`, interpret.Healthy},
			{"a subset that fails: it counts once it stays", `{replicas: 4}`,
				`{observedGeneration: 2, replicas: 2, readyReplicas: 2, updatedReplicas: 2, conditions: [{type: SubsetFailure, status: "True", message: quota}]}`, interpret.Progressing},
			{"a failure left over on a good one", `{replicas: 4}`,
				`{observedGeneration: 2, replicas: 4, readyReplicas: 4, updatedReplicas: 4, conditions: [{type: SubsetFailure, status: "True", message: conflict}]}`, interpret.Healthy},
			{"pods that wait for room", `{replicas: 4}`,
				`{observedGeneration: 2, replicas: 4, readyReplicas: 4, updatedReplicas: 4, reservedPods: 1}`,
				interpret.Progressing},
			{"replicas of nonsense", `{replicas: some}`, `{observedGeneration: 2}`, interpret.Unknown},
		})
	}
}

func TestUnitedDeploymentAggregate(t *testing.T) {
	const done = `generation: 5, observedGeneration: 5, resourceTemplateGeneration: 2`
	const before = `observedGeneration: 2, replicas: 7, readyReplicas: 5, updatedReplicas: 4, updatedReadyReplicas: 3, reservedPods: 1, collisionCount: 2, labelSelector: app=x, currentRevision: u-1,
		subsetStatuses: [
			{name: a, replicas: 3, readyReplicas: 3, partition: 1, reservedPods: 0, conditions: [{type: Schedulable, status: "False", reason: Full, message: "m1: no node", lastTransitionTime: "2026-01-01T00:00:02Z"}]},
			{name: b, replicas: 3, readyReplicas: 2, partition: 3, reservedPods: 1}, {name: c, replicas: 1, readyReplicas: 0, partition: 0, reservedPods: 0}],
		conditions: [{type: SubsetFailure, status: "True", reason: Error, message: "m2: quota", lastTransitionTime: "2026-01-01T00:00:01Z"}, {type: SubsetProvisioned, status: "False", message: "m2: not all"}]`
	members := []string{
		// One member serves the old version, the other the new one.
		`{replicas: 4, readyReplicas: 4, updatedReplicas: 2, updatedReadyReplicas: 2, currentRevision: u-1, updateStatus: {updatedRevision: u-2, currentPartitions: {a: 1, b: 1}}, collisionCount: 2, labelSelector: app=x,
			subsetStatuses: [{name: b, replicas: 2, readyReplicas: 2, partition: 1}, {name: a, replicas: 2, readyReplicas: 2, partition: 1, conditions: [{type: Schedulable, status: "False", reason: Full, message: no node, lastTransitionTime: "2026-01-01T00:00:02Z"}]}],
			conditions: [{type: SubsetFailure, status: "False"}, {type: SubsetProvisioned, status: "True"}], ` + done + `}`,
		`{replicas: 3, readyReplicas: 1, updatedReplicas: 2, updatedReadyReplicas: 1, reservedPods: 1, currentRevision: u-1, updatedRevision: u-2,
			subsetStatuses: [{name: a, replicas: 1, readyReplicas: 1, conditions: [{type: Schedulable, status: "True"}]}, {name: b, replicas: 1, partition: 2, reservedPods: 1}, {name: c, replicas: 1}],
			conditions: [{type: SubsetFailure, status: "True", reason: Error, message: quota, lastTransitionTime: "2026-01-01T00:00:01Z"}, {type: SubsetProvisioned, status: "False", message: not all}], ` + done + `}`,
	}
	checkAggregate(t, []aggregateCase{
		{
			"adds up its subsets by name, in the fields of the new version",
			`{apiVersion: apps.kruise.io/v1beta1, kind: UnitedDeployment, metadata: {generation: 2}, spec: {replicas: 7, selector: {matchLabels: {app: x}}}}`,
			members,
			`{` + before + `, updatedRevision: u-2}`,
		},
		{
			"and in those of the old one",
			`{apiVersion: apps.kruise.io/v1alpha1, kind: UnitedDeployment, metadata: {generation: 2}, spec: {replicas: 7, selector: {matchLabels: {app: x}}}}`,
			members,
			`{` + before + `, updateStatus: {updatedRevision: u-2, currentPartitions: {a: 1, b: 3, c: 0}}, subsetReplicas: {a: 3, b: 3, c: 1}}`,
		},
		{
			"reads the maps of an OpenKruise that has no list of subsets",
			`{apiVersion: apps.kruise.io/v1beta1, kind: UnitedDeployment, metadata: {generation: 2}, spec: {replicas: 2}}`,
			[]string{`{replicas: 2, readyReplicas: 2, updatedReplicas: 1, subsetReplicas: {a: 2}, updateStatus: {updatedRevision: u-2, currentPartitions: {a: 1}}, ` + done + `}`},
			`{observedGeneration: 2, replicas: 2, readyReplicas: 2, updatedReplicas: 1, updatedReadyReplicas: 0, reservedPods: 0, currentRevision: "", updatedRevision: u-2, subsetStatuses: [{name: a, replicas: 2, readyReplicas: 0, partition: 1, reservedPods: 0}]}`,
		},
		{
			"in no cluster it has no pods and no subsets",
			`{apiVersion: apps.kruise.io/v1alpha1, kind: UnitedDeployment, metadata: {generation: 2}, status: {observedGeneration: 1, replicas: 3, subsetReplicas: {a: 3}}}`,
			nil,
			`{observedGeneration: 1, replicas: 0, readyReplicas: 0, updatedReplicas: 0, updatedReadyReplicas: 0, reservedPods: 0, currentRevision: ""}`,
		},
		{
			"is not observed while a cluster is silent",
			`{apiVersion: apps.kruise.io/v1beta1, kind: UnitedDeployment, metadata: {generation: 2}, spec: {replicas: 3}, status: {observedGeneration: 1}}`,
			[]string{`{replicas: 2, ` + done + `}`, ``},
			`{observedGeneration: 1, replicas: 2, readyReplicas: 0, updatedReplicas: 0, updatedReadyReplicas: 0, reservedPods: 0, currentRevision: ""}`,
		},
	})
}

func TestUnitedDeploymentRetain(t *testing.T) {
	checkRetain(t, []retainCase{
		{
			"an autoscaler in the member keeps the replicas, if the template's label says so",
			`{apiVersion: apps.kruise.io/v1beta1, kind: UnitedDeployment, metadata: {labels: {resourcetemplate.karmada.io/retain-replicas: "true"}}, spec: {replicas: 2}}`,
			`{spec: {replicas: 5}}`,
			`{apiVersion: apps.kruise.io/v1beta1, kind: UnitedDeployment, metadata: {labels: {resourcetemplate.karmada.io/retain-replicas: "true"}}, spec: {replicas: 5}}`,
		},
		{
			"the nodes of a subset stay, its replicas and new subsets arrive",
			`{apiVersion: apps.kruise.io/v1beta1, kind: UnitedDeployment, spec: {topology: {subsets: [
				{name: new, nodeSelectorTerm: {matchExpressions: [{key: zone, operator: In, values: [z9]}]}},
				{name: a, replicas: 3, nodeSelectorTerm: {matchExpressions: [{key: zone, operator: In, values: [z2]}]}}, {name: b, replicas: 1, tolerations: [{key: spot}]}, {name: c, replicas: 1}]}}}`,
			`{spec: {topology: {subsets: [
				{name: a, replicas: 1, nodeSelectorTerm: {matchExpressions: [{key: zone, operator: In, values: [z1]}]}}, {name: b, replicas: 2}, {name: c, tolerations: [{key: x}]}]}}}`,
			`{apiVersion: apps.kruise.io/v1beta1, kind: UnitedDeployment, metadata: {annotations: {argosy.io/immutable-fields: 'nodeSelectorTerm of subset "a" is unchanged, but the template has another; tolerations of subset "b" is unchanged, but the template has another; tolerations of subset "c" is unchanged, but the template has another'}},
				spec: {topology: {subsets: [
				{name: new, nodeSelectorTerm: {matchExpressions: [{key: zone, operator: In, values: [z9]}]}},
				{name: a, replicas: 3, nodeSelectorTerm: {matchExpressions: [{key: zone, operator: In, values: [z1]}]}}, {name: b, replicas: 1}, {name: c, replicas: 1, tolerations: [{key: x}]}]}}}`,
		},
		{
			"nodes that are the same in other words are no clash",
			`{apiVersion: apps.kruise.io/v1beta1, kind: UnitedDeployment, spec: {topology: {subsets: [{name: a, nodeSelectorTerm: {matchExpressions: [{key: zone, operator: Exists, values: []}]}, tolerations: []}]}}}`,
			`{spec: {topology: {subsets: [{name: a, nodeSelectorTerm: {matchExpressions: [{key: zone, operator: Exists}]}}]}}}`,
			`{apiVersion: apps.kruise.io/v1beta1, kind: UnitedDeployment, spec: {topology: {subsets: [{name: a, nodeSelectorTerm: {matchExpressions: [{key: zone, operator: Exists, values: []}]}, tolerations: []}]}}}`,
		},
	})
}

func TestUnitedDeploymentDependencies(t *testing.T) {
	const spec = `{volumeClaimTemplates: [{metadata: {name: data}}], serviceName: db, template: {spec: {imagePullSecrets: [{name: pull}],
		volumes: [{name: data, persistentVolumeClaim: {claimName: x}}, {name: d, persistentVolumeClaim: {claimName: data-u-a-7x-0}}, {name: c, configMap: {name: conf}}]}}}`
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		for _, kind := range []string{"statefulSetTemplate", "advancedStatefulSetTemplate", "cloneSetTemplate",
			"deploymentTemplate"} {
			obj := read(t, `{apiVersion: apps.kruise.io/`+version+`, kind: UnitedDeployment, metadata: {namespace: ns, name: u}, spec: {template: {`+kind+`: {spec: `+spec+`}},
				topology: {subsets: [{name: a, patch: {spec: {containers: [{name: main, env: [{name: ZONE, valueFrom: {configMapKeyRef: {name: zone-a, key: z}}}]}]}}}, {name: b}]}}}`)
			if got, want := dependencies(t, obj),
				"ns ConfigMap/conf, ns ConfigMap/zone-a, ns Secret/pull, ns Service/db"; got != want {
				t.Errorf("%s %s:\ngot  %s\nwant %s", version, kind, got, want)
			}
		}
	}
}
