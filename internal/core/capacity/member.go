package capacity

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Member is what is known of one member's nodes, pods and quotas, and what is expected there: sums per node, kept
// current by each change. It is not safe for concurrent use.
//
// Room is what is left on nodes after their pods and after holds: replicas that are expected, each on a node that it
// fits on. Holds are pods without a node, and placements whose pods are not there yet (Assume). A pod that fits nowhere
// holds nothing until there is room.
type Member struct {
	nodes  []*node // by name
	byName map[string]*node
	known  int // nodes seen
	pods   map[podKey]pod
	// waiting is what pods without a node request.
	waiting   Amounts
	workloads map[Workload]*workload
	queued    map[queueKey]*hold // holds of pods without a node
	quotas    map[string][]Quota // by namespace

	assumptions map[string]*assumption
	// namesakes are the assumptions by the namespace and name of their workloads.
	namesakes map[podKey][]*assumption

	sequence uint64
	// unplaced are holds with replicas that are on no node; over are nodes that more is held on than they have, stale
	// are assumptions of which pods came or went: all three are settled before the next answer.
	unplaced map[*hold]trial
	over     map[*node]bool
	stale    map[*assumption]bool
	freed    bool // something may fit that did not when it was tried
	// spreading are the holds on nodes that keep away from pods of their own; shifted says that these may have to be
	// arranged anew.
	spreading map[*hold]bool
	shifted   bool
	tracking  bool // workloads know what nodes their pods are on: from when that is asked first

	grown bool
}

// trial says whether a hold was tried to be placed since it changed.
type trial bool

const untried, tried trial = false, true

type podKey struct{ namespace, name string }

// queueKey is equal for pods that ask for the same.
type queueKey struct{ namespace, likeness string }

// pod is a Pod, kept.
type pod struct {
	node     *node // nil while it has none
	requests []request
	workload *workload
	waits    *waits
}

// workload counts the pods of one, and shares what they request.
type workload struct {
	Workload
	pods     int64
	requests []request
	at       map[*node]int64 // its pods by node, if those are tracked
}

// NewMember knows of nothing yet.
func NewMember() *Member {
	return &Member{
		byName: map[string]*node{}, pods: map[podKey]pod{}, waiting: Amounts{}, workloads: map[Workload]*workload{},
		queued: map[queueKey]*hold{}, quotas: map[string][]Quota{}, assumptions: map[string]*assumption{},
		namesakes: map[podKey][]*assumption{},
		unplaced:  map[*hold]trial{}, over: map[*node]bool{}, stale: map[*assumption]bool{}, spreading: map[*hold]bool{},
	}
}

// Grown says whether room may have appeared since it was asked last: a pod gone, a node or quota with more, a placement
// that was given up.
func (m *Member) Grown() bool {
	grown := m.grown
	m.grown = false
	return grown
}

// Known says whether the member has nodes that can be seen. One without, such as one that makes nodes when pods wait,
// says nothing about its room.
func (m *Member) Known() bool { return m.known > 0 }

// Nodes calls f for each node, by name, with what the pods on it request. Neither may be kept.
func (m *Member) Nodes(f func(n *Node, requested Amounts)) {
	for _, n := range m.nodes {
		if n.seen {
			f(&n.Node, n.requested)
		}
	}
}

// Waiting is what pods without a node request. It may not be kept.
func (m *Member) Waiting() Amounts { return m.waiting }

// Unschedulable are the pods that the member's scheduler has found no node for, by namespace and name.
func (m *Member) Unschedulable() []Pending {
	var pending []Pending
	for _, p := range m.pods {
		if p.waits != nil && p.waits.unschedulable != nil {
			pending = append(pending, *p.waits.unschedulable)
		}
	}
	slices.SortFunc(pending, func(a, b Pending) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return pending
}

// Utilisation is the share of what nodes that take pods have which the pods on them request, by resource; nil without
// such nodes.
func (m *Member) Utilisation() map[corev1.ResourceName]float64 {
	allocatable, requested := Amounts{}, Amounts{}
	for _, n := range m.nodes {
		if !n.open() {
			continue
		}
		for name, amount := range n.Allocatable {
			allocatable[name] += amount
			requested[name] += n.requested[name]
		}
	}
	var share map[corev1.ResourceName]float64
	for name, amount := range allocatable {
		if amount <= 0 {
			continue
		}
		if share == nil {
			share = map[corev1.ResourceName]float64{}
		}
		share[name] = float64(requested[name]) / float64(amount)
	}
	return share
}

// SetNode takes in a node as it is now.
func (m *Member) SetNode(now Node) {
	n := m.node(now.Name)
	if n.seen && n.equal(&now) {
		return
	}
	if !n.seen {
		n.seen = true
		m.known++
	}
	for name, amount := range n.Allocatable {
		n.free[name] -= amount
	}
	for name, amount := range now.Allocatable {
		n.free[name] += amount
	}
	n.Node = now
	m.evict(n, func(h *hold) bool { return !n.admits(h.need) })
	m.over[n], m.freed, m.grown, m.shifted = true, true, true, true
}

// RemoveNode takes in that a node is gone.
func (m *Member) RemoveNode(name string) {
	n := m.byName[name]
	if n == nil || !n.seen {
		return
	}
	for name, amount := range n.Allocatable {
		n.free[name] -= amount
	}
	n.Node, n.seen = Node{Name: name}, false
	m.known--
	m.evict(n, func(*hold) bool { return true })
	m.shifted = true
	m.drop(n)
}

// ReplaceNodes takes in all nodes there are.
func (m *Member) ReplaceNodes(all []Node) {
	there := make(map[string]bool, len(all))
	for _, n := range all {
		there[n.Name] = true
		m.SetNode(n)
	}
	for _, n := range slices.Clone(m.nodes) {
		if !there[n.Name] {
			m.RemoveNode(n.Name)
		}
	}
}

// node is the node of that name, made if there is none.
func (m *Member) node(name string) *node {
	if n := m.byName[name]; n != nil {
		return n
	}
	n := &node{Node: Node{Name: name}, requested: Amounts{}, free: Amounts{}, holds: map[*hold]int64{}}
	m.byName[name] = n
	at, _ := slices.BinarySearchFunc(m.nodes, name, func(n *node, name string) int {
		return strings.Compare(n.Name, name)
	})
	m.nodes = slices.Insert(m.nodes, at, n)
	return n
}

// drop forgets a node that is neither there nor has pods.
func (m *Member) drop(n *node) {
	if n.seen || n.requested[corev1.ResourcePods] != 0 {
		return
	}
	delete(m.byName, n.Name)
	delete(m.over, n)
	m.nodes = slices.DeleteFunc(m.nodes, func(o *node) bool { return o == n })
}

// SetPod takes in a pod as it is now.
func (m *Member) SetPod(now Pod) {
	key := podKey{now.Namespace, now.Name}
	was, known := m.pods[key]
	if known && was.node != nil && was.node.Name == now.node && slices.Equal(was.requests, now.requests) {
		return // what changed does not count
	}
	if known && was.node == nil && now.waits != nil && was.waits.likeness == now.waits.likeness {
		was.waits.unschedulable = now.waits.unschedulable
		return
	}
	p := pod{requests: now.requests, waits: now.waits, workload: m.workloads[now.workload]}
	if p.workload == nil {
		p.workload = &workload{Workload: now.workload}
		m.workloads[now.workload] = p.workload
	}
	if w := p.workload; slices.Equal(w.requests, p.requests) {
		p.requests = w.requests
	} else {
		w.requests = p.requests
	}
	if now.node != "" {
		p.node = m.node(now.node)
	}
	p.workload.pods++
	if known {
		m.discount(was, p)
	}
	key.namespace = p.workload.Namespace // one string for all pods of it
	m.pods[key] = p
	if !known {
		m.moved(p.workload)
	}
	if p.node == nil {
		m.waiting.add(p.requests, 1)
		m.queue(p)
		return
	}
	m.shifted = true
	if m.tracking {
		p.workload.track(p.node, 1)
	}
	p.node.requested.add(p.requests, 1)
	p.node.free.add(p.requests, -1)
	if len(p.node.holds) > 0 {
		m.over[p.node] = true
	}
}

// RemovePod takes in that a pod is gone, or has ended.
func (m *Member) RemovePod(namespace, name string) {
	key := podKey{namespace, name}
	was, known := m.pods[key]
	if !known {
		return
	}
	delete(m.pods, key)
	m.discount(was, pod{})
	m.moved(was.workload)
	m.grown = true
}

// ReplacePods takes in all pods there are.
func (m *Member) ReplacePods(all []Pod) {
	there := make(map[podKey]bool, len(all))
	for i := range all {
		there[podKey{all[i].Namespace, all[i].Name}] = true
	}
	for key := range m.pods {
		if !there[key] {
			m.RemovePod(key.namespace, key.name)
		}
	}
	for _, p := range all {
		m.SetPod(p)
	}
}

// discount takes back what was counted of a pod that is gone, or becomes now.
func (m *Member) discount(was, now pod) {
	was.workload.pods--
	if was.workload.pods == 0 {
		delete(m.workloads, was.workload.Workload)
	}
	if was.node == nil {
		m.waiting.add(was.requests, -1)
		maps.DeleteFunc(m.waiting, func(_ corev1.ResourceName, n int64) bool { return n == 0 })
		m.unqueue(was, now.node)
		return
	}
	m.shifted = true
	if m.tracking {
		was.workload.track(was.node, -1)
	}
	was.node.requested.add(was.requests, -1)
	was.node.free.add(was.requests, 1)
	m.freed = true
	if was.node != now.node || !slices.Equal(was.requests, now.requests) {
		m.grown = true
	}
	if was.node != now.node {
		m.drop(was.node)
	}
}

// SetQuota takes in a quota as it is now.
func (m *Member) SetQuota(now Quota) {
	quotas := m.quotas[now.Namespace]
	at := slices.IndexFunc(quotas, func(q Quota) bool { return q.Name == now.Name })
	if at < 0 {
		m.quotas[now.Namespace] = append(quotas, now)
		return
	}
	m.grown = m.grown || now.grew(&quotas[at])
	quotas[at] = now
}

// RemoveQuota takes in that a quota is gone.
func (m *Member) RemoveQuota(namespace, name string) {
	left := slices.DeleteFunc(m.quotas[namespace], func(q Quota) bool { return q.Name == name })
	m.quotas[namespace] = left
	if len(left) == 0 {
		delete(m.quotas, namespace)
	}
	m.grown = true
}

// ReplaceQuotas takes in all quotas there are.
func (m *Member) ReplaceQuotas(all []Quota) {
	type key struct{ namespace, name string }
	there := map[key]bool{}
	for _, q := range all {
		there[key{q.Namespace, q.Name}] = true
	}
	for namespace, quotas := range m.quotas {
		for _, q := range slices.Clone(quotas) {
			if !there[key{namespace, q.Name}] {
				m.RemoveQuota(namespace, q.Name)
			}
		}
	}
	for _, q := range all {
		m.SetQuota(q)
	}
}

// mostSets bounds how many sets of components are counted: one after another, unlike replicas.
const mostSets = 100

// Replicas is how many more replicas the member has room for: exactly what fits beside its pods and holds,
// math.MaxInt32 at most. Where several rules that spread a workload's pods meet, it is what one order of placing them
// comes to.
func (m *Member) Replicas(need *Requirement) int32 {
	m.settle()
	bound := m.allowed([]Part{{need, 1}})
	if need.spread != nil {
		return int32(min(m.plan(need).room(), bound))
	}
	total := int64(0)
	for _, n := range m.nodes {
		if total >= bound {
			break
		}
		total += min(n.takes(need), math.MaxInt32)
	}
	return int32(min(total, bound))
}

// Sets is for how many sets of all parts together the member has room, 100 at most. The largest parts are given nodes
// first, each the first node by name that it fits on: what that finds fits; another arrangement may fit more.
func (m *Member) Sets(parts []Part) int32 {
	m.settle()
	largest := slices.Clone(parts)
	slices.SortStableFunc(largest, func(a, b Part) int { return cmp.Compare(m.share(b.Need), m.share(a.Need)) })
	bound := min(m.allowed(parts), mostSets)
	var probes []*hold
	sets := int64(0)
	for ; sets < bound; sets++ {
		fits := true
		for _, p := range largest {
			h := newHold(p.Need)
			probes = append(probes, h)
			if m.place(h, p.Replicas) < p.Replicas {
				fits = false
				break
			}
		}
		if !fits {
			break
		}
	}
	for _, h := range probes {
		for n := range h.at {
			m.lift(h, n, h.at[n])
		}
	}
	m.freed = false // all is as it was
	return int32(sets)
}

// share is the largest share of a resource of the member that one replica requests.
func (m *Member) share(need *Requirement) (most float64) {
	for _, r := range need.requests {
		total := int64(0)
		for _, n := range m.nodes {
			total += n.Allocatable[r.name]
		}
		most = max(most, float64(r.amount)/float64(max(1, total)))
	}
	return most
}

// allowed is how many more times the parts may be made by the quotas of their namespaces; math.MaxInt32 without a
// bound.
func (m *Member) allowed(parts []Part) int64 {
	most := int64(math.MaxInt32)
	if len(parts) == 0 || len(m.quotas) == 0 {
		return most
	}
	namespace := parts[0].Need.namespace
	for i := range m.quotas[namespace] {
		q := &m.quotas[namespace][i]
		asked, expected := Amounts{}, Amounts{}
		for _, p := range parts {
			if q.about(p.Need) {
				asked.addUpTo(p.Need.requests, p.Replicas)
			}
		}
		for _, a := range m.assumptions {
			for _, h := range a.holds {
				if h.need.namespace == namespace && q.about(h.need) {
					expected.add(h.need.requests, h.replicas)
				}
			}
		}
		for name, left := range q.left {
			if n := asked[name]; n > 0 {
				most = min(most, max(0, left-expected[name])/n)
			}
		}
	}
	return most
}

// settle makes holds what they should be.
func (m *Member) settle() {
	for a := range m.stale {
		m.revise(a)
	}
	clear(m.stale)
	for n := range m.over {
		m.relieve(n)
	}
	clear(m.over)
	if m.shifted {
		m.regroup()
		m.shifted = false
	}
	var try []*hold
	for h, was := range m.unplaced {
		if m.freed || was == untried {
			try = append(try, h)
		}
	}
	slices.SortFunc(try, func(a, b *hold) int { return cmp.Compare(a.sequence, b.sequence) })
	for _, h := range try {
		if m.place(h, h.replicas-h.placed); h.placed == h.replicas {
			delete(m.unplaced, h)
		} else {
			m.unplaced[h] = tried
		}
	}
	m.freed = false
}

// Expire gives up assumptions whose time is over.
func (m *Member) Expire(now time.Time) {
	for key, a := range m.assumptions {
		if !now.Before(a.until) {
			m.Release(key)
		}
	}
}

// Spare is what is left on nodes that take pods after their pods and what is expected there, and how many pods are
// expected: replicas that were placed and are not seen yet, and pods without a node.
func (m *Member) Spare() (free Amounts, expected int64) {
	m.settle()
	free = Amounts{}
	for _, n := range m.nodes {
		if !n.open() {
			continue
		}
		for name := range n.Allocatable {
			free[name] += max(0, n.free[name])
		}
	}
	for _, h := range m.queued {
		expected += h.replicas
	}
	for _, a := range m.assumptions {
		for _, h := range a.holds {
			expected += h.replicas
		}
	}
	return free, expected
}
