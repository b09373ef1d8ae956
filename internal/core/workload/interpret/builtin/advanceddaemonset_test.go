package builtin

import (
	"testing"

	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

func TestAdvancedDaemonSetHealth(t *testing.T) {
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		checkHealth(t, "apps.kruise.io/"+version+", kind: DaemonSet", []healthCase{
			{"on all nodes", `{}`, `{observedGeneration: 2, desiredNumberScheduled: 3, updatedNumberScheduled: 3, numberAvailable: 3}`, interpret.Healthy},
			{"on no node", `{}`, `{observedGeneration: 2}`, interpret.Healthy},
			{"no status yet", `{}`, ``, interpret.Progressing},
			{"not seen yet", `{}`, `{observedGeneration: 1, desiredNumberScheduled: 3, updatedNumberScheduled: 3, numberAvailable: 3}`, interpret.Progressing},
			{"not all updated", `{}`, `{observedGeneration: 2, desiredNumberScheduled: 3, updatedNumberScheduled: 2, numberAvailable: 3}`, interpret.Progressing},
			{"not all available", `{}`, `{observedGeneration: 2, desiredNumberScheduled: 3, updatedNumberScheduled: 3, numberAvailable: 2}`, interpret.Progressing},
			{"a canary paused by a number of nodes", `{updateStrategy: {rollingUpdate: {partition: 2}}}`,
				`{observedGeneration: 2, desiredNumberScheduled: 3, updatedNumberScheduled: 1, numberAvailable: 3}`,
				interpret.Suspended},
			{"a canary paused by a percentage, which rounds down", `{updateStrategy: {rollingUpdate: {partition: "50%"}}}`,
				`{observedGeneration: 2, desiredNumberScheduled: 3, updatedNumberScheduled: 2, numberAvailable: 3}`,
				interpret.Suspended},
			{"one that is on its way there", `{updateStrategy: {rollingUpdate: {partition: "50%"}}}`,
				`{observedGeneration: 2, desiredNumberScheduled: 3, updatedNumberScheduled: 1, numberAvailable: 3}`,
				interpret.Progressing},
			{"held back by Kruise Rollouts, by a number beyond any cluster",
				`{updateStrategy: {rollingUpdate: {partition: 32767}}}`,
				`{observedGeneration: 2, desiredNumberScheduled: 3, numberAvailable: 3}`, interpret.Suspended},
			{"a canary with one node down, which an update may take", `{updateStrategy: {rollingUpdate: {partition: 2}}}`,
				`{observedGeneration: 2, desiredNumberScheduled: 3, updatedNumberScheduled: 1, numberAvailable: 2}`,
				interpret.Suspended},
			{"a canary with two nodes down", `{updateStrategy: {rollingUpdate: {partition: 2}}}`,
				`{observedGeneration: 2, desiredNumberScheduled: 3, updatedNumberScheduled: 1, numberAvailable: 1}`,
				interpret.Progressing},
			{"a canary with one node down, where new pods come up first",
				`{updateStrategy: {rollingUpdate: {partition: 2, maxSurge: "10%"}}}`,
				`{observedGeneration: 2, desiredNumberScheduled: 3, updatedNumberScheduled: 1, numberAvailable: 2}`,
				interpret.Progressing},
			{"a canary on the nodes that a selector picks",
				`{updateStrategy: {rollingUpdate: {selector: {matchLabels: {canary: "yes"}}}}}`,
				`{observedGeneration: 2, desiredNumberScheduled: 3, updatedNumberScheduled: 1, numberAvailable: 3}`,
				interpret.Suspended},
			{"paused", `{updateStrategy: {rollingUpdate: {paused: true}}}`,
				`{observedGeneration: 2, desiredNumberScheduled: 3, updatedNumberScheduled: 1, numberAvailable: 3}`,
				interpret.Suspended},
			{"a partition with nothing to hold", `{updateStrategy: {rollingUpdate: {partition: 2}}}`,
				`{observedGeneration: 2, desiredNumberScheduled: 3, updatedNumberScheduled: 3, numberAvailable: 3}`,
				interpret.Healthy},
			{"OnDelete updates when its users like", `{updateStrategy: {type: OnDelete}}`,
				`{observedGeneration: 2, desiredNumberScheduled: 3, numberAvailable: 3}`, interpret.Healthy},
			{"a partition of nonsense", `{updateStrategy: {rollingUpdate: {partition: most}}}`, `{observedGeneration: 2}`,
				interpret.Unknown},
			{"an unavailability of nonsense", `{updateStrategy: {rollingUpdate: {maxUnavailable: "5"}}}`,
				`{observedGeneration: 2}`, interpret.Unknown},
		})
	}
}

func TestAdvancedDaemonSetAggregate(t *testing.T) {
	const done = `generation: 5, observedGeneration: 5, resourceTemplateGeneration: 2`
	members := []string{
		`{currentNumberScheduled: 2, desiredNumberScheduled: 2, numberAvailable: 1, numberMisscheduled: 1, numberReady: 1, numberUnavailable: 1, updatedNumberScheduled: 1, daemonSetHash: d-1, collisionCount: 1, conditions: [{type: Ready, status: "True", message: fine}], ` + done + `}`,
		`{currentNumberScheduled: 3, desiredNumberScheduled: 3, numberAvailable: 3, numberReady: 3, updatedNumberScheduled: 1, updateRevision: d-1, conditions: [{type: Ready, status: "False", message: not}], ` + done + `}`,
	}
	const counters = `observedGeneration: 2, currentNumberScheduled: 5, desiredNumberScheduled: 5, numberAvailable: 4, numberMisscheduled: 1, numberReady: 4, numberUnavailable: 1, updatedNumberScheduled: 2, collisionCount: 1, conditions: [{type: Ready, status: "False", message: "m2: not"}]`
	const zeros = `currentNumberScheduled: 0, desiredNumberScheduled: 0, numberAvailable: 0, numberMisscheduled: 0, numberReady: 0, numberUnavailable: 0, updatedNumberScheduled: 0`
	checkAggregate(t, []aggregateCase{
		{
			"adds up its nodes, and calls the revision as the new version does, whatever the members serve",
			`{apiVersion: apps.kruise.io/v1beta1, kind: DaemonSet, metadata: {generation: 2}}`, members, `{` + counters +
				`, updateRevision: d-1}`,
		},
		{
			"or as the old one does",
			`{apiVersion: apps.kruise.io/v1alpha1, kind: DaemonSet, metadata: {generation: 2}}`, members, `{` + counters +
				`, daemonSetHash: d-1}`,
		},
		{
			"a revision that clusters disagree on is an empty text, never a number",
			`{apiVersion: apps.kruise.io/v1alpha1, kind: DaemonSet, metadata: {generation: 2}}`,
			[]string{`{daemonSetHash: x, ` + done + `}`, `{daemonSetHash: y, ` + done + `}`},
			`{observedGeneration: 2, ` + zeros + `, daemonSetHash: ""}`,
		},
		{
			"in no cluster it is on no node",
			`{apiVersion: apps.kruise.io/v1alpha1, kind: DaemonSet, metadata: {generation: 2}, status: {observedGeneration: 1, numberReady: 9}}`, nil,
			`{observedGeneration: 1, ` + zeros + `, daemonSetHash: ""}`,
		},
	})
}

func TestAdvancedDaemonSetRetain(t *testing.T) {
	checkRetain(t, []retainCase{
		{
			"one that Kruise Rollouts releases step by step is not released at once",
			`{apiVersion: apps.kruise.io/v1beta1, kind: DaemonSet, spec: {updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 0}}}}`,
			`{metadata: {annotations: {rollouts.kruise.io/in-progressing: x}}, spec: {updateStrategy: {rollingUpdate: {partition: 32767, maxUnavailable: 1}}}}`,
			`{apiVersion: apps.kruise.io/v1beta1, kind: DaemonSet, metadata: {annotations: {rollouts.kruise.io/in-progressing: x}}, spec: {updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 32767, maxUnavailable: 1}}}}`,
		},
		{
			"a selector that cannot change stays",
			`{apiVersion: apps.kruise.io/v1beta1, kind: DaemonSet, spec: {selector: {matchLabels: {b: c}}, template: {metadata: {labels: {app: x, b: c}}}}}`,
			`{spec: {selector: {matchLabels: {app: x}}}}`,
			`{apiVersion: apps.kruise.io/v1beta1, kind: DaemonSet, metadata: {annotations: {argosy.io/immutable-fields: 'spec.selector is still "app=x", but the template has "b=c"'}}, spec: {selector: {matchLabels: {app: x}}, template: {metadata: {labels: {app: x, b: c}}}}}`,
		},
		{
			"nothing is kept of what the member may not change",
			`{apiVersion: apps.kruise.io/v1beta1, kind: DaemonSet, spec: {minReadySeconds: 3}}`,
			`{spec: {minReadySeconds: 9, burstReplicas: 250}}`,
			`{apiVersion: apps.kruise.io/v1beta1, kind: DaemonSet, spec: {minReadySeconds: 3}}`,
		},
	})
}
