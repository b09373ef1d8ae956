package capacity

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// anyState returns a state after many random changes, with pending pods, assumptions and quotas.
func anyState(r *rand.Rand) *ClusterState {
	m := NewClusterState()
	for range 10 + r.IntN(50) {
		node, name, workload := fmt.Sprintf("n%d", r.IntN(4)), fmt.Sprintf("p%d", r.IntN(3)), fmt.Sprintf("w%d", r.IntN(5))
		name += workload // whose a pod is does not change
		spread := func(p *corev1.Pod) *corev1.Pod {
			switch p.Labels = map[string]string{"app": "web"}; r.IntN(6) {
			case 0:
				apart("zone")(p)
			case 1:
				even("zone", 1)(p)
			case 2:
				port(80)(p)
			}
			return p
		}
		switch r.IntN(9) {
		case 8:
			need := replica(spread(anyPod(r, "x")))
			m.Assume(Assumption{Key: "shop/web", Workload: need.of, Parts: []Part{{need, 1}}, Before: int64(r.IntN(2)),
				Replicas: int64(r.IntN(4))})
		case 0, 1:
			m.set(anyNode(r, node))
		case 2:
			m.RemovePod("shop", name)
		case 3:
			m.Assume(Assumption{Key: "shop/" + workload, Workload: Workload{"shop", "CloneSet", workload},
				Parts:  []Part{{requirementOf(anyPod(r, "x")), 1}, {requirementOf(anyPod(r, "y")), 2}},
				Before: int64(r.IntN(2)), Replicas: int64(r.IntN(4))})
		case 4:
			m.Replicas(requirementOf(anyPod(r, "z"))) // so that holds are placed in between
		case 5:
			if r.IntN(3) == 0 {
				q := &corev1.ResourceQuota{}
				q.Namespace, q.Name = "shop", fmt.Sprintf("q%d", r.IntN(2))
				q.Spec.Hard = list(fmt.Sprintf("cpu %d, pods %d, limits.cpu %dm", 1+r.IntN(8), 5+r.IntN(20), 900*r.IntN(9)))
				q.Status.Used = list("cpu 1, pods 6, limits.cpu 250m")
				m.set(q)
			}
		default:
			p := anyPod(r, name)
			if ownedBy("CloneSet", workload)(spread(p)); r.IntN(3) > 0 {
				p.Spec.NodeName = node
			}
			m.set(p)
		}
	}
	return m
}

// anyNeed returns random requirements of a replica, or of a set.
func anyNeed(r *rand.Rand) []Part {
	p := anyPod(r, "c")
	p.Labels = map[string]string{"app": "web"}
	apart("zone")(p)
	port(80)(p)
	return []Part{{requirementOf(anyPod(r, "a")), 1 + int64(r.IntN(2))},
		{[]*Requirement{requirementOf(anyPod(r, "b")), replica(p)}[r.IntN(2)], 1}}
}

func marshalled(t *testing.T, m *ClusterState) (r Record, text string) {
	t.Helper()
	raw, err := json.Marshal(m.Record())
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		t.Fatal(err)
	}
	return r, string(raw)
}

func TestRecordPreservesAnswers(t *testing.T) {
	rounds, expected, waiting, quotas := uint64(400), 0, 0, 0
	if testing.Short() {
		rounds /= 5
	}
	for seed := range rounds {
		r := rand.New(rand.NewPCG(seed, 11))
		m := anyState(r)
		record, text := marshalled(t, m)
		again, err := ClusterStateOf(record)
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, text)
		}
		if _, twice := marshalled(t, again); twice != text {
			t.Fatalf("seed %d: the record of the restored state differs:\n%s", seed, cmp.Diff(text, twice))
		}
		summed, err := ClusterStateOf(record.Summed(func(w Workload) bool { return w.Name == "w1" }))
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for round := range 5 {
			parts := anyNeed(r)
			for _, sets := range []bool{false, true} {
				if !sets && r.IntN(2) == 0 {
					parts = parts[1:]
				}
				want := m.Room(parts, sets)
				if got := again.Room(parts, sets); got != want {
					t.Fatalf("seed %d: there is room for %d, in the restored state for %d\n%s", seed, want, got, text)
				}
				if round > 0 {
					continue // it knows less of the pods that come and go
				}
				if got := summed.Room(parts, sets); got != want {
					t.Fatalf("seed %d: there is room for %d, with summed pods for %d\n%s", seed, want, got, text)
				}
			}
			// Both go on alike.
			w := Workload{"shop", "CloneSet", fmt.Sprintf("w%d", r.IntN(5))}
			a := Assumption{Key: "shop/" + w.Name, Workload: w, Parts: parts, Before: 0, Replicas: int64(r.IntN(3))}
			n := NodeOf(anyNode(r, "n1"))
			for _, m := range []*ClusterState{m, again} {
				m.Assume(a)
				m.SetNode(n)
			}
		}
		for _, e := range record.Expected {
			if e.Placement != "" {
				expected++
			} else {
				waiting++
			}
		}
		quotas += len(record.Quotas)
	}
	if least := int(rounds) / 8; expected < least || waiting < least || quotas < least {
		t.Errorf("%d assumptions, %d kinds of pending pods and %d quotas are too few for the test", expected,
			waiting, quotas)
	}
}

func TestPodOwnershipRulesAgree(t *testing.T) {
	kinds := []string{"Deployment", "ReplicaSet", "CloneSet", "Workflow", "Node", "Rollout"}
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 12))
		m := NewClusterState()
		any := func() Workload {
			return Workload{"shop", kinds[r.IntN(len(kinds))], []string{"web", "web-1", "web-1-a", "api"}[r.IntN(4)]}
		}
		var all []Workload
		for i := range 10 {
			w := any()
			all = append(all, w)
			m.SetPod(Pod{Namespace: "shop", Name: fmt.Sprint(i), node: "n", workload: w})
		}
		of, want := any(), int64(0)
		for _, w := range all {
			if w.BelongsTo(of) {
				want++
			}
		}
		mine := PodsOf([]Workload{of})
		for _, w := range all {
			if mine(w) != w.BelongsTo(of) {
				t.Fatalf("seed %d: %v is of %v: %v, by PodsOf %v", seed, w, of, w.BelongsTo(of), mine(w))
			}
		}
		if got := m.podsOf(of); got != want {
			t.Fatalf("seed %d: %d of %v are counted for %v, but %d belong to it", seed, got, all, of, want)
		}
	}
}

// Adding and removing placements restores the sums. What does not fit is placed when room appears.
func TestRehearsalPodsFollowPlacements(t *testing.T) {
	rounds, short := uint64(300), 0
	if testing.Short() {
		rounds /= 5
	}
	for seed := range rounds {
		r := rand.New(rand.NewPCG(seed, 13))
		record, text := marshalled(t, anyState(r))
		record.Expected = slices.DeleteFunc(record.Expected, func(e ExpectedRecord) bool { return e.Placement != "" })
		re, err := Rehearse(record)
		if err != nil {
			t.Fatal(err)
		}
		before, _ := marshalled(t, re.member)
		asks := [4][]Part{}
		for i := range asks {
			asks[i] = []Part{{requirementOf(anyPod(r, "x")), 1}}
		}
		was := map[int]Assumption{}
		total := map[int]int64{}
		for range 12 {
			i := r.IntN(4)
			a, known := was[i]
			if !known {
				a = Assumption{Key: fmt.Sprint("new/", i), Workload: Workload{"shop", "CloneSet", fmt.Sprint("new", i)},
					Parts: []Part{{requirementOf(anyPod(r, "x")), 1}}}
			}
			a.Before, a.Replicas = a.Replicas, int64(r.IntN(5))
			fits := int64(re.Room(a.Parts, false, ""))
			re.Expect(a, false)
			re.Follow()
			was[i], total[i] = a, a.Replicas
			for j := range 4 {
				if got, want := re.Room(asks[j], false, fmt.Sprint(j)), re.member.Room(asks[j], false); got != want {
					t.Fatalf("seed %d: the cached room is %d, recomputed %d", seed, got, want)
				}
			}
			there := int64(0)
			for _, p := range re.member.pods {
				if p.workload.Workload == a.Workload && p.node != nil {
					there++
				}
			}
			if pods := re.member.podsOf(a.Workload); pods > a.Replicas {
				t.Fatalf("seed %d: %d pods for a placement of %d", seed, pods, a.Replicas)
			}
			if grow := a.Replicas - a.Before; grow > 0 && grow <= fits && a.Before == 0 && there != a.Replicas {
				t.Fatalf("seed %d: there was room for %d, but of %d replicas %d exist", seed, fits, a.Replicas, there)
			}
			if there < a.Replicas {
				short++
			}
		}
		for _, a := range was {
			a.Before, a.Replicas = a.Replicas, 0
			re.Expect(a, false)
			re.Follow()
		}
		after, _ := marshalled(t, re.member)
		// What waits may have found another node meanwhile.
		before.Expected, after.Expected = nil, nil
		if diff := cmp.Diff(before, after); diff != "" {
			t.Fatalf("seed %d: after removing all placements the state differs:\n%s\n%s", seed, diff, text)
		}
	}
	if short < int(rounds)/4 {
		t.Errorf("only %d placements did not fit: too few for the test", short)
	}
}

func TestRehearsalUsesQuota(t *testing.T) {
	re, err := Rehearse(Record{
		Nodes:  []NodeRecord{{Name: "n", Count: 20, Allocatable: list("cpu 4")}},
		Quotas: []QuotaRecord{{Namespace: "shop", Name: "q", Left: list("cpu 10")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	web := Assumption{Key: "web", Workload: Workload{"shop", "CloneSet", "web"}, Parts: []Part{{needs("cpu 1", nil), 1}}}
	for _, c := range []struct{ replicas, left int64 }{{4, 6}, {7, 3}, {2, 8}, {0, 10}} {
		web.Before, web.Replicas = web.Replicas, c.replicas
		re.Expect(web, false)
		if re.Follow(); int64(re.Room(web.Parts, false, "")) != c.left {
			t.Errorf("with %d replicas there is room for %d, want %d", c.replicas, re.Room(web.Parts, false, ""), c.left)
		}
	}
	web.Replicas = 4
	re.Expect(web, false)
	re.Follow()
	web.Parts = []Part{{needs("cpu 2", nil), 1}}
	re.Expect(web, true)
	if re.Follow(); re.Room(web.Parts, false, "") != 1 {
		t.Errorf("four replicas of 2 in a quota of 10 leave room for 1, not %d", re.Room(web.Parts, false, ""))
	}
}

func TestNodeRecordWithCountExpands(t *testing.T) {
	m, err := ClusterStateOf(Record{Nodes: []NodeRecord{
		{Name: "big", Count: 12, Allocatable: list("cpu 16, memory 64Gi"), Labels: map[string]string{"disk": "ssd"}},
		{Name: "small", Allocatable: list("cpu 2"), Requested: list("cpu 1, pods 109"),
			Taints: []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectNoSchedule}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if len(m.nodes) != 13 || m.nodes[0].Name != "big-01" || m.nodes[11].Name != "big-12" ||
		m.nodes[0].Allocatable[corev1.ResourcePods] != 110 {
		t.Errorf("%d nodes, the first is %s with %v", len(m.nodes), m.nodes[0].Name, m.nodes[0].Allocatable)
	}
	if small := m.byName["small"]; small.free[corev1.ResourcePods] != 1 || small.free[corev1.ResourceCPU] != 1000 {
		t.Errorf("small has %v free", small.free)
	}
	for want, r := range map[string]Record{
		`nodes[1]: there is already a node "a"`: {Nodes: []NodeRecord{{Name: "a"}, {Name: "a"}}},
		"nodes[0]: set the name":                {Nodes: []NodeRecord{{}}},
		"cpu is -1: must be 0 or more":          {Nodes: []NodeRecord{{Name: "a", Allocatable: list("cpu -1")}}},
		`nodes[0]: taint "k" has the effect "NoSchedul"`: {Nodes: []NodeRecord{{Name: "a",
			Taints: []corev1.Taint{{Key: "k", Effect: "NoSchedul"}}}}},
		`node "b", which does not exist in nodes`: {Nodes: []NodeRecord{{Name: "a"}},
			Pods: []PodsRecord{{Name: "w", Nodes: map[string]int64{"b": 1}}}},
		"quotas[0]: set the namespace": {Quotas: []QuotaRecord{{Name: "q"}}},
	} {
		if _, err := ClusterStateOf(r); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
