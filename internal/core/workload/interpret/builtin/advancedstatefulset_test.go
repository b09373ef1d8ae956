package builtin

import (
	"encoding/json"
	"testing"

	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

func TestAdvancedStatefulSetHealth(t *testing.T) {
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		checkHealth(t, "apps.kruise.io/"+version+", kind: StatefulSet", []healthCase{
			{"all updated and available", `{replicas: 3}`,
				`{observedGeneration: 2, replicas: 3, availableReplicas: 3, updatedReplicas: 3, updatedAvailableReplicas: 3}`,
				interpret.Healthy},
			{"a canary paused by partition, which counts pods", `{replicas: 3, updateStrategy: {rollingUpdate: {partition: 2}}}`,
				`{observedGeneration: 2, replicas: 3, availableReplicas: 3, updatedReplicas: 1, updatedAvailableReplicas: 1}`,
				interpret.Suspended},
			{"one pod not available", `{replicas: 3, updateStrategy: {rollingUpdate: {partition: 2}}}`,
				`{observedGeneration: 2, replicas: 3, availableReplicas: 2, updatedReplicas: 1, updatedAvailableReplicas: 1}`,
				interpret.Progressing},
			{"paused", `{replicas: 3, updateStrategy: {rollingUpdate: {paused: true}}}`,
				`{observedGeneration: 2, replicas: 3, availableReplicas: 3, updatedReplicas: 1, updatedAvailableReplicas: 1}`,
				interpret.Suspended},
			{"OnDelete updates when its users like", `{replicas: 3, updateStrategy: {type: OnDelete}}`,
				`{observedGeneration: 2, replicas: 3, availableReplicas: 3}`, interpret.Healthy},
			{"pods refused: it counts once it stays", `{replicas: 3}`,
				`{observedGeneration: 2, replicas: 2, conditions: [{type: FailedCreatePod, status: "True"}]}`,
				interpret.Progressing},
			{"an update refused while it is paused", `{replicas: 3, updateStrategy: {rollingUpdate: {paused: true}}}`,
				`{observedGeneration: 2, replicas: 3, availableReplicas: 2, updatedReplicas: 1, conditions: [{type: FailedUpdatePod, status: "True"}]}`, interpret.Progressing},
			{"an update refused: it counts once it stays", `{replicas: 3}`,
				`{observedGeneration: 2, replicas: 3, availableReplicas: 3, updatedReplicas: 1, updatedAvailableReplicas: 1, conditions: [{type: FailedUpdatePod, status: "True"}]}`, interpret.Progressing},
			{"all kept back", `{replicas: 3, updateStrategy: {rollingUpdate: {partition: 9}}}`,
				`{observedGeneration: 2, replicas: 3, availableReplicas: 3}`, interpret.Suspended},
			{"scaled to none", `{replicas: 0}`, `{observedGeneration: 2}`, interpret.Healthy},
			{"no status yet", `{replicas: 3}`, ``, interpret.Progressing},
			{"not seen yet", `{replicas: 1}`,
				`{observedGeneration: 1, replicas: 1, availableReplicas: 1, updatedReplicas: 1, updatedAvailableReplicas: 1}`,
				interpret.Progressing},
			{"a partition that is not a number of pods", `{replicas: 3, updateStrategy: {rollingUpdate: {partition: "10%"}}}`,
				`{observedGeneration: 2}`, interpret.Unknown},
			{"pods once refused", `{replicas: 1}`,
				`{observedGeneration: 2, replicas: 1, availableReplicas: 1, updatedReplicas: 1, updatedAvailableReplicas: 1, conditions: [{type: FailedCreatePod, status: "True"}]}`, interpret.Healthy},
		})
	}
}

func TestAdvancedStatefulSetReplicas(t *testing.T) {
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		checkReplicas(t, "apps.kruise.io/"+version+", kind: StatefulSet", []replicasCase{
			{"as many as it says", `{replicas: 6, template: {spec: {priorityClassName: high, containers: [{resources: {requests: {memory: 1Gi}}}]}}}`, 6, "memory=1Gi", "main×6 memory=1Gi"},
			{"one when it does not say", `{template: {spec: {nodeSelector: {disk: ssd}}}}`, 1, "disk=ssd", "main×1 disk=ssd"},
		})
	}
}

func TestAdvancedStatefulSetDependencies(t *testing.T) {
	obj := read(t, `{apiVersion: apps.kruise.io/v1beta1, kind: StatefulSet, metadata: {namespace: ns, name: db}, spec: {serviceName: db-headless,
		volumeClaimTemplates: [{metadata: {name: data}}],
		template: {spec: {serviceAccountName: bot, volumes: [{name: data, persistentVolumeClaim: {claimName: anything}}, {name: conf, configMap: {name: conf}}]}}}}`)
	if got, want := dependencies(t, obj), "ns ConfigMap/conf, ns Service/db-headless, ns ServiceAccount/bot"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
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
			"an autoscaler in the member keeps the replicas, if the template's label says so",
			`{apiVersion: apps.kruise.io/v1beta1, kind: StatefulSet, metadata: {labels: {resourcetemplate.karmada.io/retain-replicas: "true"}}, spec: {replicas: 2}}`,
			`{spec: {replicas: 5}}`,
			`{apiVersion: apps.kruise.io/v1beta1, kind: StatefulSet, metadata: {labels: {resourcetemplate.karmada.io/retain-replicas: "true"}}, spec: {replicas: 5}}`,
		},
		{
			"what cannot change stays, the rest arrives, and the object says what stayed",
			`{apiVersion: apps.kruise.io/v1beta1, kind: StatefulSet, spec: {replicas: 3, serviceName: new, podManagementPolicy: Parallel, template: {spec: {containers: [{image: v2}]}}}}`,
			`{spec: {replicas: 1, serviceName: old, podManagementPolicy: OrderedReady, template: {spec: {containers: [{image: v1}]}}}}`,
			`{apiVersion: apps.kruise.io/v1beta1, kind: StatefulSet, metadata: {annotations: {argosy.io/immutable-fields: 'spec.serviceName is still "old", but the template has "new"; spec.podManagementPolicy is still "OrderedReady", but the template has "Parallel"'}},
				spec: {replicas: 3, serviceName: old, podManagementPolicy: OrderedReady, template: {spec: {containers: [{image: v2}]}}}}`,
		},
		{
			"what the template leaves to the member is no clash",
			`{apiVersion: apps.kruise.io/v1beta1, kind: StatefulSet, spec: {replicas: 3}}`,
			`{spec: {serviceName: db, podManagementPolicy: OrderedReady}}`,
			`{apiVersion: apps.kruise.io/v1beta1, kind: StatefulSet, spec: {replicas: 3}}`,
		},
		{
			"claims do not shrink, and may grow",
			`{apiVersion: apps.kruise.io/v1beta1, kind: StatefulSet, spec: {volumeClaimTemplates: [
				{metadata: {name: data}, spec: {storageClassName: fast, resources: {requests: {storage: 512Mi}}}},
				{metadata: {name: log}, spec: {resources: {requests: {storage: 2Gi}}}}, {metadata: {name: new}, spec: {resources: {requests: {storage: 1Gi}}}}]}}`,
			`{spec: {volumeClaimTemplates: [{metadata: {name: log}, spec: {resources: {requests: {storage: 1Gi}}}}, {metadata: {name: data}, spec: {resources: {requests: {storage: 1Gi}}}}]}}`,
			`{apiVersion: apps.kruise.io/v1beta1, kind: StatefulSet, metadata: {annotations: {argosy.io/immutable-fields: 'the storage of spec.volumeClaimTemplates[data] is still 1Gi, but the template has 512Mi, and volume claims cannot shrink'}}, spec: {volumeClaimTemplates: [
				{metadata: {name: data}, spec: {storageClassName: fast, resources: {requests: {storage: 1Gi}}}},
				{metadata: {name: log}, spec: {resources: {requests: {storage: 2Gi}}}}, {metadata: {name: new}, spec: {resources: {requests: {storage: 1Gi}}}}]}}`,
		},
		{
			"one that Kruise Rollouts releases step by step is not released at once, though its strategy is one level down",
			`{apiVersion: apps.kruise.io/v1beta1, kind: StatefulSet, spec: {updateStrategy: {rollingUpdate: {partition: 0}}}}`,
			`{metadata: {annotations: {batchrelease.rollouts.kruise.io/control-info: x}}, spec: {updateStrategy: {rollingUpdate: {partition: 3}}}}`,
			`{apiVersion: apps.kruise.io/v1beta1, kind: StatefulSet, metadata: {annotations: {batchrelease.rollouts.kruise.io/control-info: x}}, spec: {updateStrategy: {rollingUpdate: {partition: 3}}}}`,
		},
	})
}

// A field that a member keeps against the template is reported in the template's conditions.
func TestKeptImmutableFieldsAreReported(t *testing.T) {
	desired := read(t, `{apiVersion: apps.kruise.io/v1beta1, kind: StatefulSet, metadata: {generation: 1, annotations: {resourcetemplate.karmada.io/generation: "2"}}, spec: {serviceName: new}}`)
	member := retained(t, desired, read(t,
		`{apiVersion: apps.kruise.io/v1beta1, kind: StatefulSet, spec: {serviceName: old}}`))
	member.Object["status"] = tree(t, `{observedGeneration: 1, replicas: 1, conditions: [{type: FailedCreatePod, status: "False"}]}`)
	status, err := interpreter.Reflect(t.Context(), member)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(status)
	if err != nil {
		t.Fatal(err)
	}
	got := aggregated(t, read(t, `{apiVersion: apps.kruise.io/v1beta1, kind: StatefulSet, metadata: {generation: 2}}`),
		items(t, string(raw), `{observedGeneration: 1, generation: 1, resourceTemplateGeneration: 2}`))
	want := `m1: spec.serviceName is still "old", but the template has "new"; this field is immutable: revert the template, or delete the object in the member to have it recreated`
	if state, message := conditionText(got, "ImmutableFieldConflict", "status"),
		conditionText(got, "ImmutableFieldConflict", "message"); state != "True" || message != want {
		t.Errorf("got %s: %s\nwant %s", state, message, want)
	}
	if len(objects(member.Object, "status", "conditions")) != 1 {
		t.Error("the member's status was changed")
	}

	desired = read(t, `{apiVersion: apps.kruise.io/v1beta1, kind: StatefulSet, spec: {serviceName: old}}`)
	if again := retained(t, desired, member); again != desired {
		t.Errorf("the mark stays on an object without a clash:\n%s", show(again.Object))
	}
}
