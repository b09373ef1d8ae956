package builtin

import (
	"testing"

	"github.com/argosy-io/argosy/internal/core/interpret"
)

func TestAdvancedStatefulSetHealth(t *testing.T) {
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		checkHealth(t, "apps.kruise.io/"+version+", kind: StatefulSet", []healthCase{
			{"all updated and available", `{replicas: 3}`, `{observedGeneration: 2, replicas: 3, availableReplicas: 3, updatedReplicas: 3, updatedAvailableReplicas: 3}`, interpret.Healthy},
			{"a canary held by partition, which counts pods", `{replicas: 3, updateStrategy: {rollingUpdate: {partition: 2}}}`, `{observedGeneration: 2, replicas: 3, availableReplicas: 3, updatedReplicas: 1, updatedAvailableReplicas: 1}`, interpret.Suspended},
			{"one pod not available", `{replicas: 3, updateStrategy: {rollingUpdate: {partition: 2}}}`, `{observedGeneration: 2, replicas: 3, availableReplicas: 2, updatedReplicas: 1, updatedAvailableReplicas: 1}`, interpret.Progressing},
			{"paused", `{replicas: 3, updateStrategy: {rollingUpdate: {paused: true}}}`, `{observedGeneration: 2, replicas: 3, availableReplicas: 3, updatedReplicas: 1, updatedAvailableReplicas: 1}`, interpret.Suspended},
			{"OnDelete updates when its users like", `{replicas: 3, updateStrategy: {type: OnDelete}}`, `{observedGeneration: 2, replicas: 3, availableReplicas: 3}`, interpret.Healthy},
			{"pods refused", `{replicas: 3}`, `{observedGeneration: 2, replicas: 2, conditions: [{type: FailedCreatePod, status: "True"}]}`, interpret.Degraded},
			{"pods once refused", `{replicas: 1}`, `{observedGeneration: 2, replicas: 1, availableReplicas: 1, updatedReplicas: 1, updatedAvailableReplicas: 1, conditions: [{type: FailedCreatePod, status: "True"}]}`, interpret.Healthy},
		})
	}
}

func TestAdvancedStatefulSetAggregate(t *testing.T) {
	const done = `generation: 5, observedGeneration: 5, resourceTemplateGeneration: 2`
	checkAggregate(t, []aggregateCase{
		{
			"an Advanced StatefulSet adds up its volume claims by name",
			`{apiVersion: apps.kruise.io/v1beta1, kind: StatefulSet, metadata: {generation: 2}, spec: {selector: {matchLabels: {app: x}}}}`,
			[]string{
				`{replicas: 2, currentReplicas: 2, volumeClaims: [{volumeClaimName: log, compatibleReplicas: 1, compatibleReadyReplicas: 1}, {volumeClaimName: data, compatibleReplicas: 2, compatibleReadyReplicas: 2}], ` + done + `}`,
				`{replicas: 1, updatedAvailableReplicas: 1, volumeClaims: [{volumeClaimName: data, compatibleReplicas: 1, compatibleReadyReplicas: 0}], ` + done + `}`,
			},
			`{observedGeneration: 2, replicas: 3, readyReplicas: 0, availableReplicas: 0, currentReplicas: 2, updatedReplicas: 0, updatedReadyReplicas: 0, updatedAvailableReplicas: 1, labelSelector: app=x,
				volumeClaims: [{volumeClaimName: data, compatibleReplicas: 3, compatibleReadyReplicas: 2}, {volumeClaimName: log, compatibleReplicas: 1, compatibleReadyReplicas: 1}]}`,
		},
	})
}

func TestAdvancedStatefulSetRetain(t *testing.T) {
	checkRetain(t, []retainCase{
		{
			"one that Kruise Rollouts releases step by step is not released at once, though its strategy is one level down",
			`{apiVersion: apps.kruise.io/v1beta1, kind: StatefulSet, spec: {updateStrategy: {rollingUpdate: {partition: 0}}}}`,
			`{metadata: {annotations: {batchrelease.rollouts.kruise.io/control-info: x}}, spec: {updateStrategy: {rollingUpdate: {partition: 3}}}}`,
			`{apiVersion: apps.kruise.io/v1beta1, kind: StatefulSet, metadata: {annotations: {batchrelease.rollouts.kruise.io/control-info: x}}, spec: {updateStrategy: {rollingUpdate: {partition: 3}}}}`,
		},
	})
}
