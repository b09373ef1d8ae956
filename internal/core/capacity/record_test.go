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

// anyMember has pods, some of which wait, placements that are expected, and quotas, after many changes.
func anyMember(r *rand.Rand) *Member {
	m := NewMember()
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
				Parts:  []Part{{asked(anyPod(r, "x")), 1}, {asked(anyPod(r, "y")), 2}},
				Before: int64(r.IntN(2)), Replicas: int64(r.IntN(4))})
		case 4:
			m.Replicas(asked(anyPod(r, "z"))) // so that holds are placed in between
		case 5:
			if r.IntN(3) == 0 {
				q := &corev1.ResourceQuota{}
				q.Namespace, q.Name = "shop", fmt.Sprintf("q%d", r.IntN(2))
				q.Spec.Hard = list(fmt.Sprintf("cpu %d, pods %d", 1+r.IntN(8), 5+r.IntN(20)))
				q.Status.Used = list("cpu 1, pods 6")
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

// anyNeed is what a replica may ask for, and sets of several.
func anyNeed(r *rand.Rand) []Part {
	p := anyPod(r, "c")
	p.Labels = map[string]string{"app": "web"}
	apart("zone")(p)
	port(80)(p)
	return []Part{{asked(anyPod(r, "a")), 1 + int64(r.IntN(2))},
		{[]*Requirement{asked(anyPod(r, "b")), replica(p)}[r.IntN(2)], 1}}
}

func written(t *testing.T, m *Member) (r Record, text string) {
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

func TestAMemberOfARecordSaysWhatTheRecordedOneSays(t *testing.T) {
	rounds, expected, waiting, quotas := uint64(400), 0, 0, 0
	if testing.Short() {
		rounds /= 5
	}
	for seed := range rounds {
		r := rand.New(rand.NewPCG(seed, 11))
		m := anyMember(r)
		record, text := written(t, m)
		again, err := MemberOf(record)
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, text)
		}
		if _, twice := written(t, again); twice != text {
			t.Fatalf("seed %d: recorded again it differs:\n%s", seed, cmp.Diff(text, twice))
		}
		summed, err := MemberOf(record.Summed(func(w Workload) bool { return w.Name == "w1" }))
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
					t.Fatalf("seed %d: there is room for %d, and by the record %d\n%s", seed, want, got, text)
				}
				if round > 0 {
					continue // it knows less of the pods that come and go
				}
				if got := summed.Room(parts, sets); got != want {
					t.Fatalf("seed %d: there is room for %d, and by sums %d\n%s", seed, want, got, text)
				}
			}
			// Both go on alike.
			w := Workload{"shop", "CloneSet", fmt.Sprintf("w%d", r.IntN(5))}
			a := Assumption{Key: "shop/" + w.Name, Workload: w, Parts: parts, Before: 0, Replicas: int64(r.IntN(3))}
			n := NodeOf(anyNode(r, "n1"))
			for _, m := range []*Member{m, again} {
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
		t.Errorf("%d placements were expected, %d kinds of pods waited, there were %d quotas: this shows little", expected,
			waiting, quotas)
	}
}

func TestPodsAreOfAWorkloadByOneRule(t *testing.T) {
	kinds := []string{"Deployment", "ReplicaSet", "CloneSet", "Workflow", "Node", "Rollout"}
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 12))
		m := NewMember()
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
			if w.Of(of) {
				want++
			}
		}
		mine := PodsOf([]Workload{of})
		for _, w := range all {
			if mine(w) != w.Of(of) {
				t.Fatalf("seed %d: %v is of %v: %v, by PodsOf %v", seed, w, of, w.Of(of), mine(w))
			}
		}
		if got := m.there(of); got != want {
			t.Fatalf("seed %d: %d of %v are counted as those of %v, and %d are by Of", seed, got, all, of, want)
		}
	}
}

// What is placed and taken away leaves the sums as they were, and room is kept for what does not fit until it does.
func TestInARehearsalPodsFollowPlacements(t *testing.T) {
	rounds, short := uint64(300), 0
	if testing.Short() {
		rounds /= 5
	}
	for seed := range rounds {
		r := rand.New(rand.NewPCG(seed, 13))
		record, text := written(t, anyMember(r))
		record.Expected = slices.DeleteFunc(record.Expected, func(e ExpectedRecord) bool { return e.Placement != "" })
		re, err := Rehearse(record)
		if err != nil {
			t.Fatal(err)
		}
		before, _ := written(t, re.member)
		asks := [4][]Part{}
		for i := range asks {
			asks[i] = []Part{{asked(anyPod(r, "x")), 1}}
		}
		was := map[int]Assumption{}
		total := map[int]int64{}
		for range 12 {
			i := r.IntN(4)
			a, known := was[i]
			if !known {
				a = Assumption{Key: fmt.Sprint("new/", i), Workload: Workload{"shop", "CloneSet", fmt.Sprint("new", i)},
					Parts: []Part{{asked(anyPod(r, "x")), 1}}}
			}
			a.Before, a.Replicas = a.Replicas, int64(r.IntN(5))
			fits := int64(re.Room(a.Parts, false, ""))
			re.Place(a)
			was[i], total[i] = a, a.Replicas
			for j := range 4 {
				if got, want := re.Room(asks[j], false, fmt.Sprint(j)), re.member.Room(asks[j], false); got != want {
					t.Fatalf("seed %d: asked again there is room for %d, counted anew %d", seed, got, want)
				}
			}
			there := re.member.there(a.Workload)
			if there > a.Replicas {
				t.Fatalf("seed %d: %d pods of a placement of %d", seed, there, a.Replicas)
			}
			if grow := a.Replicas - a.Before; grow > 0 && grow <= fits && a.Before == 0 && there != a.Replicas {
				t.Fatalf("seed %d: there was room for %d, and of %d replicas %d are there", seed, fits, a.Replicas, there)
			}
			if there < a.Replicas {
				short++
			}
		}
		for _, a := range was {
			a.Before, a.Replicas = a.Replicas, 0
			re.Place(a)
		}
		after, _ := written(t, re.member)
		// What waits may have found another node meanwhile.
		before.Expected, after.Expected = nil, nil
		if diff := cmp.Diff(before, after); diff != "" {
			t.Fatalf("seed %d: when all is taken away again, the member differs:\n%s\n%s", seed, diff, text)
		}
	}
	if short < int(rounds)/4 {
		t.Errorf("only %d placements did not fit: this shows little", short)
	}
}

func TestTheQuotaIsUsedByWhatIsPlaced(t *testing.T) {
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
		if re.Place(web); int64(re.Room(web.Parts, false, "")) != c.left {
			t.Errorf("beside %d there is room for %d, want %d", c.replicas, re.Room(web.Parts, false, ""), c.left)
		}
	}
	web.Replicas = 4
	re.Place(web)
	web.Parts = []Part{{needs("cpu 2", nil), 1}}
	if re.Renew(web); re.Room(web.Parts, false, "") != 1 {
		t.Errorf("four that ask for two of ten leave room for one, not %d", re.Room(web.Parts, false, ""))
	}
}

func TestNodesAreMadeUpInShort(t *testing.T) {
	m, err := MemberOf(Record{Nodes: []NodeRecord{
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
		if _, err := MemberOf(r); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
