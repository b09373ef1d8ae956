package capacity

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

// objects is a cluster as a list of objects, from which the oracle recomputes each answer.
type objects struct {
	nodes map[string]*corev1.Node
	pods  map[string]*corev1.Pod
}

// fits reports whether a pod fits on a node, by Kubernetes' own functions and a sum over all pods.
func (f objects) fits(n *corev1.Node, p *corev1.Pod, beside []*corev1.Pod) bool {
	if n.Status.Conditions[0].Status != corev1.ConditionTrue {
		return false
	}
	taints := slices.Clone(n.Spec.Taints)
	if n.Spec.Unschedulable {
		taints = append(taints, corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule})
	}
	for _, taint := range taints {
		if taint.Effect != corev1.TaintEffectPreferNoSchedule &&
			!slices.ContainsFunc(p.Spec.Tolerations, func(t corev1.Toleration) bool {
				return t.ToleratesTaint(klog.Background(), &taint, false)
			}) {
			return false
		}
	}
	if ok, err := nodeaffinity.GetRequiredNodeAffinity(p).Match(n); err != nil || !ok {
		return false
	}
	used := map[corev1.ResourceName]int64{}
	for _, o := range append(slices.Clone(beside), p) {
		used["pods"]++
		for name, q := range o.Spec.Containers[0].Resources.Requests {
			used[name] += Amount(name, q)
		}
	}
	for name, asked := range p.Spec.Containers[0].Resources.Requests {
		// What asks for nothing fits where others took more than there is.
		if q := n.Status.Allocatable[name]; !asked.IsZero() && used[name] > Amount(name, q) {
			return false
		}
	}
	return used["pods"] <= n.Status.Allocatable.Pods().Value()
}

func (f objects) podsOn(node string) (pods []*corev1.Pod) {
	for _, p := range f.pods {
		if p.Spec.NodeName == node {
			pods = append(pods, p)
		}
	}
	return pods
}

// replicas places equal replicas one after another. The order does not matter.
func (f objects) replicas(p *corev1.Pod) (n int32) {
	for name, node := range f.nodes {
		beside := f.podsOn(name)
		for ; f.fits(node, p, beside); n++ {
			beside = append(beside, p)
		}
	}
	return n
}

// fitsAll tries all ways to place the pods beside the existing ones.
func (f objects) fitsAll(pods []*corev1.Pod) bool {
	names := slices.Sorted(func(yield func(string) bool) {
		for name := range f.nodes {
			if !yield(name) {
				return
			}
		}
	})
	beside := map[string][]*corev1.Pod{}
	for _, name := range names {
		beside[name] = f.podsOn(name)
	}
	var try func(i, from int) bool
	try = func(i, from int) bool {
		if i == len(pods) {
			return true
		}
		for at := range names {
			if i > 0 && pods[i] == pods[i-1] && at < from {
				continue // equal pods go to nodes in order
			}
			name := names[at]
			if !f.fits(f.nodes[name], pods[i], beside[name]) {
				continue
			}
			beside[name] = append(beside[name], pods[i])
			if try(i+1, at) {
				return true
			}
			beside[name] = beside[name][:len(beside[name])-1]
		}
		return false
	}
	return try(0, 0)
}

// anyNode and anyPod draw from few values, so that they often match.
func anyNode(r *rand.Rand, name string) *corev1.Node {
	n := aNode(name, fmt.Sprintf("cpu %dm, memory %dMi, pods %d", 500*(1+r.IntN(6)), 512*r.IntN(8), 1+r.IntN(5)),
		labelled("zone", fmt.Sprint(r.IntN(3))))
	if r.IntN(3) == 0 {
		n.Status.Allocatable["gpu.io/gpu"] = list("x 2")["x"]
	}
	switch r.IntN(8) {
	case 0:
		cordon(n)
	case 1:
		notReady(n)
	case 2:
		tainted("dedicated", corev1.TaintEffectNoSchedule)(n)
	case 3:
		tainted("dedicated", corev1.TaintEffectNoExecute)(n)
	case 4:
		tainted("dedicated", corev1.TaintEffectPreferNoSchedule)(n)
	}
	return n
}

func anyPod(r *rand.Rand, name string) *corev1.Pod {
	p := aPod(name, "", fmt.Sprintf("cpu %dm, memory %dMi", 250*r.IntN(5), 256*r.IntN(5)))
	if r.IntN(5) == 0 {
		p.Spec.Containers[0].Resources.Requests["gpu.io/gpu"] = list("x 1")["x"]
	}
	if r.IntN(3) == 0 {
		p.Spec.Containers[0].Resources.Limits = list(fmt.Sprintf("cpu %dm, memory 1Gi", 250*r.IntN(5)))
	}
	if r.IntN(3) == 0 {
		p.Spec.Tolerations = []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpExists}}
	}
	if r.IntN(9) == 0 {
		p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	}
	term := corev1.NodeSelectorTerm{}
	switch r.IntN(5) {
	case 0:
		p.Spec.NodeSelector = map[string]string{"zone": fmt.Sprint(r.IntN(3))}
	case 1:
		term.MatchExpressions = []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpGt,
			Values: []string{fmt.Sprint(r.IntN(2))}}}
	case 2:
		term.MatchFields = []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpNotIn,
			Values: []string{"n0"}}}
	}
	if len(term.MatchExpressions)+len(term.MatchFields) > 0 {
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{term}}}}
	}
	return p
}

// requirementOf returns the requirement of a replica with this pod.
func requirementOf(p *corev1.Pod) *Requirement {
	claim := &workv1alpha2.NodeClaim{HardNodeAffinity: requiredAffinity(p), NodeSelector: p.Spec.NodeSelector,
		Tolerations: p.Spec.Tolerations}
	need := newRequirement(p.Spec.Containers[0].Resources.Requests, claim, "shop", "")
	need.setQuotaUse(QuotaUseOf(&p.Spec))
	return need
}

// After any sequence of changes the answer equals that of the oracle.
func TestReplicasEqualTheOracle(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		m, f := NewClusterState(), objects{map[string]*corev1.Node{}, map[string]*corev1.Pod{}}
		for range 40 {
			node, pod := fmt.Sprintf("n%d", r.IntN(4)), fmt.Sprintf("p%d", r.IntN(8))
			switch r.IntN(8) {
			case 0:
				delete(f.nodes, node)
				m.RemoveNode(node)
			case 1, 2:
				f.nodes[node] = anyNode(r, node)
				m.set(f.nodes[node])
			case 3:
				delete(f.pods, pod)
				m.RemovePod("shop", pod)
			case 4:
				// A list tells what a broken watch missed.
				var nodes []Node
				var pods []Pod
				for _, n := range f.nodes {
					nodes = append(nodes, NodeOf(n))
				}
				for _, p := range f.pods {
					kept, _ := PodOf(p)
					pods = append(pods, kept)
				}
				m.ReplacePods(pods)
				m.ReplaceNodes(nodes)
			default:
				p := anyPod(r, pod)
				p.Spec.NodeName = node // also one that is not there, or has no room
				f.pods[pod] = p
				m.set(p)
			}
			one := anyPod(r, "one")
			if got, want := m.Replicas(requirementOf(one)), f.replicas(one); got != want {
				t.Fatalf("seed %d: there is room for %d, want %d", seed, got, want)
			}
		}
		anew := NewClusterState()
		for _, n := range f.nodes {
			anew.set(n)
		}
		for _, p := range f.pods {
			anew.set(p)
		}
		if got, want := sums(m), sums(anew); got != want {
			t.Fatalf("seed %d: the sums are %s, the oracle has %s", seed, got, want)
		}
	}
}

func sums(m *ClusterState) (text string) {
	m.Nodes(func(n *Node, requested Amounts) {
		text += fmt.Sprintf("%s has %s and requested are %s; ", n.Name, quantities(n.Allocatable.List()),
			quantities(requested.List()))
	})
	return text + quantities(m.PendingRequests().List())
}

func quantities(l corev1.ResourceList) (text string) {
	for _, name := range slices.Sorted(maps.Keys(l)) {
		q := l[name]
		text += fmt.Sprintf("%s=%s ", name, q.String())
	}
	return text
}

// Everything that is reported to fit can be placed together with everything that is expected: no room is counted twice.
func TestSuccessivePlacementsFitTogether(t *testing.T) {
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 2))
		m, f := NewClusterState(), objects{map[string]*corev1.Node{}, map[string]*corev1.Pod{}}
		for i := range 1 + r.IntN(3) {
			n := anyNode(r, fmt.Sprintf("n%d", i))
			f.nodes[n.Name] = n
			m.set(n)
		}
		var placed [][]*corev1.Pod // replicas of each that have no pod yet
		for step := range 12 {
			name := fmt.Sprintf("w%d", step)
			p := anyPod(r, name)
			// Workloads whose replicas' pods appear on some node where they fit, as the member's scheduler may choose.
			if len(placed) > 0 && r.IntN(2) == 0 {
				at := r.IntN(len(placed))
				if len(placed[at]) == 0 {
					continue
				}
				pod := placed[at][0].DeepCopy()
				ownedBy("CloneSet", pod.Name)(pod)
				pod.Name += fmt.Sprintf("-%d", step)
				if r.IntN(3) > 0 {
					for n := range f.nodes {
						others := slices.Concat(placed...)
						others = others[:0:0]
						for i, w := range placed {
							if i == at {
								w = w[1:]
							}
							others = append(others, w...)
						}
						if !f.fits(f.nodes[n], pod, f.podsOn(n)) {
							continue
						}
						pod.Spec.NodeName = n
						f.pods[pod.Name] = pod
						if f.fitsAll(others) {
							break
						}
						delete(f.pods, pod.Name) // its scheduler was clumsy, and the others fit no more
						pod.Spec.NodeName = ""
					}
				}
				if pod.Spec.NodeName == "" {
					continue
				}
				m.set(pod)
				placed[at] = placed[at][1:]
			} else {
				replicas := int64(m.Replicas(requirementOf(p)))
				replicas = min(replicas, int64(r.IntN(4)))
				m.Assume(Assumption{Key: name, Workload: Workload{"shop", "CloneSet", name}, Parts: []Part{{requirementOf(p), 1}},
					Replicas: replicas})
				placed = append(placed, slices.Repeat([]*corev1.Pod{p}, int(replicas)))
			}
			if !f.fitsAll(slices.Concat(placed...)) {
				t.Fatalf("seed %d, step %d: what was placed does not fit together", seed, step)
			}
			next := anyPod(r, "next")
			k := m.Replicas(requirementOf(next))
			if !f.fitsAll(append(slices.Concat(placed...), slices.Repeat([]*corev1.Pod{next}, int(min(k, 4)))...)) {
				t.Fatalf("seed %d, step %d: %d more are reported to fit but do not", seed, step, k)
			}
		}
	}
}

func TestSetsNeverExceedTheRoom(t *testing.T) {
	some := 0
	for seed := range uint64(700) {
		r := rand.New(rand.NewPCG(seed, 3))
		m, f := NewClusterState(), objects{map[string]*corev1.Node{}, map[string]*corev1.Pod{}}
		for i := range 1 + r.IntN(3) {
			n := anyNode(r, fmt.Sprintf("n%d", i))
			f.nodes[n.Name] = n
			m.set(n)
		}
		p := anyPod(r, "p")
		p.Spec.NodeName = "n0"
		f.pods["p"] = p
		m.set(p)
		var parts []Part
		var set []*corev1.Pod
		for range 1 + r.IntN(3) {
			c, replicas := anyPod(r, "c"), r.IntN(3)
			parts = append(parts, Part{requirementOf(c), int64(replicas)})
			set = append(set, slices.Repeat([]*corev1.Pod{c}, replicas)...)
		}
		sets := int(m.Sets(parts))
		if len(set) == 0 {
			continue
		}
		var pods []*corev1.Pod
		for _, c := range set {
			pods = append(pods, slices.Repeat([]*corev1.Pod{c}, sets)...)
		}
		if !f.fitsAll(pods) {
			t.Fatalf("seed %d: %d sets do not fit", seed, sets)
		}
		if sets > 0 {
			some++
		}
		one := anyPod(r, "one")
		if got, want := m.Replicas(requirementOf(one)), f.replicas(one); got != want {
			t.Fatalf("seed %d: Sets changed the room from %d to %d", seed, want, got)
		}
	}
	if some < 80 {
		t.Errorf("only %d clusters had room for a set: too few for the test", some)
	}
}

func BenchmarkReplicas(b *testing.B) {
	m := NewClusterState()
	for i := range 100 {
		m.set(aNode(fmt.Sprint(i), "cpu 32, memory 128Gi, ephemeral-storage 100Gi, pods 110"))
	}
	need := needs("cpu 500m, memory 1Gi", nil)
	for b.Loop() {
		m.Replicas(need)
	}
}

func BenchmarkAPodComesAndGoes(b *testing.B) {
	m := NewClusterState().set(aNode("a", "cpu 32, memory 128Gi, ephemeral-storage 100Gi, pods 110"))
	m.assume("other", "cpu 1", 0, 5)
	waiting, there := aPod("p", "", "cpu 500m, memory 1Gi", madeBy("web")),
		aPod("p", "a", "cpu 500m, memory 1Gi", madeBy("web"))
	b.ReportAllocs()
	for b.Loop() {
		m.set(waiting)
		m.set(there)
		m.set(there)
		m.RemovePod("shop", "p")
	}
}

// Reservations stay valid while nodes change and disappear.
func TestReservationsMoveAfterNodeChanges(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 4))
		m := NewClusterState()
		for range 60 {
			name, pod, workload := fmt.Sprintf("n%d", r.IntN(4)), fmt.Sprintf("p%d", r.IntN(8)), fmt.Sprintf("w%d", r.IntN(5))
			switch r.IntN(8) {
			case 0:
				m.RemoveNode(name)
			case 1, 2:
				m.set(anyNode(r, name))
			case 3:
				m.RemovePod("shop", pod)
			case 4:
				m.Release(workload)
			case 5:
				p := anyPod(r, "x")
				m.Assume(Assumption{Key: workload, Workload: Workload{"shop", "CloneSet", workload},
					Parts:  []Part{{requirementOf(p), 1}, {requirementOf(anyPod(r, "y")), 2}},
					Before: int64(r.IntN(2)), Replicas: int64(r.IntN(4))})
			default:
				p := anyPod(r, pod)
				if ownedBy("CloneSet", workload)(p); r.IntN(3) > 0 {
					p.Spec.NodeName = name
				}
				m.set(p)
			}
			if r.IntN(3) == 0 {
				m.Sets([]Part{{requirementOf(anyPod(r, "z")), 1}, {requirementOf(anyPod(r, "z")), 1}})
			}
			if r.IntN(2) == 0 {
				continue // answers may be far apart
			}
			m.settle()
			for _, n := range m.nodes {
				free := maps.Clone(n.Allocatable)
				if free == nil {
					free = Amounts{}
				}
				for name, amount := range n.requested {
					free[name] -= amount
				}
				for h, k := range n.reservations {
					free.add(h.need.requests, -k)
					if !n.admits(h.need) || h.at[n] != k {
						t.Fatalf("seed %d: %d replicas are reserved on %s, which does not admit them, or the reservation has %d", seed, k,
							n.Name, h.at[n])
					}
				}
				for name, left := range n.free {
					if left != free[name] {
						t.Fatalf("seed %d: %s has %d of %s free, the oracle has %d", seed, n.Name, left, name, free[name])
					}
				}
				for h := range n.reservations {
					for _, q := range h.need.requests {
						if n.free[q.name] < 0 {
							t.Fatalf("seed %d: more %s is reserved on %s than it has", seed, q.name, n.Name)
						}
					}
				}
			}
			all := slices.Collect(maps.Values(m.queued))
			for _, a := range m.assumptions {
				all = append(all, a.reservations...)
			}
			for _, h := range all {
				placed := int64(0)
				for _, k := range h.at {
					placed += k
				}
				if _, unplaced := m.unplaced[h]; placed != h.placed || placed > h.replicas || unplaced != (placed < h.replicas) {
					t.Fatalf("seed %d: of %d replicas %d are reserved, %d by count, unplaced: %t", seed, h.replicas, placed, h.placed,
						unplaced)
				}
				if h.placed < h.replicas && slices.ContainsFunc(m.nodes, func(n *node) bool { return n.fitCount(h.need) > 0 }) {
					t.Fatalf("seed %d: an expected replica fits but is not placed", seed)
				}
			}
			if len(m.unplaced) > len(all) {
				t.Fatalf("seed %d: %d reservations are unplaced, of %d", seed, len(m.unplaced), len(all))
			}
		}
	}
}
