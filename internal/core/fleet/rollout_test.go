package fleet

import "testing"

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
		h.expect("as they are while the workload is nowhere", of+"[map[replicas:2] map[replicas:50%]"+rest+" [map[replicas:2] map[replicas:50%]"+rest)
		h.in.Target = map[string]int64{"c1": 6, "c2": 3}
		h.expect("then by its replicas", of+"[map[replicas:1] map[replicas:50%] map[pause:map[] replicas:6] map[traffic:5%]] [map[replicas:1] map[replicas:50%] map[pause:map[] replicas:3] map[traffic:5%]]")
		h.in.Target = map[string]int64{"c1": 9}
		h.expect("one where there is none: a step of none is refused", of+"[map[replicas:2] map[replicas:50%]"+rest+" [map[replicas:1] map[replicas:50%] map[pause:map[] replicas:1] map[traffic:5%]]")
	}
	h := newHub(t, head+"v1beta1, kind: Rollout, metadata: {name: x}, spec: {workloadRef: {apiVersion: apps/v1, kind: Deployment, name: shop}, "+steps, 0, 0)
	if gk, name, ok := TargetOf(h.in.Template); ok {
		t.Errorf("one of each cluster is about %s %s", gk, name)
	}
}
