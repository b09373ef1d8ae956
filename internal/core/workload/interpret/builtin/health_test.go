package builtin

import (
	"testing"

	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

func TestHealth(t *testing.T) {
	const (
		H = interpret.Healthy
		P = interpret.Progressing
		S = interpret.Suspended
		D = interpret.Degraded
		U = interpret.Unknown
	)
	for kind, cases := range map[string][]healthCase{
		"apps/v1, kind: Deployment": {
			{"all updated and available", `{replicas: 2}`,
				`{observedGeneration: 2, replicas: 2, updatedReplicas: 2, availableReplicas: 2}`, H},
			{"replicas unset are one", `{}`, `{observedGeneration: 2, replicas: 1, updatedReplicas: 1, availableReplicas: 1}`,
				H},
			{"scaled to none", `{replicas: 0}`, `{observedGeneration: 2}`, H},
			{"not seen yet", `{replicas: 2}`, `{observedGeneration: 1, replicas: 2, updatedReplicas: 2, availableReplicas: 2}`,
				P},
			{"no status yet", `{replicas: 2}`, ``, P},
			{"too few updated", `{replicas: 2}`,
				`{observedGeneration: 2, replicas: 2, updatedReplicas: 1, availableReplicas: 2}`, P},
			{"old pods still there", `{replicas: 2}`,
				`{observedGeneration: 2, replicas: 3, updatedReplicas: 2, availableReplicas: 3}`, P},
			{"updated ones not available", `{replicas: 2}`,
				`{observedGeneration: 2, replicas: 2, updatedReplicas: 2, availableReplicas: 1}`, P},
			{"its own deadline over", `{replicas: 2}`,
				`{observedGeneration: 2, replicas: 2, updatedReplicas: 1, conditions: [{type: Progressing, status: "False", reason: ProgressDeadlineExceeded}]}`, D},
			{"paused in the middle", `{replicas: 2, paused: true}`,
				`{observedGeneration: 2, replicas: 2, updatedReplicas: 1, availableReplicas: 2}`, S},
			{"replicas of nonsense", `{replicas: x}`, `{}`, U},
		},
		"apps/v1, kind: ReplicaSet": {
			{"all available", `{replicas: 2}`, `{observedGeneration: 2, replicas: 2, availableReplicas: 2}`, H},
			{"not all available", `{replicas: 2}`, `{observedGeneration: 2, replicas: 2, availableReplicas: 1}`, P},
			{"pods refused", `{replicas: 2}`,
				`{observedGeneration: 2, replicas: 1, availableReplicas: 1, conditions: [{type: ReplicaFailure, status: "True"}]}`,
				D},
		},
		"apps/v1, kind: StatefulSet": {
			{"all updated and available", `{replicas: 2}`,
				`{observedGeneration: 2, replicas: 2, updatedReplicas: 2, availableReplicas: 2}`, H},
			{"the generation of the set, not of anything else, is compared", `{replicas: 2}`,
				`{observedGeneration: 1, replicas: 2, updatedReplicas: 2, availableReplicas: 2}`, P},
			{"too few updated", `{replicas: 2}`,
				`{observedGeneration: 2, replicas: 2, updatedReplicas: 1, availableReplicas: 2}`, P},
			{"a canary paused by partition", `{replicas: 4, updateStrategy: {rollingUpdate: {partition: 3}}}`,
				`{observedGeneration: 2, replicas: 4, updatedReplicas: 1, availableReplicas: 4}`, S},
			{"a canary on its way", `{replicas: 4, updateStrategy: {rollingUpdate: {partition: 2}}}`,
				`{observedGeneration: 2, replicas: 4, updatedReplicas: 1, availableReplicas: 4}`, P},
			{"a partition with nothing to hold", `{replicas: 4, updateStrategy: {rollingUpdate: {partition: 2}}}`,
				`{observedGeneration: 2, replicas: 4, updatedReplicas: 4, availableReplicas: 4}`, H},
			{"a partition counts from the first ordinal",
				`{replicas: 4, ordinals: {start: 10}, updateStrategy: {rollingUpdate: {partition: 13}}}`,
				`{observedGeneration: 2, replicas: 4, updatedReplicas: 1, availableReplicas: 4}`, S},
			{"OnDelete updates when its users like", `{replicas: 2, updateStrategy: {type: OnDelete}}`,
				`{observedGeneration: 2, replicas: 2, updatedReplicas: 0, availableReplicas: 2}`, H},
		},
		"apps/v1, kind: DaemonSet": {
			{"on all nodes", `{}`, `{observedGeneration: 2, desiredNumberScheduled: 3, updatedNumberScheduled: 3, numberAvailable: 3}`, H},
			{"on no node", `{}`, `{observedGeneration: 2}`, H},
			{"not all updated", `{}`, `{observedGeneration: 2, desiredNumberScheduled: 3, updatedNumberScheduled: 2, numberAvailable: 3}`, P},
			{"OnDelete needs no update", `{updateStrategy: {type: OnDelete}}`,
				`{observedGeneration: 2, desiredNumberScheduled: 3, numberAvailable: 3}`, H},
			{"not all available", `{}`, `{observedGeneration: 2, desiredNumberScheduled: 3, updatedNumberScheduled: 3, numberAvailable: 2}`, P},
		},
		"v1, kind: Pod": {
			{"ready", `{}`, `{phase: Running, conditions: [{type: Ready, status: "True"}]}`, H},
			{"done", `{}`, `{phase: Succeeded}`, H},
			{"running and not ready", `{}`, `{phase: Running, conditions: [{type: Ready, status: "False"}]}`, P},
			{"not started", `{}`, `{phase: Pending}`, P},
			{"failed", `{}`, `{phase: Failed}`, D},
			{"crashing again and again", `{}`,
				`{phase: Running, containerStatuses: [{state: {waiting: {reason: CrashLoopBackOff}}}]}`, D},
			{"without its image", `{}`, `{phase: Pending, initContainerStatuses: [{state: {waiting: {reason: ErrImagePull}}}]}`,
				D},
			{"starting its containers", `{}`,
				`{phase: Pending, containerStatuses: [{state: {waiting: {reason: ContainerCreating}}}]}`, P},
			{"on a lost node", `{}`, `{phase: Unknown}`, U},
		},
		"v1, kind: Service": {
			{"without a load balancer", `{type: ClusterIP}`, `{loadBalancer: {}}`, H},
			{"waiting for its load balancer", `{type: LoadBalancer}`, `{loadBalancer: {}}`, P},
			{"with its load balancer", `{type: LoadBalancer}`, `{loadBalancer: {ingress: [{hostname: a.example}]}}`, H},
		},
		"networking.k8s.io/v1, kind: Ingress": {
			{"without an address", `{}`, `{}`, P},
			{"with an address", `{}`, `{loadBalancer: {ingress: [{ip: 1.2.3.4}]}}`, H},
		},
		"v1, kind: PersistentVolumeClaim": {
			{"bound", `{}`, `{phase: Bound}`, H},
			{"waiting", `{}`, `{phase: Pending}`, P},
			{"lost", `{}`, `{phase: Lost}`, D},
		},
		"policy/v1, kind: PodDisruptionBudget": {
			{"enough pods", `{}`, `{observedGeneration: 2, currentHealthy: 2, desiredHealthy: 2}`, H},
			{"too few pods", `{}`, `{observedGeneration: 2, currentHealthy: 1, desiredHealthy: 2}`, D},
			{"not seen yet", `{}`, `{currentHealthy: 1, desiredHealthy: 2}`, P},
		},
	} {
		t.Run(kind, func(t *testing.T) { checkHealth(t, kind, cases) })
	}
}

// healthCase is a member's object of generation 2, by its spec and its status (empty for none), and how it does. A spec
// that is not understood is Unknown, and an error.
type healthCase struct {
	name, spec, status string
	want               interpret.Health
}

func checkHealth(t *testing.T, kind string, cases []healthCase) {
	t.Helper()
	for _, c := range cases {
		text := `{apiVersion: ` + kind + `, metadata: {generation: 2}, spec: ` + c.spec
		if c.status != "" {
			text += `, status: ` + c.status
		}
		got, err := interpreter.Health(t.Context(), read(t, text+`}`))
		if got != c.want || (err != nil) != (c.want == interpret.Unknown && kind != "v1, kind: Pod") {
			t.Errorf("%s: got %s, %v; want %s", c.name, got, err, c.want)
		}
	}
}
