package fleet

import (
	"fmt"
	"math/rand"
	"strings"
	"testing"
)

// Clusters come, are left and return in any order. No ordinal is ever given to two clusters, of which one keeps its
// copy.
func TestOrdinalsStayUniqueWhileAClusterIsLeft(t *testing.T) {
	const kruise = `{apiVersion: apps.kruise.io/v1beta1, kind: StatefulSet, metadata: {name: x, annotations: {argosy.io/unique-ordinals: "true"}}, spec: {template: {a: 1}}}`
	for _, template := range []string{kruise, nativeSet,
		strings.Replace(kruise, "template:", "volumeClaimTemplates: [{metadata: {name: data}}], template:", 1)} {
		for seed := range int64(60) {
			r := rand.New(rand.NewSource(seed))
			h := newHub(t, template, 2, 2, 0)
			h.look()
			left := map[string]Member{} // what clusters that are left keep
			for step := range 12 {
				if i := r.Intn(len(h.in.Members)); len(left) == 0 && len(h.in.Members) > 1 && r.Intn(2) == 0 {
					// One is left: its replicas go to another.
					m := h.in.Members[i]
					h.in.Members = append(h.in.Members[:i:i], h.in.Members[i+1:]...)
					h.in.Members[r.Intn(len(h.in.Members))].Replicas += m.Replicas
					left[m.Cluster], h.in.Leaving = m, []string{m.Cluster}
				} else if r.Intn(2) == 0 {
					// The copies that are left go; their clusters may be used again.
					for name := range left {
						h.in.Members = append(h.in.Members, Member{Cluster: name, Reachable: true})
					}
					left, h.in.Leaving = map[string]Member{}, nil
				}
				h.look()
				owner := map[int64]string{}
				all := h.in.Members
				for _, m := range left {
					all = append(all[:len(all):len(all)], m)
				}
				for _, m := range all {
					if m.Work == nil {
						continue
					}
					before, err := observe(m)
					if err != nil {
						t.Fatal(err)
					}
					numbers, err := runs(before.before.Object)
					if err != nil {
						t.Fatal(err)
					}
					for _, n := range numbers {
						if other := owner[n]; other != "" {
							t.Fatalf("seed %d, step %d: ordinal %d is in %s and in %s; record %s", seed, step, n, other, m.Cluster,
								h.in.Record)
						}
						owner[n] = m.Cluster
					}
				}
				if len(left) > 0 && len(owner) < 4 && !strings.Contains(template, "volume") && r.Intn(2) == 0 {
					for i := range h.in.Members {
						if m := &h.in.Members[i]; m.Work != nil {
							h.reportAll(m)
						}
					}
				}
			}
		}
	}
}

// reportAll has a member report as many pods as its Work asks for.
func (h *hub) reportAll(m *Member) {
	h.t.Helper()
	one := hub{t: h.t, in: Input{Template: h.in.Template, Members: []Member{*m}}}
	one.report(fmt.Sprintf("replicas: %s", one.fieldValues("spec", "replicas")))
	*m = one.in.Members[0]
}

func TestReplacementRunsWithOtherOrdinals(t *testing.T) {
	h := newHub(t, `{apiVersion: apps.kruise.io/v1beta1, kind: StatefulSet, metadata: {name: x, annotations: {argosy.io/unique-ordinals: "true"}}, spec: {template: {a: 1}}}`, 2, 1)
	h.look()
	old := h.in.Members[0]
	h.in.Members = []Member{h.in.Members[1], {Cluster: "c3", Replicas: 2, Reachable: true}}
	h.in.Leaving = []string{old.Cluster}
	h.expect("while c1 keeps 0 and 1", "spec.replicas=1 2", "spec.reserveOrdinals=[0 1] [0 1 2]")
}

func TestCanaryAndBudgetApplyDuringMove(t *testing.T) {
	h := newHub(t, `{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, metadata: {name: x}, spec: {replicas: 10, template: {a: 1}, updateStrategy: {partition: 9, maxUnavailable: 2}}}`, 4, 3, 3)
	h.look()
	pods := func(all, updated int) string {
		return fmt.Sprintf("observedGeneration: 1, replicas: %[1]d, readyReplicas: %[1]d, availableReplicas: %[1]d, updatedReplicas: %[2]d, updatedReadyReplicas: %[2]d, updatedAvailableReplicas: %[2]d", all, updated)
	}
	h.report(pods(4, 4), pods(3, 3), pods(3, 3))
	h.edit(map[string]any{"a": int64(2)}, "spec", "template")
	h.look()
	h.report(pods(4, 1), pods(3, 0), pods(3, 0))
	const partition, budget = "spec.updateStrategy.partition=", "spec.updateStrategy.maxUnavailable="
	h.expect("one pod of ten is new", partition+"3 3 3")
	// c1, which has it, is lost: c3 takes its replicas.
	h.in.Members[2].Replicas += 4
	h.in.Members, h.in.Leaving = h.in.Members[1:], []string{"c1"}
	h.expect("one pod of ten is new in the other clusters", partition+"3 6", budget+"1 1")
	h.report(pods(3, 0), pods(7, 1))
	h.expect("and no other follows", partition+"3 6", budget+"1 1")
}

// Pods of a cluster that is being left do not count: without them, the budget blocks evictions until the replacement
// has reported its pods.
func TestDisruptionBudgetAppliesDuringMove(t *testing.T) {
	h := newHub(t, "{apiVersion: policy/v1, kind: PodDisruptionBudget, "+fleetWide+", spec: {minAvailable: 7}}",
		0, 0, 0)
	h.in.Divided = false
	h.look()
	h.report("expectedPods: 3", "expectedPods: 3", "expectedPods: 4")
	const least = "spec.minAvailable="
	h.expect("in three clusters", least+"2 2 3")
	h.in.Members, h.in.Leaving = h.in.Members[1:], []string{"c1"}
	h.expect("when c1 is left", least+"3 4")
	h.report("expectedPods: 3", "expectedPods: 7")
	for range 3 {
		h.look()
		h.report("expectedPods: 3", "expectedPods: 7")
	}
	h.expect("when c3 has the replacement", least+"2 5")
}
