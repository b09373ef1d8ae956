package capacity

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

const zone, hostname = corev1.LabelTopologyZone, corev1.LabelHostname

// web returns a pod of the Deployment web. Its pods have the label app.
func web(name, node string, differs ...func(*corev1.Pod)) *corev1.Pod {
	p := aPod(name, node, "cpu 1", madeBy("web"))
	p.Labels["app"] = "web"
	for _, d := range differs {
		d(p)
	}
	return p
}

func itself() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
}

func apart(key string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		if p.Spec.Affinity == nil {
			p.Spec.Affinity = &corev1.Affinity{}
		}
		if p.Spec.Affinity.PodAntiAffinity == nil {
			p.Spec.Affinity.PodAntiAffinity = &corev1.PodAntiAffinity{}
		}
		a := p.Spec.Affinity.PodAntiAffinity
		a.RequiredDuringSchedulingIgnoredDuringExecution = append(a.RequiredDuringSchedulingIgnoredDuringExecution,
			corev1.PodAffinityTerm{TopologyKey: key, LabelSelector: itself()})
	}
}

func even(key string, skew int32, differs ...func(*corev1.TopologySpreadConstraint)) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		c := corev1.TopologySpreadConstraint{TopologyKey: key, MaxSkew: skew, WhenUnsatisfiable: corev1.DoNotSchedule,
			LabelSelector: itself()}
		for _, d := range differs {
			d(&c)
		}
		p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, c)
	}
}

func minDomains(n int32) func(*corev1.TopologySpreadConstraint) {
	return func(c *corev1.TopologySpreadConstraint) { c.MinDomains = &n }
}

func honour(c *corev1.TopologySpreadConstraint) {
	policy := corev1.NodeInclusionPolicyHonor
	c.NodeTaintsPolicy = &policy
}

func anywhere(c *corev1.TopologySpreadConstraint) {
	policy := corev1.NodeInclusionPolicyIgnore
	c.NodeAffinityPolicy = &policy
}

func port(n int32) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Containers[0].Ports = append(p.Spec.Containers[0].Ports, corev1.ContainerPort{HostPort: n, ContainerPort: n})
	}
}

// replica returns the requirement that the binding of Deployment web has for a pod.
func replica(p *corev1.Pod) *Requirement {
	b := &workv1alpha2.ResourceBinding{}
	b.Annotations = map[string]string{wellknown.PodSpreadAnnotation: SpreadOf("shop", p.Labels, &p.Spec).Text()}
	b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop",
		Name: "web"}
	b.Spec.ReplicaRequirements = &workv1alpha2.ReplicaRequirements{
		ResourceRequest: p.Spec.Containers[0].Resources.Requests,
		NodeClaim: &workv1alpha2.NodeClaim{HardNodeAffinity: requiredAffinity(p), NodeSelector: p.Spec.NodeSelector,
			Tolerations: p.Spec.Tolerations}}
	return PartsOf(b)[0].Need
}

// inZone returns a node with a hostname label and, unless z is empty, a zone label.
func inZone(z, name, allocatable string, differs ...func(*corev1.Node)) *corev1.Node {
	n := aNode(name, allocatable, append(differs, labelled(hostname, name))...)
	if z != "" {
		n.Labels[zone] = z
	}
	return n
}

func TestSpreadRulesLimitRoom(t *testing.T) {
	three := func(more ...any) *ClusterState {
		return NewClusterState().set(append([]any{inZone("a", "n1", "cpu 8, pods 9"), inZone("a", "n2", "cpu 8, pods 9"),
			inZone("b", "n3", "cpu 8, pods 9")}, more...)...)
	}
	for name, test := range map[string]struct {
		member *ClusterState
		pod    *corev1.Pod
		want   int32
	}{
		"without rules each node takes eight": {three(), web("p", ""), 24},
		"one per node":                        {three(), web("p", "", apart(hostname)), 3},
		"one per node, and one is there":      {three(web("w1", "n2")), web("p", "", apart(hostname)), 2},
		"of another workload one may be there": {three(aPod("w1", "n2", "cpu 1", madeBy("other"))),
			web("p", "", apart(hostname)), 3},
		"one that waits for a node will have one": {three(web("w1", "", apart(hostname))),
			web("p", "", apart(hostname)), 2},
		"one per zone":                   {three(), web("p", "", apart(zone)), 2},
		"one per zone, and one is there": {three(web("w1", "n2")), web("p", "", apart(zone)), 1},
		"a node without the label is apart from all": {three(inZone("", "n4", "cpu 2, pods 9")), web("p", "", apart(zone)),
			4},
		"one per node and zone":                       {three(), web("p", "", apart(hostname), apart(zone)), 2},
		"zones alike: the small one bounds the other": {three(), web("p", "", even(zone, 1)), 17},
		"zones alike, and one has more": {three(web("w1", "n1"), web("w2", "n1")),
			web("p", "", even(zone, 1)), 15},
		"nodes alike": {three(inZone("b", "n4", "cpu 2, pods 9")),
			web("p", "", even(hostname, 1)), 11},
		"a full node bounds the others": {three(inZone("b", "n4", "cpu 0, pods 9")),
			web("p", "", even(hostname, 2)), 6},
		"one that pods do not tolerate counts": {three(inZone("b", "n4", "cpu 8, pods 9",
			tainted("gpu", corev1.TaintEffectNoSchedule))), web("p", "", even(hostname, 2)), 6},
		"unless taints are honoured": {three(inZone("b", "n4", "cpu 8, pods 9",
			tainted("gpu", corev1.TaintEffectNoSchedule))), web("p", "", even(hostname, 2, honour)), 24},
		"one that pods do not select does not count": {three(inZone("c", "n4", "cpu 0, pods 9")),
			web("p", "", even(zone, 1), func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{zone: "a"} }), 16},
		"unless affinity is ignored": {three(inZone("c", "n4", "cpu 0, pods 9")),
			web("p", "", even(zone, 1, anywhere), func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{zone: "a"} }),
			1},
		"too few zones: as many as the skew in each": {three(), web("p", "", even(zone, 2, minDomains(3))), 4},
		"a node without the label takes none": {three(inZone("", "n4", "cpu 8, pods 9")),
			web("p", "", even(zone, 1)), 17},
		"one per node, zones alike": {three(inZone("b", "n4", "cpu 8, pods 9"),
			inZone("a", "n5", "cpu 8, pods 9"), inZone("a", "n6", "cpu 8, pods 9")),
			web("p", "", apart(hostname), even(zone, 1)), 5},
		"what should be even, and need not, does not count": {three(),
			web("p", "", even(zone, 1, func(c *corev1.TopologySpreadConstraint) {
				c.WhenUnsatisfiable = corev1.ScheduleAnyway
			})), 24},
		"away from others does not count": {three(),
			web("p", "", apart(hostname), func(p *corev1.Pod) { p.Labels["app"] = "other" }), 24},
		"a port of each node": {three(), web("p", "", port(80)), 3},
		"a port that another pod has": {three(aPod("x", "n1", "cpu 1", port(80), port(81))),
			web("p", "", port(80)), 2},
		"a port that a waiting pod will have": {three(aPod("x", "", "cpu 1", port(80))), web("p", "", port(80)),
			2},
		"a port that the host's network takes": {three(aPod("x", "n1", "cpu 1", port(80))), web("p", "", func(p *corev1.Pod) {
			p.Spec.HostNetwork = true
			p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80}}
		}), 2},
		"another port, and the same of another protocol, are not taken": {three(aPod("x", "n1", "cpu 1", port(81)),
			aPod("y", "n2", "cpu 1", port(80),
				func(p *corev1.Pod) { p.Spec.Containers[0].Ports[0].Protocol = corev1.ProtocolUDP })), web("p", "", port(80)), 3},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.member.Replicas(replica(test.pod)); got != test.want {
				t.Errorf("there is room for %d, want %d", got, test.want)
			}
		})
	}
}

// Pods of a placement appear on other nodes than reserved, or disappear: expected replicas still get their own node.
func TestExpectedReplicasStayApartFromPods(t *testing.T) {
	m := NewClusterState().set(inZone("a", "n1", "cpu 8, pods 9"), inZone("a", "n2", "cpu 8, pods 9"),
		inZone("b", "n3", "cpu 8, pods 9"),
		inZone("b", "n4", "cpu 8, pods 9"))
	need := replica(web("p", "", apart(hostname)))
	has := func(what string, want int32) {
		t.Helper()
		if got := m.Replicas(need); got != want {
			t.Errorf("%s: there is room for %d, want %d", what, got, want)
		}
	}
	has("at first", 4)
	m.Assume(Assumption{Key: "web", Workload: need.of, Parts: []Part{{need, 1}}, Replicas: 3})
	has("three are expected", 1)
	m.set(web("w1", "n1"))
	has("one came to the first node", 1)
	m.set(web("w2", "", apart(hostname)))
	has("one waits", 1)
	m.set(web("w2", "n4"))
	has("it got a node", 1)
	m.RemovePod("shop", "w1")
	has("one is gone, and another expected for it", 1)
	m.set(web("w3", "n2"), web("w4", "n3"))
	has("all are there", 1)
	m.RemoveNode("n1")
	has("the last node that was free is gone", 0)
}

// spreads reports whether Kubernetes' spread rules allow a pod on a node.
func (f objects) spreads(n *corev1.Node, p *corev1.Pod, beside map[string][]*corev1.Pod) bool {
	matches := func(selector *metav1.LabelSelector, o *corev1.Pod) bool {
		s, _ := metav1.LabelSelectorAsSelector(selector)
		return s.Matches(labels.Set(o.Labels))
	}
	if a := p.Spec.Affinity; a != nil && a.PodAntiAffinity != nil {
		for _, term := range a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
			value, has := n.Labels[term.TopologyKey]
			for name, pods := range beside {
				if other, also := f.nodes[name].Labels[term.TopologyKey]; has && also && value == other &&
					slices.ContainsFunc(pods, func(o *corev1.Pod) bool { return matches(term.LabelSelector, o) }) {
					return false
				}
			}
		}
	}
	for _, c := range p.Spec.TopologySpreadConstraints {
		count := map[string]int32{}
		for name, node := range f.nodes {
			without := slices.ContainsFunc(p.Spec.TopologySpreadConstraints, func(c corev1.TopologySpreadConstraint) bool {
				_, has := node.Labels[c.TopologyKey]
				return !has
			})
			probe := &corev1.Node{}
			probe.Name, probe.Labels = node.Name, node.Labels
			selected := len(p.Spec.NodeSelector) == 0 || node.Labels[zone] == p.Spec.NodeSelector[zone]
			tolerated := len(node.Spec.Taints) == 0 && !node.Spec.Unschedulable
			if without || !selected && (c.NodeAffinityPolicy == nil) || !tolerated && c.NodeTaintsPolicy != nil {
				continue
			}
			count[node.Labels[c.TopologyKey]] += 0
			for _, o := range beside[name] {
				if matches(c.LabelSelector, o) {
					count[node.Labels[c.TopologyKey]]++
				}
			}
		}
		value, has := n.Labels[c.TopologyKey]
		least := int32(0)
		if len(count) > 0 && (c.MinDomains == nil || int32(len(count)) >= *c.MinDomains) {
			least = slices.Min(slices.Collect(maps.Values(count)))
		}
		if !has || count[value]+1-least > c.MaxSkew {
			return false
		}
	}
	return true
}

// most tries all orders and nodes for equal pods and returns the largest number placed.
func (f objects) most(p *corev1.Pod) int {
	names := slices.Sorted(maps.Keys(f.nodes))
	beside := map[string][]*corev1.Pod{}
	for _, name := range names {
		beside[name] = f.podsOn(name)
	}
	seen := map[string]int{}
	var from func() int
	from = func() int {
		state := ""
		for _, name := range names {
			state += fmt.Sprint(len(beside[name]), " ")
		}
		if n, known := seen[state]; known {
			return n
		}
		best := 0
		for _, name := range names {
			if f.fits(f.nodes[name], p, beside[name]) && f.spreads(f.nodes[name], p, beside) {
				beside[name] = append(beside[name], p)
				best = max(best, 1+from())
				beside[name] = beside[name][:len(beside[name])-1]
			}
		}
		seen[state] = best
		return best
	}
	return from()
}

// anyWeb returns a pod of web with spread rules, and a small cluster that runs some of its pods.
func anyWeb(r *rand.Rand) (objects, *corev1.Pod, int) {
	f := objects{map[string]*corev1.Node{}, map[string]*corev1.Pod{}}
	for i := range 1 + r.IntN(4) {
		z := []string{"a", "b", "c", ""}[min(r.IntN(6), 3)]
		n := inZone(z, fmt.Sprintf("n%d", i), fmt.Sprintf("cpu %d, pods 5", r.IntN(4)))
		switch r.IntN(8) {
		case 0:
			cordon(n)
		case 1:
			tainted("dedicated", corev1.TaintEffectNoSchedule)(n)
		}
		f.nodes[n.Name] = n
	}
	for i := range r.IntN(4) {
		name := fmt.Sprintf("w%d", i)
		f.pods[name] = web(name, fmt.Sprintf("n%d", r.IntN(len(f.nodes))))
	}
	p, rules := web("p", ""), 1+r.IntN(2)
	if r.IntN(4) == 0 {
		p.Spec.NodeSelector = map[string]string{zone: "a"}
	}
	for range rules {
		key := []string{zone, hostname}[r.IntN(2)]
		if r.IntN(3) == 0 {
			apart(key)(p)
			continue
		}
		even(key, int32(1+r.IntN(2)), func(c *corev1.TopologySpreadConstraint) {
			for _, differ := range []func(*corev1.TopologySpreadConstraint){minDomains(2), honour, anywhere} {
				if r.IntN(4) == 0 {
					differ(c)
				}
			}
		})(p)
	}
	return f, p, rules
}

// The reported room never exceeds the best order of placement, and equals it under a single rule.
func TestSpreadRoomMatchesBestOrder(t *testing.T) {
	several, short := 0, 0
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 5))
		f, p, rules := anyWeb(r)
		m := NewClusterState()
		for _, n := range f.nodes {
			m.set(n)
		}
		for _, o := range f.pods {
			m.set(o)
		}
		got, want := int(m.Replicas(replica(p))), f.most(p)
		if got > want || got < want && rules == 1 {
			t.Fatalf("seed %d: there is room for %d by %s, want %d", seed, got, SpreadOf("shop", p.Labels, &p.Spec), want)
		}
		if rules > 1 && want > 0 {
			several++
			if got < want {
				short++
			}
		}
	}
	if several < 300 || short > several/20 {
		t.Errorf("of %d cases with several rules, %d found less than the best order", several, short)
	}
}

// With changing pods and successive placements, expected replicas and reported room fit together.
func TestSpreadPlacementsFitTogether(t *testing.T) {
	some := 0
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 6))
		f, p, _ := anyWeb(r)
		p.Spec.TopologySpreadConstraints = nil
		apart([]string{zone, hostname}[r.IntN(2)])(p)
		f.pods = map[string]*corev1.Pod{}
		m := NewClusterState()
		for _, n := range f.nodes {
			m.set(n)
		}
		need, expected := replica(p), 0
		for step := range 8 {
			switch names := slices.Sorted(maps.Keys(f.nodes)); {
			case r.IntN(3) == 0:
				more := int(min(m.Replicas(need), int32(r.IntN(3))))
				if expected += more; more > 0 {
					m.Assume(Assumption{Key: "web", Workload: need.of, Parts: []Part{{need, 1}},
						Replicas: int64(len(f.pods) + expected)})
				}
			case expected > 0:
				name := names[r.IntN(len(names))]
				o := web(fmt.Sprintf("w%d", step), name)
				beside := map[string][]*corev1.Pod{}
				for n := range f.nodes {
					beside[n] = f.podsOn(n)
				}
				if !f.fits(f.nodes[name], p, f.podsOn(name)) || !f.spreads(f.nodes[name], p, beside) {
					continue
				}
				if f.pods[o.Name] = o; f.most(p) < expected-1 {
					delete(f.pods, o.Name) // its scheduler was clumsy
					continue
				}
				m.set(o)
				expected--
			}
			k := int(m.Replicas(need))
			if most := f.most(p); expected+k > most {
				t.Fatalf("seed %d, step %d: %d are expected and %d more are reported to fit, but only %d fit", seed, step, expected,
					k,
					most)
			}
			some += min(1, expected)
		}
	}
	if some < 200 {
		t.Errorf("only %d steps had an assumption: too few for the test", some)
	}
}
