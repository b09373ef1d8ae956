package builtin

import (
	"testing"

	"github.com/argosy-io/argosy/internal/core/interpret"
)

func TestCloneSetHealth(t *testing.T) {
	checkHealth(t, "apps.kruise.io/v1alpha1, kind: CloneSet", []healthCase{
		{"all updated and available", `{replicas: 3}`, `{observedGeneration: 2, replicas: 3, availableReplicas: 3, updatedReplicas: 3, updatedReadyReplicas: 3, updatedAvailableReplicas: 3}`, interpret.Healthy},
		{"no status yet", `{replicas: 3}`, ``, interpret.Progressing},
		{"scaled to none", `{replicas: 0}`, `{observedGeneration: 2}`, interpret.Healthy},
		{"too few pods", `{replicas: 3}`, `{observedGeneration: 2, replicas: 2, availableReplicas: 2, updatedAvailableReplicas: 2}`, interpret.Progressing},
		{"one updated pod not available", `{replicas: 3}`, `{observedGeneration: 2, replicas: 3, availableReplicas: 2, updatedReplicas: 3, updatedReadyReplicas: 2, updatedAvailableReplicas: 2}`, interpret.Progressing},
		{"a canary held by a number", `{replicas: 3, updateStrategy: {partition: 2}}`, `{observedGeneration: 2, replicas: 3, availableReplicas: 3, updatedReplicas: 1, updatedReadyReplicas: 1, updatedAvailableReplicas: 1}`, interpret.Suspended},
		{"a canary held by a percentage, which rounds up", `{replicas: 3, updateStrategy: {partition: "50%"}}`, `{observedGeneration: 2, replicas: 3, availableReplicas: 3, updatedReplicas: 1, updatedAvailableReplicas: 1}`, interpret.Suspended},
		{"99% of a few is not all", `{replicas: 3, updateStrategy: {partition: "99%"}}`, `{observedGeneration: 2, replicas: 3, availableReplicas: 3, updatedReplicas: 0}`, interpret.Progressing},
		{"100% is all", `{replicas: 3, updateStrategy: {partition: "100%"}}`, `{observedGeneration: 2, replicas: 3, availableReplicas: 3, updatedReplicas: 0}`, interpret.Suspended},
		{"a canary on its way", `{replicas: 4, updateStrategy: {partition: 2}}`, `{observedGeneration: 2, replicas: 4, availableReplicas: 4, updatedReplicas: 1, updatedAvailableReplicas: 1}`, interpret.Progressing},
		{"a canary with one old pod down, within the default 20%", `{replicas: 5, updateStrategy: {partition: 4}}`, `{observedGeneration: 2, replicas: 5, availableReplicas: 4, updatedReplicas: 1, updatedAvailableReplicas: 1}`, interpret.Suspended},
		{"a canary with two old pods down", `{replicas: 5, updateStrategy: {partition: 4}}`, `{observedGeneration: 2, replicas: 5, availableReplicas: 3, updatedReplicas: 1, updatedAvailableReplicas: 1}`, interpret.Progressing},
		{"paused in the middle", `{replicas: 3, updateStrategy: {paused: true}}`, `{observedGeneration: 2, replicas: 3, availableReplicas: 3, updatedReplicas: 1, updatedAvailableReplicas: 1}`, interpret.Suspended},
		{"paused and short of pods", `{replicas: 3, updateStrategy: {paused: true}}`, `{observedGeneration: 2, replicas: 1, availableReplicas: 1}`, interpret.Progressing},
		{"its own deadline over", `{replicas: 3}`, `{observedGeneration: 2, replicas: 3, conditions: [{type: Progressing, status: "False", reason: ProgressDeadlineExceeded}]}`, interpret.Degraded},
		{"FailedUpdate left over on a good one", `{replicas: 3}`, `{observedGeneration: 2, replicas: 3, availableReplicas: 3, updatedReplicas: 3, updatedAvailableReplicas: 3, conditions: [{type: FailedUpdate, status: "True"}]}`, interpret.Healthy},
		{"FailedUpdate left over on a held canary", `{replicas: 4, updateStrategy: {partition: 1}}`, `{observedGeneration: 2, replicas: 4, availableReplicas: 4, updatedReplicas: 3, updatedAvailableReplicas: 3, conditions: [{type: FailedUpdate, status: "True"}]}`, interpret.Suspended},
		{"FailedUpdate and short of updated pods", `{replicas: 3}`, `{observedGeneration: 2, replicas: 3, availableReplicas: 3, updatedReplicas: 1, updatedAvailableReplicas: 1, conditions: [{type: FailedUpdate, status: "True"}]}`, interpret.Degraded},
		{"FailedScale and short of pods", `{replicas: 3}`, `{observedGeneration: 2, replicas: 1, conditions: [{type: FailedScale, status: "True"}]}`, interpret.Degraded},
		{"an older OpenKruise, which does not count what is updated and available", `{replicas: 3}`, `{observedGeneration: 2, replicas: 3, availableReplicas: 3, updatedReplicas: 3, updatedReadyReplicas: 3}`, interpret.Healthy},
		{"a partition of nonsense", `{replicas: 3, updateStrategy: {partition: "5"}}`, `{observedGeneration: 2}`, interpret.Unknown},
	})
	checkHealth(t, "apps.kruise.io/v1beta1, kind: CloneSet", []healthCase{
		{"a canary held by partition", `{replicas: 3, updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 2}}}`, `{observedGeneration: 2, replicas: 3, availableReplicas: 3, updatedReplicas: 1, updatedAvailableReplicas: 1}`, interpret.Suspended},
		{"paused", `{replicas: 3, updateStrategy: {type: RollingUpdate, rollingUpdate: {paused: true}}}`, `{observedGeneration: 2, replicas: 3, availableReplicas: 3}`, interpret.Suspended},
		{"OnDelete updates when its users like", `{replicas: 3, updateStrategy: {type: OnDelete}}`, `{observedGeneration: 2, replicas: 3, availableReplicas: 3, updatedReplicas: 0}`, interpret.Healthy},
	})
}

func TestCloneSetAggregate(t *testing.T) {
	const done = `generation: 5, observedGeneration: 5, resourceTemplateGeneration: 2`
	checkAggregate(t, []aggregateCase{
		{
			"a CloneSet adds up all its counters and computes its selector",
			`{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {generation: 2}, spec: {replicas: 5, selector: {matchLabels: {app: x}, matchExpressions: [{key: tier, operator: In, values: [b, a]}]}}}`,
			[]string{
				`{replicas: 2, readyReplicas: 2, availableReplicas: 2, updatedReplicas: 2, updatedReadyReplicas: 2, updatedAvailableReplicas: 2, expectedUpdatedReplicas: 2, updateRevision: x-1, currentRevision: x-1, collisionCount: 1, labelSelector: app=x, ` + done + `}`,
				`{replicas: 3, readyReplicas: 3, availableReplicas: 3, updatedReplicas: 1, updatedReadyReplicas: 1, updatedAvailableReplicas: 1, expectedUpdatedReplicas: 1, updateRevision: x-1, currentRevision: x-0, ` + done + `}`,
			},
			`{observedGeneration: 2, replicas: 5, readyReplicas: 5, availableReplicas: 5, updatedReplicas: 3, updatedReadyReplicas: 3, updatedAvailableReplicas: 3, expectedUpdatedReplicas: 3, updateRevision: x-1, collisionCount: 1, labelSelector: "app=x,tier in (a,b)"}`,
		},
		{
			"a CloneSet's worst conditions win, FailedScale when True, Progressing when False",
			`{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, metadata: {generation: 2}, spec: {}}`,
			[]string{
				`{conditions: [{type: FailedScale, status: "False"}, {type: Progressing, status: "True", reason: CloneSetUpdated, message: going, lastUpdateTime: "2026-01-01T00:00:03Z", lastTransitionTime: "2026-01-01T00:00:01Z"}], ` + done + `}`,
				`{conditions: [{type: FailedScale, status: "True", reason: Quota, message: no room, lastTransitionTime: "2026-01-01T00:00:02Z"}, {type: Progressing, status: "True", reason: CloneSetUpdated, message: going, lastUpdateTime: "2026-01-01T00:00:02Z", lastTransitionTime: "2026-01-01T00:00:02Z"}], ` + done + `}`,
				`{conditions: [{type: FailedScale, status: "True", reason: Quota, message: no room, lastTransitionTime: "2026-01-01T00:00:01Z"}], ` + done + `}`,
			},
			`{observedGeneration: 2, replicas: 0, readyReplicas: 0, availableReplicas: 0, updatedReplicas: 0, updatedReadyReplicas: 0, updatedAvailableReplicas: 0, expectedUpdatedReplicas: 0, conditions: [
				{type: FailedScale, status: "True", reason: Quota, message: "m2: no room; m3: no room", lastTransitionTime: "2026-01-01T00:00:02Z"},
				{type: Progressing, status: "True", reason: CloneSetUpdated, message: "m1: going; m2: going", lastUpdateTime: "2026-01-01T00:00:03Z", lastTransitionTime: "2026-01-01T00:00:02Z"}]}`,
		},
		{
			"a CloneSet in no cluster says zero outright",
			`{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {generation: 2}, spec: {selector: {matchLabels: {app: x}}}}`,
			nil,
			`{observedGeneration: 0, replicas: 0, readyReplicas: 0, availableReplicas: 0, updatedReplicas: 0, updatedReadyReplicas: 0, updatedAvailableReplicas: 0, expectedUpdatedReplicas: 0, labelSelector: app=x}`,
		},
	})
}

func TestCloneSetRetain(t *testing.T) {
	checkRetain(t, []retainCase{
		{
			"a CloneSet does not name again the pods that are gone",
			`{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {annotations: {resourcetemplate.karmada.io/generation: "3"}}, spec: {scaleStrategy: {podsToDelete: [a, b]}}}`,
			`{metadata: {annotations: {resourcetemplate.karmada.io/generation: "3"}}, spec: {scaleStrategy: {podsToDelete: [b]}}}`,
			`{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {annotations: {resourcetemplate.karmada.io/generation: "3"}}, spec: {scaleStrategy: {podsToDelete: [b]}}}`,
		},
		{
			"a CloneSet names those that its template names newly",
			`{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {annotations: {resourcetemplate.karmada.io/generation: "4"}}, spec: {scaleStrategy: {podsToDelete: [a, b]}}}`,
			`{metadata: {annotations: {resourcetemplate.karmada.io/generation: "3"}}, spec: {scaleStrategy: {podsToDelete: [b]}}}`,
			`{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {annotations: {resourcetemplate.karmada.io/generation: "4"}}, spec: {scaleStrategy: {podsToDelete: [a, b]}}}`,
		},
		{
			"a CloneSet that Kruise Rollouts releases step by step is not released at once",
			`{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, spec: {replicas: 4, updateStrategy: {partition: 0, type: InPlaceIfPossible}}}`,
			`{metadata: {annotations: {rollouts.kruise.io/in-progressing: "{}"}}, spec: {replicas: 9, minReadySeconds: 7, updateStrategy: {partition: "80%", paused: true, maxSurge: 1}}}`,
			`{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {annotations: {rollouts.kruise.io/in-progressing: "{}"}}, spec: {replicas: 4, minReadySeconds: 7, updateStrategy: {partition: "80%", paused: true, maxSurge: 1, type: InPlaceIfPossible}}}`,
		},
	})
}

func TestAHeldCanaryIsNeverUnhealthyForFailover(t *testing.T) {
	held := read(t, `{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {generation: 2}, spec: {replicas: 3, updateStrategy: {partition: 2}},
		status: {observedGeneration: 2, replicas: 3, availableReplicas: 3, updatedReplicas: 1, updatedAvailableReplicas: 1}}`)
	h, err := interpreter.Health(t.Context(), held)
	if err != nil || h.Karmada() != "Healthy" {
		t.Errorf("got %s, %v", h.Karmada(), err)
	}
}
