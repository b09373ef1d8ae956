package builtin

import (
	"testing"

	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

func TestCloneSetHealth(t *testing.T) {
	checkHealth(t, "apps.kruise.io/v1alpha1, kind: CloneSet", []healthCase{
		{"all updated and available", `{replicas: 3}`,
			`{observedGeneration: 2, replicas: 3, availableReplicas: 3, updatedReplicas: 3, updatedReadyReplicas: 3, updatedAvailableReplicas: 3}`, interpret.Healthy},
		{"no status yet", `{replicas: 3}`, ``, interpret.Progressing},
		{"scaled to none", `{replicas: 0}`, `{observedGeneration: 2}`, interpret.Healthy},
		{"too few pods", `{replicas: 3}`,
			`{observedGeneration: 2, replicas: 2, availableReplicas: 2, updatedAvailableReplicas: 2}`, interpret.Progressing},
		{"one updated pod not available", `{replicas: 3}`,
			`{observedGeneration: 2, replicas: 3, availableReplicas: 2, updatedReplicas: 3, updatedReadyReplicas: 2, updatedAvailableReplicas: 2}`, interpret.Progressing},
		{"a canary paused by a number", `{replicas: 3, updateStrategy: {partition: 2}}`,
			`{observedGeneration: 2, replicas: 3, availableReplicas: 3, updatedReplicas: 1, updatedReadyReplicas: 1, updatedAvailableReplicas: 1}`, interpret.Suspended},
		{"a canary paused by a percentage, which rounds up", `{replicas: 3, updateStrategy: {partition: "50%"}}`,
			`{observedGeneration: 2, replicas: 3, availableReplicas: 3, updatedReplicas: 1, updatedAvailableReplicas: 1}`,
			interpret.Suspended},
		{"99% of a few is not all", `{replicas: 3, updateStrategy: {partition: "99%"}}`,
			`{observedGeneration: 2, replicas: 3, availableReplicas: 3, updatedReplicas: 0}`, interpret.Progressing},
		{"100% is all", `{replicas: 3, updateStrategy: {partition: "100%"}}`,
			`{observedGeneration: 2, replicas: 3, availableReplicas: 3, updatedReplicas: 0}`, interpret.Suspended},
		{"a canary on its way", `{replicas: 4, updateStrategy: {partition: 2}}`,
			`{observedGeneration: 2, replicas: 4, availableReplicas: 4, updatedReplicas: 1, updatedAvailableReplicas: 1}`,
			interpret.Progressing},
		{"a canary with one old pod down, within the default 20%", `{replicas: 5, updateStrategy: {partition: 4}}`,
			`{observedGeneration: 2, replicas: 5, availableReplicas: 4, updatedReplicas: 1, updatedAvailableReplicas: 1}`,
			interpret.Suspended},
		{"a canary with two old pods down", `{replicas: 5, updateStrategy: {partition: 4}}`,
			`{observedGeneration: 2, replicas: 5, availableReplicas: 3, updatedReplicas: 1, updatedAvailableReplicas: 1}`,
			interpret.Progressing},
		{"paused in the middle", `{replicas: 3, updateStrategy: {paused: true}}`,
			`{observedGeneration: 2, replicas: 3, availableReplicas: 3, updatedReplicas: 1, updatedAvailableReplicas: 1}`,
			interpret.Suspended},
		{"paused and short of pods", `{replicas: 3, updateStrategy: {paused: true}}`,
			`{observedGeneration: 2, replicas: 1, availableReplicas: 1}`, interpret.Progressing},
		{"its own deadline over", `{replicas: 3}`,
			`{observedGeneration: 2, replicas: 3, conditions: [{type: Progressing, status: "False", reason: ProgressDeadlineExceeded}]}`, interpret.Degraded},
		{"FailedUpdate left over on a good one", `{replicas: 3}`,
			`{observedGeneration: 2, replicas: 3, availableReplicas: 3, updatedReplicas: 3, updatedAvailableReplicas: 3, conditions: [{type: FailedUpdate, status: "True"}]}`, interpret.Healthy},
		{"FailedUpdate left over on a paused canary", `{replicas: 4, updateStrategy: {partition: 1}}`,
			`{observedGeneration: 2, replicas: 4, availableReplicas: 4, updatedReplicas: 3, updatedAvailableReplicas: 3, conditions: [{type: FailedUpdate, status: "True"}]}`, interpret.Suspended},
		{"FailedUpdate and short of updated pods: it counts once it stays", `{replicas: 3}`,
			`{observedGeneration: 2, replicas: 3, availableReplicas: 3, updatedReplicas: 1, updatedAvailableReplicas: 1, conditions: [{type: FailedUpdate, status: "True"}]}`, interpret.Progressing},
		{"FailedScale and short of pods: it counts once it stays", `{replicas: 3}`,
			`{observedGeneration: 2, replicas: 1, conditions: [{type: FailedScale, status: "True"}]}`, interpret.Progressing},
		{"an older OpenKruise, which does not count what is updated and available", `{replicas: 3}`,
			`{observedGeneration: 2, replicas: 3, availableReplicas: 3, updatedReplicas: 3, updatedReadyReplicas: 3}`,
			interpret.Healthy},
		{"a canary of half a per cent", `{replicas: 300, updateStrategy: {partition: "99.5%"}}`,
			`{observedGeneration: 2, replicas: 300, availableReplicas: 300, updatedReplicas: 1, updatedAvailableReplicas: 1}`,
			interpret.Suspended},
		{"a percentage that its own OpenKruise rounds otherwise", `{replicas: 3, updateStrategy: {partition: "50%"}}`,
			`{observedGeneration: 2, replicas: 3, availableReplicas: 3, expectedUpdatedReplicas: 1, updatedReplicas: 1, updatedAvailableReplicas: 1}`, interpret.Suspended},
		{"more kept back than there are", `{replicas: 3, updateStrategy: {partition: 8}}`,
			`{observedGeneration: 2, replicas: 3, availableReplicas: 3, updatedReplicas: 0}`, interpret.Suspended},
		{"a partition with nothing to hold", `{replicas: 3, updateStrategy: {partition: 2}}`,
			`{observedGeneration: 2, replicas: 3, availableReplicas: 3, updatedReplicas: 3, updatedAvailableReplicas: 3}`,
			interpret.Healthy},
		{"paused with a conflict left over and pods down for other reasons", `{replicas: 3, updateStrategy: {paused: true}}`,
			`{observedGeneration: 2, replicas: 3, availableReplicas: 1, updatedReplicas: 1, conditions: [{type: FailedUpdate, status: "True"}]}`, interpret.Progressing},
		{"paused after its deadline was over", `{replicas: 3, updateStrategy: {paused: true}}`,
			`{observedGeneration: 2, replicas: 3, availableReplicas: 3, updatedReplicas: 1, conditions: [{type: Progressing, status: "False", reason: ProgressDeadlineExceeded}]}`, interpret.Suspended},
		{"pods beside those it wants, while it surges", `{replicas: 3, updateStrategy: {maxSurge: 1}}`,
			`{observedGeneration: 2, replicas: 4, availableReplicas: 4, updatedReplicas: 3, updatedAvailableReplicas: 3}`,
			interpret.Progressing},
		{"numbers that a script wrote", `{replicas: 3.0}`,
			`{observedGeneration: 2.0, replicas: 3.0, availableReplicas: 3.0, updatedReplicas: 3.0, updatedAvailableReplicas: 3.0}`, interpret.Healthy},
		{"a status of nulls", `{replicas: 3}`,
			`{observedGeneration: 2, replicas: null, availableReplicas: null, updatedReplicas: null, conditions: null}`,
			interpret.Progressing},
		{"an unavailability of nonsense", `{replicas: 3, updateStrategy: {maxUnavailable: "-5%"}}`, `{observedGeneration: 2}`,
			interpret.Unknown},
		{"a surge of nonsense", `{replicas: 3, updateStrategy: {maxSurge: "NaN%"}}`, `{observedGeneration: 2}`,
			interpret.Unknown},
		{"a partition of nonsense", `{replicas: 3, updateStrategy: {partition: "5"}}`, `{observedGeneration: 2}`,
			interpret.Unknown},
	})
	checkHealth(t, "apps.kruise.io/v1beta1, kind: CloneSet", []healthCase{
		{"a canary paused by partition", `{replicas: 3, updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 2}}}`,
			`{observedGeneration: 2, replicas: 3, availableReplicas: 3, updatedReplicas: 1, updatedAvailableReplicas: 1}`,
			interpret.Suspended},
		{"paused", `{replicas: 3, updateStrategy: {type: RollingUpdate, rollingUpdate: {paused: true}}}`,
			`{observedGeneration: 2, replicas: 3, availableReplicas: 3}`, interpret.Suspended},
		{"OnDelete updates when its users like", `{replicas: 3, updateStrategy: {type: OnDelete}}`,
			`{observedGeneration: 2, replicas: 3, availableReplicas: 3, updatedReplicas: 0}`, interpret.Healthy},
	})
}

func TestCloneSetReplicas(t *testing.T) {
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		checkReplicas(t, "apps.kruise.io/"+version+", kind: CloneSet", []replicasCase{
			{"as many as it says", `{replicas: 4, template: {spec: {containers: [{resources: {requests: {cpu: 100m}}}]}}}`, 4,
				"cpu=100m", "main×4 cpu=100m"},
			{"one when it does not say", `{template: {spec: {containers: [{name: a}]}}}`, 1, "", "main×1"},
			{"none", `{replicas: 0, template: {spec: {}}}`, 0, "", "main×0"},
			{"a float that is whole", `{replicas: 2.0}`, 2, "unknown", "main×2 unknown"},
		})
		checkRefused(t, "apps.kruise.io/"+version+", kind: CloneSet", map[string]string{
			`{replicas: three}`:      "spec.replicas: three is not an integer",
			`{replicas: 1.5}`:        "spec.replicas: 1.5 is not an integer",
			`{replicas: -1}`:         "spec.replicas: -1 is not a number of replicas",
			`{replicas: 3000000000}`: "spec.replicas: 3000000000 is not a number of replicas",
		})
	}
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
			"what a cluster calls updated counts if it has the template: m2 did not answer since",
			`{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, metadata: {generation: 2}, spec: {replicas: 5}, status: {observedGeneration: 1}}`,
			[]string{
				`{replicas: 2, readyReplicas: 2, availableReplicas: 2, updatedReplicas: 2, updatedReadyReplicas: 2, updatedAvailableReplicas: 2, expectedUpdatedReplicas: 2, ` + done + `}`,
				`{replicas: 3, readyReplicas: 3, availableReplicas: 3, updatedReplicas: 3, updatedReadyReplicas: 3, updatedAvailableReplicas: 3, expectedUpdatedReplicas: 3, generation: 4, observedGeneration: 4, resourceTemplateGeneration: 1}`,
			},
			`{observedGeneration: 1, replicas: 5, readyReplicas: 5, availableReplicas: 5, updatedReplicas: 2, updatedReadyReplicas: 2, updatedAvailableReplicas: 2, expectedUpdatedReplicas: 5}`,
		},
		{
			"nor does it count before its controller has seen the template: that of m2 does not run",
			`{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, metadata: {generation: 2}, spec: {replicas: 5}, status: {observedGeneration: 1}}`,
			[]string{
				`{replicas: 2, readyReplicas: 2, availableReplicas: 2, updatedReplicas: 2, updatedReadyReplicas: 2, updatedAvailableReplicas: 2, expectedUpdatedReplicas: 2, ` + done + `}`,
				`{replicas: 3, readyReplicas: 3, availableReplicas: 3, updatedReplicas: 3, updatedReadyReplicas: 3, updatedAvailableReplicas: 3, expectedUpdatedReplicas: 3, generation: 5, observedGeneration: 4, resourceTemplateGeneration: 2}`,
			},
			`{observedGeneration: 1, replicas: 5, readyReplicas: 5, availableReplicas: 5, updatedReplicas: 2, updatedReadyReplicas: 2, updatedAvailableReplicas: 2, expectedUpdatedReplicas: 5}`,
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
			"an autoscaler in the member keeps the replicas, if the template's label says so",
			`{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, metadata: {labels: {resourcetemplate.karmada.io/retain-replicas: "true"}}, spec: {replicas: 2}}`,
			`{spec: {replicas: 5}}`,
			`{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, metadata: {labels: {resourcetemplate.karmada.io/retain-replicas: "true"}}, spec: {replicas: 5}}`,
		},
		{
			"without the label they are the template's",
			`{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, spec: {replicas: 2}}`,
			`{spec: {replicas: 5}}`,
			`{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, spec: {replicas: 2}}`,
		},
		{
			"a pause that Kruise Rollouts has lifted does not come back",
			`{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, spec: {minReadySeconds: 9, updateStrategy: {rollingUpdate: {paused: true, partition: 0}}}}`,
			`{metadata: {annotations: {batchrelease.rollouts.kruise.io/control-info: x}}, spec: {updateStrategy: {rollingUpdate: {partition: "50%"}}}}`,
			`{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, metadata: {annotations: {batchrelease.rollouts.kruise.io/control-info: x}}, spec: {updateStrategy: {rollingUpdate: {partition: "50%"}}}}`,
		},
		{
			"when Kruise Rollouts is done the template rules again",
			`{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, spec: {updateStrategy: {rollingUpdate: {partition: 0}}}}`,
			`{metadata: {annotations: {rollouts.kruise.io/in-progressing: ""}}, spec: {updateStrategy: {rollingUpdate: {partition: "50%"}}}}`,
			`{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, spec: {updateStrategy: {rollingUpdate: {partition: 0}}}}`,
		},
		{
			"a selector that cannot change stays where the pods still match it, and the object says so",
			`{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, spec: {selector: {matchLabels: {app: x, tier: web}}, template: {metadata: {labels: {app: x, tier: web}}}}}`,
			`{spec: {selector: {matchLabels: {app: x}}}}`,
			`{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, metadata: {annotations: {argosy.io/immutable-fields: 'spec.selector is still "app=x", but the template has "app=x,tier=web"'}},
				spec: {selector: {matchLabels: {app: x}}, template: {metadata: {labels: {app: x, tier: web}}}}}`,
		},
		{
			"a selector that the new pods do not match is sent, for the member to refuse",
			`{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, spec: {selector: {matchLabels: {app: y}}, template: {metadata: {labels: {app: y}}}}}`,
			`{spec: {selector: {matchLabels: {app: x}}}}`,
			`{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, spec: {selector: {matchLabels: {app: y}}, template: {metadata: {labels: {app: y}}}}}`,
		},
		{
			"a selector spelled otherwise is the same",
			`{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, spec: {selector: {matchExpressions: [{key: app, operator: In, values: [x]}], matchLabels: {}}}}`,
			`{spec: {selector: {matchLabels: {}, matchExpressions: [{key: app, operator: In, values: [x]}]}}}`,
			`{apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, spec: {selector: {matchExpressions: [{key: app, operator: In, values: [x]}], matchLabels: {}}}}`,
		},
		{
			"a CloneSet does not name again the pods that are gone",
			`{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {annotations: {resourcetemplate.karmada.io/generation: "3"}}, spec: {scaleStrategy: {podsToDelete: [a, b]}}}`,
			`{metadata: {annotations: {resourcetemplate.karmada.io/generation: "3"}}, spec: {scaleStrategy: {podsToDelete: [b]}}}`,
			`{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {annotations: {resourcetemplate.karmada.io/generation: "3"}}, spec: {scaleStrategy: {podsToDelete: [b]}}}`,
		},
		{
			"a CloneSet names pods that were not sent before with their replica",
			`{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {annotations: {resourcetemplate.karmada.io/generation: "3", argosy.io/sent-pods-to-delete: "b"}}, spec: {replicas: 2, scaleStrategy: {podsToDelete: [b]}}}`,
			`{metadata: {annotations: {resourcetemplate.karmada.io/generation: "3", argosy.io/sent-pods-to-delete: ""}}, spec: {replicas: 3, scaleStrategy: {podsToDelete: []}}}`,
			`{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {annotations: {resourcetemplate.karmada.io/generation: "3", argosy.io/sent-pods-to-delete: "b"}}, spec: {replicas: 2, scaleStrategy: {podsToDelete: [b]}}}`,
		},
		{
			"a CloneSet does not name again pods that were sent and are gone",
			`{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {annotations: {resourcetemplate.karmada.io/generation: "3", argosy.io/sent-pods-to-delete: "a,b"}}, spec: {scaleStrategy: {podsToDelete: [a, b]}}}`,
			`{metadata: {annotations: {resourcetemplate.karmada.io/generation: "3", argosy.io/sent-pods-to-delete: "a"}}, spec: {scaleStrategy: {podsToDelete: []}}}`,
			`{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {annotations: {resourcetemplate.karmada.io/generation: "3", argosy.io/sent-pods-to-delete: "a,b"}}, spec: {scaleStrategy: {podsToDelete: [b]}}}`,
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

func TestPausedCanaryIsNeverUnhealthy(t *testing.T) {
	suspended := read(t, `{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {generation: 2}, spec: {replicas: 3, updateStrategy: {partition: 2}},
		status: {observedGeneration: 2, replicas: 3, availableReplicas: 3, updatedReplicas: 1, updatedAvailableReplicas: 1}}`)
	h, err := interpreter.Health(t.Context(), suspended)
	if err != nil || h.Karmada() != "Healthy" {
		t.Errorf("got %s, %v", h.Karmada(), err)
	}
}
