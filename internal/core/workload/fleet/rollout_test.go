package fleet

import (
	"fmt"
	"github.com/argosy-io/argosy/api/wellknown"
	"testing"
)

// A step of a Kruise Rollout that names pods means those of all clusters together.
func TestTheStepsOfARolloutAreDividedByTheReplicasOfItsWorkload(t *testing.T) {
	const head = "{apiVersion: rollouts.kruise.io/"
	const steps = "strategy: {canary: {steps: [{replicas: 2}, {replicas: 50%}, {replicas: 9, pause: {}}, {traffic: 5%}]}}}}"
	for version, text := range map[string]string{
		"v1beta1":  "spec: {workloadRef: {apiVersion: apps.kruise.io/v1beta1, kind: CloneSet, name: shop}, ",
		"v1alpha1": "spec: {objectRef: {workloadRef: {apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, name: shop}}, ",
	} {
		h := newHub(t, head+version+", kind: Rollout, "+fleetWide+", "+text+steps, 0, 0)
		h.in.Divided = false
		if gk, name, ok := TargetOf(h.in.Template); !ok || gk != cloneSetKind || name != "shop" {
			t.Errorf("%s: it is about %s %s (%v)", version, gk, name, ok)
		}
		const of = "spec.strategy.canary.steps="
		const rest = " map[pause:map[] replicas:9] map[traffic:5%]]"
		h.expect("as they are while the workload is nowhere", of+"[map[replicas:2] map[replicas:50%]"+rest+
			" [map[replicas:2] map[replicas:50%]"+rest)
		h.in.Target = map[string]int64{"c1": 6, "c2": 3}
		h.expect("then by its replicas", of+
			"[map[replicas:1] map[replicas:50%] map[pause:map[] replicas:6] map[traffic:5%]] [map[replicas:1] map[replicas:50%] map[pause:map[] replicas:3] map[traffic:5%]]")
		h.in.Target = map[string]int64{"c1": 9}
		h.expect("one where there is none: a step of none is refused", of+"[map[replicas:2] map[replicas:50%]"+rest+
			" [map[replicas:1] map[replicas:50%] map[pause:map[] replicas:1] map[traffic:5%]]")
	}
	h := newHub(t, head+"v1beta1, kind: Rollout, metadata: {name: x}, spec: {workloadRef: {apiVersion: apps/v1, kind: Deployment, name: shop}, "+steps, 0, 0)
	if gk, name, ok := TargetOf(h.in.Template); ok {
		t.Errorf("one of each cluster is about %s %s", gk, name)
	}
}

// A Rollout refuses a step of no pods: where a step has none, it is held until the others are at one that has.
func TestRolloutBeginsInAClusterAtItsFirstStepWithPods(t *testing.T) {
	h := newHub(t, "{apiVersion: rollouts.kruise.io/v1beta1, kind: Rollout, "+fleetWide+`, spec: {workloadRef: {apiVersion: apps/v1, kind: Deployment, name: shop},
		strategy: {canary: {steps: [{replicas: 1, pause: {}}, {replicas: 3, pause: {}}, {replicas: 100%}]}}}}`, 0, 0)
	h.in.Divided = false
	h.in.Target = map[string]int64{"c1": 6, "c2": 2}
	const of, paused = "spec.strategy.canary.steps=", "spec.strategy.paused="
	const inC1, inC2 = "[map[pause:map[] replicas:1] map[pause:map[] replicas:2] map[replicas:100%]]",
		"[map[pause:map[duration:1] replicas:1] map[pause:map[] replicas:1] map[replicas:100%]]"
	at := func(phase string, step int, revision string) string {
		return fmt.Sprintf("phase: %s, canaryStatus: {currentStepIndex: %d, currentStepState: StepPaused, canaryRevision: %s}", phase, step, revision)
	}
	const waits, free = paused + "<nil> true", paused + "<nil> <nil>"
	h.expect("before anything is known", of+inC1+" "+inC2, waits)
	h.report(at("Healthy", 3, "a1"), at("Healthy", 3, "b1"))
	h.expect("at rest", waits)
	h.report(silent, at("Progressing", 1, "b2"))
	h.expect("when it sees the new template first", waits)
	h.report(at("Progressing", 1, "a2"), silent)
	h.expect("at a step that has none for it", waits)
	h.report(at("Progressing", 2, "a2"), silent)
	h.expect("at the first step that has", of+inC1+" "+inC2, free)
	h.report(at("Healthy", 3, "a2"), at("Progressing", 2, "b2"))
	h.expect("when the other has ended", free)
	h.report(silent, at("Healthy", 3, "b2"))
	h.expect("at rest again", waits)
	h.report(at("Progressing", 1, "a3"), silent)
	h.expect("the next one begins in the other", waits)
	h.report(at("Healthy", 3, "a3"), at("Progressing", 1, "b3"))
	h.expect("and ended there before it was seen here", free)

	h.in.Target = map[string]int64{"c1": 6}
	h.expect("a cluster without pods holds nobody up, and is not held", free)
	h.in.Target = map[string]int64{"c1": 4, "c2": 4}
	h.report(at("Healthy", 3, "a3"), at("Healthy", 3, "b3"))
	h.expect("of equal ones the first begins", waits)
}

func TestLateClusterBlocksNoOther(t *testing.T) {
	h := newHub(t, "{apiVersion: rollouts.kruise.io/v1beta1, kind: Rollout, "+fleetWide+`, spec: {workloadRef: {apiVersion: apps/v1, kind: Deployment, name: shop},
		strategy: {canary: {steps: [{replicas: 1, pause: {}}, {replicas: 3, pause: {}}, {replicas: 100%}]}}}}`, 0, 0, 0)
	h.in.Divided = false
	h.in.Target = map[string]int64{"c1": 4, "c2": 3, "c3": 1}
	at := func(step int) string {
		return fmt.Sprintf("phase: Progressing, canaryStatus: {currentStepIndex: %d, canaryRevision: new}", step)
	}
	h.expect("at first", "spec.strategy.paused=<nil> true true")
	h.report(at(2), at(1), at(1))
	h.expect("in the second step one more has a pod", "spec.strategy.paused=<nil> <nil> true")
	h.report(at(3), at(2), silent)
	h.expect("while it is there", "spec.strategy.paused=<nil> <nil> true")
	h.report(silent, at(3), silent)
	h.expect("in the last, all", "spec.strategy.paused=<nil> <nil> <nil>")
	h.report(at(2), at(1), at(1))
	h.in.Members[1].Reachable = false
	h.expect("without an answer of one", "spec.strategy.paused=<nil> <nil> true")
	h.in.Template.SetAnnotations(map[string]string{wellknown.RolloutScopeAnnotation: "Fleet",
		wellknown.UnreachableClustersAnnotation: "Ignore"})
	h.report(at(3), silent, silent)
	h.expect("which is to be ignored", "spec.strategy.paused=<nil> <nil> <nil>")
}
