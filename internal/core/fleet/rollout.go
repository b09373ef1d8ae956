package fleet

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var rolloutKind = schema.GroupKind{Group: "rollouts.kruise.io", Kind: "Rollout"}

// rolloutTarget is what a Kruise Rollout names as its workload, in either version's place.
func rolloutTarget(template *unstructured.Unstructured) map[string]any {
	if ref := object(template.Object, "spec", "workloadRef"); ref != nil {
		return ref
	}
	return object(template.Object, "spec", "objectRef", "workloadRef")
}

// kruiseRollout divides the steps' replicas that are numbers by the replicas that each cluster has of the workload, so that a later
// step has no fewer of them anywhere. A cluster's part is at least one: its Rollouts refuse a step of none. Percentages mean the same
// in every cluster, and as long as the replicas are not known, all is as it is.
func (f *fleet) kruiseRollout() error {
	if f.Target == nil {
		return nil
	}
	for _, strategy := range []string{"canary", "blueGreen"} {
		path := []string{"spec", "strategy", strategy, "steps"}
		written := make([][]any, len(f.members))
		for i, m := range f.members {
			if m.Base != nil {
				written[i] = list(m.Base.DeepCopy().Object, path...)
			}
		}
		divided := false
		for k, step := range list(f.Template.Object, path...) {
			step, _ := step.(map[string]any)
			n, ok := whole(step["replicas"])
			if !ok {
				continue
			}
			divided = true
			seats := make([]Seat, len(f.members))
			for i, m := range f.members {
				seats[i] = Seat{Weight: f.Target[m.Cluster], Cap: f.Target[m.Cluster]}
			}
			for i, share := range Split(n, seats) {
				if k < len(written[i]) {
					if s, ok := written[i][k].(map[string]any); ok {
						s["replicas"] = max(share, 1)
					}
				}
			}
		}
		for i, m := range f.members {
			if divided && m.Base != nil {
				f.put(m, written[i], path...)
			}
		}
	}
	return nil
}
