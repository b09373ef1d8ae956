package builtin

import (
	"testing"

	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

func TestSidecarSetHealth(t *testing.T) {
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		checkHealth(t, "apps.kruise.io/"+version+", kind: SidecarSet", []healthCase{
			{"in all pods", `{}`, `{observedGeneration: 2, matchedPods: 3, updatedPods: 3, readyPods: 3, updatedReadyPods: 3}`,
				interpret.Healthy},
			{"no pods yet", `{}`, `{observedGeneration: 2}`, interpret.Healthy},
			{"no status yet", `{}`, ``, interpret.Progressing},
			{"not seen yet", `{}`, `{observedGeneration: 1, matchedPods: 3, updatedPods: 3, updatedReadyPods: 3}`,
				interpret.Progressing},
			{"pods with the old one", `{}`, `{observedGeneration: 2, matchedPods: 3, updatedPods: 2, updatedReadyPods: 2}`,
				interpret.Progressing},
			{"an updated pod that is not ready", `{}`,
				`{observedGeneration: 2, matchedPods: 3, updatedPods: 3, updatedReadyPods: 2}`, interpret.Progressing},
			{"a canary paused by a number", `{updateStrategy: {partition: 2}}`,
				`{observedGeneration: 2, matchedPods: 3, updatedPods: 1, updatedReadyPods: 1}`, interpret.Suspended},
			{"a canary paused by a percentage, which rounds up", `{updateStrategy: {partition: "50%"}}`,
				`{observedGeneration: 2, matchedPods: 3, updatedPods: 1, updatedReadyPods: 1}`, interpret.Suspended},
			{"a canary of a tenth of three pods is one", `{updateStrategy: {partition: "90%"}}`,
				`{observedGeneration: 2, matchedPods: 3}`, interpret.Progressing},
			{"a canary on its way", `{updateStrategy: {partition: 1}}`,
				`{observedGeneration: 2, matchedPods: 3, updatedPods: 1, updatedReadyPods: 1}`, interpret.Progressing},
			{"a canary whose pod is not ready", `{updateStrategy: {partition: 2}}`,
				`{observedGeneration: 2, matchedPods: 3, updatedPods: 1, updatedReadyPods: 0}`, interpret.Progressing},
			{"a partition with nothing to hold", `{updateStrategy: {partition: 2}}`,
				`{observedGeneration: 2, matchedPods: 3, updatedPods: 3, updatedReadyPods: 3}`, interpret.Healthy},
			{"a canary of the pods that a selector picks", `{updateStrategy: {selector: {matchLabels: {canary: "yes"}}}}`,
				`{observedGeneration: 2, matchedPods: 3, updatedPods: 1, updatedReadyPods: 1}`, interpret.Suspended},
			{"paused in the middle", `{updateStrategy: {paused: true}}`,
				`{observedGeneration: 2, matchedPods: 3, updatedPods: 1, updatedReadyPods: 0}`, interpret.Suspended},
			{"paused at the end", `{updateStrategy: {paused: true}}`,
				`{observedGeneration: 2, matchedPods: 3, updatedPods: 3, updatedReadyPods: 3}`, interpret.Healthy},
			{"only for new pods", `{updateStrategy: {type: NotUpdate}}`,
				`{observedGeneration: 2, matchedPods: 3, updatedPods: 1, updatedReadyPods: 1}`, interpret.Suspended},
			{"only for new pods, and all are", `{updateStrategy: {type: NotUpdate}}`,
				`{observedGeneration: 2, matchedPods: 3, updatedPods: 3, updatedReadyPods: 3}`, interpret.Healthy},
			{"a partition of nonsense", `{updateStrategy: {partition: half}}`, `{observedGeneration: 2}`, interpret.Unknown},
		})
	}
}

func TestSidecarSetAggregate(t *testing.T) {
	const done = `generation: 5, observedGeneration: 5, resourceTemplateGeneration: 2`
	checkAggregate(t, []aggregateCase{
		{
			"adds up its pods and agrees on a revision",
			`{apiVersion: apps.kruise.io/v1alpha1, kind: SidecarSet, metadata: {generation: 2}, spec: {containers: [{name: log}]}}`,
			[]string{
				`{matchedPods: 3, updatedPods: 2, readyPods: 3, updatedReadyPods: 1, latestRevision: log-1, collisionCount: 1, ` +
					done + `}`,
				`{matchedPods: 2, updatedPods: 2, readyPods: 2, latestRevision: log-1, ` + done + `}`,
			},
			`{observedGeneration: 2, matchedPods: 5, updatedPods: 4, readyPods: 5, updatedReadyPods: 1, latestRevision: log-1, collisionCount: 1}`,
		},
		{
			"is not observed while a cluster has not got it, though the others' pods count",
			`{apiVersion: apps.kruise.io/v1beta1, kind: SidecarSet, metadata: {generation: 2}, status: {observedGeneration: 1}}`,
			[]string{`{matchedPods: 3, updatedPods: 2, readyPods: 3, updatedReadyPods: 1, latestRevision: log-1, ` + done + `}`,
				``},
			`{observedGeneration: 1, matchedPods: 3, updatedPods: 2, readyPods: 3, updatedReadyPods: 1, latestRevision: log-1}`,
		},
		{
			"revisions that clusters disagree on are left out",
			`{apiVersion: apps.kruise.io/v1beta1, kind: SidecarSet, metadata: {generation: 2}}`,
			[]string{`{matchedPods: 1, latestRevision: log-1, ` + done + `}`, `{latestRevision: log-2, ` + done + `}`},
			`{observedGeneration: 2, matchedPods: 1, updatedPods: 0, readyPods: 0, updatedReadyPods: 0}`,
		},
		{
			"in no cluster it counts none, whatever it counted",
			`{apiVersion: apps.kruise.io/v1beta1, kind: SidecarSet, metadata: {generation: 2}, status: {observedGeneration: 1, matchedPods: 7}}`,
			nil,
			`{observedGeneration: 1, matchedPods: 0, updatedPods: 0, readyPods: 0, updatedReadyPods: 0}`,
		},
	})
}

func TestSidecarSetRetain(t *testing.T) {
	checkRetain(t, []retainCase{
		{
			"the hashes are the member's, whichever the template was exported with",
			`{apiVersion: apps.kruise.io/v1beta1, kind: SidecarSet, metadata: {annotations: {kruise.io/sidecarset-hash: hub, mine: x}}, spec: {containers: [{name: log}]}}`,
			`{metadata: {annotations: {kruise.io/sidecarset-hash: m1, kruise.io/sidecarset-hash-without-image: m2, other: z}}, spec: {containers: [{name: log, podInjectPolicy: BeforeAppContainer}]}}`,
			`{apiVersion: apps.kruise.io/v1beta1, kind: SidecarSet, metadata: {annotations: {kruise.io/sidecarset-hash: m1, kruise.io/sidecarset-hash-without-image: m2, mine: x}}, spec: {containers: [{name: log}]}}`,
		},
		{
			"there is nothing to keep before the member's webhook has seen it",
			`{apiVersion: apps.kruise.io/v1beta1, kind: SidecarSet, spec: {containers: [{name: log}]}}`, `{spec: {}}`,
			`{apiVersion: apps.kruise.io/v1beta1, kind: SidecarSet, spec: {containers: [{name: log}]}}`,
		},
	})
}

func TestSidecarSetDependencies(t *testing.T) {
	const needs = `initContainers: [{name: i, envFrom: [{configMapRef: {name: init}}]}],
		containers: [{name: c, podInjectPolicy: BeforeAppContainer, transferEnv: [{sourceContainerName: main, envName: X}], env: [{name: K, valueFrom: {secretKeyRef: {name: key, key: k}}}]}],
		volumes: [{name: conf, projected: {sources: [{configMap: {name: conf}}]}}], imagePullSecrets: [{name: pull}]`
	for _, c := range []struct{ name, spec, want string }{
		{
			"in the namespace that the old version names", `{namespace: shop, ` + needs + `}`,
			"shop ConfigMap/conf, shop ConfigMap/init, shop Secret/key, shop Secret/pull",
		},
		{
			"in the namespace that it selects by name",
			`{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: shop}}, ` + needs + `}`,
			"shop ConfigMap/conf, shop ConfigMap/init, shop Secret/key, shop Secret/pull",
		},
		{
			"in each of several", `{namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: In, values: [b, a, b]}]}, imagePullSecrets: [{name: pull}]}`,
			"a Secret/pull, b Secret/pull",
		},
		{"nowhere known, when any namespace may be meant", `{namespaceSelector: {matchLabels: {team: x}}, ` + needs + `}`,
			""},
		{"nowhere known, without a selector", `{` + needs + `}`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, version := range []string{"v1alpha1", "v1beta1"} {
				if got := dependencies(t, read(t, `{apiVersion: apps.kruise.io/`+version+
					`, kind: SidecarSet, metadata: {name: log}, spec: `+c.spec+`}`)); got != c.want {
					t.Errorf("%s\ngot  %s\nwant %s", version, got, c.want)
				}
			}
		})
	}
}
