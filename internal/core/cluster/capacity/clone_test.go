package capacity

import (
	"fmt"
	"math/rand/v2"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A clone gives the answers of the original, also after the same placements, and leaves the original as it is.
func TestClonesAnswerLikeTheOriginal(t *testing.T) {
	placed := 0
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 5))
		need := func(workload string) *Requirement {
			need := requirementOf(anyPod(r, "x"))
			if need.of = (Workload{"shop", "CloneSet", workload}); r.IntN(3) == 0 {
				need.setSpread([]Spread{{Apart: []string{"zone"}}, {Even: []Even{{Key: "zone", MaxSkew: 1}}}}[r.IntN(2)], need.of)
			}
			return need
		}
		m := NewClusterState()
		for range 30 {
			workload := fmt.Sprintf("w%d", r.IntN(5))
			switch r.IntN(6) {
			case 0, 1:
				m.set(anyNode(r, fmt.Sprintf("n%d", r.IntN(4))))
			case 2:
				m.Assume(Assumption{Key: workload, Workload: Workload{"shop", "CloneSet", workload},
					Parts: []Part{{need(workload), 1}}, Replicas: int64(r.IntN(4))})
			case 3:
				q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "q"}}
				q.Status.Hard, q.Status.Used = list(fmt.Sprintf("pods %d", 2+r.IntN(9))), list("pods 0")
				m.set(q)
			default:
				p := anyPod(r, fmt.Sprintf("p%d", r.IntN(8)))
				if ownedBy("CloneSet", workload)(p); r.IntN(3) > 0 {
					p.Spec.NodeName = fmt.Sprintf("n%d", r.IntN(4))
				}
				m.set(p)
			}
		}
		asked := need("w0")
		answers := func(m *ClusterState) string {
			free, expected := m.Spare()
			return fmt.Sprint(m.Replicas(asked), m.Sets([]Part{{asked, 2}}), quantities(free.List()), expected)
		}
		if seed%2 == 0 {
			m.track()
		}
		m.settle()
		tracked := m.tracking
		clone := m.Clone()
		if m.tracking != tracked {
			t.Fatalf("seed %d: the original counts pods per node because it was cloned", seed)
		}
		before := answers(m)
		if got := answers(clone); got != before {
			t.Fatalf("seed %d: the clone answers %s, the original %s", seed, got, before)
		}
		a := Assumption{Key: "new", Workload: Workload{"shop", "CloneSet", "new"}, Parts: []Part{{need("new"), 1}},
			Replicas: 2}
		clone.Assume(a)
		after := answers(clone)
		if got := answers(m); got != before {
			t.Fatalf("seed %d: a placement in the clone changed the answers of the original from %s to %s", seed, before, got)
		}
		m.Assume(a)
		if got := answers(m); got != after {
			t.Fatalf("seed %d: after the same placement the original answers %s, the clone %s", seed, got, after)
		}
		if free, _ := m.Spare(); before != after && free[corev1.ResourceCPU] > 0 {
			placed++
		}
	}
	if placed < 50 {
		t.Errorf("only %d placements changed the answers: too few for the test", placed)
	}
}
