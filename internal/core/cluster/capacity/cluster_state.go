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

// ClusterState is a model of one member's nodes, pods and quotas. Each change updates the sums per node. It is not safe
// for concurrent use.
//
// The free room of a node excludes its pods and its reservations. Reservations exist for pods without a node and for
// assumptions. A pod that fits on no node reserves nothing.
type ClusterState struct {
	nodes     []*node // by name
	byName    map[string]*node
	nodeCount int // number of nodes that exist
	pods      map[podKey]pod
	// pendingRequests is the sum of the requests of pods without a node.
	pendingRequests Amounts
	workloads       map[Workload]*workload
	queued          map[queueKey]*reservation // reservations of pods without a node
	quotas          map[string][]Quota        // by namespace

	assumptions map[string]*assumption
	// namesakes indexes assumptions by the namespace and name of the workload.
	namesakes map[podKey][]*assumption

	sequence uint64
	// unplaced has reservations with replicas on no node. over has nodes that may be overcommitted. stale has assumptions
	// whose pods changed. settle handles all three before each answer.
	unplaced map[*reservation]attempt
	over     map[*node]bool
	stale    map[*assumption]bool
	freed    bool // room was freed since the last attempt to place
	// spreading has placed reservations with a spread rule. shifted is true if they must be placed again.
	spreading map[*reservation]bool
	shifted   bool
	tracking  bool // workloads count their pods per node, from the first time that it is needed

	grown bool
	// touched, if not nil, is called for a node whose free room changed. Changes of the node itself do not count.
	touched func(*node)
}

// attempt records whether settle tried to place a reservation since it changed.
type attempt bool

const untried, tried attempt = false, true

type podKey struct{ namespace, name string }

// queueKey is equal for pods of a namespace with equal requirements.
type queueKey struct{ namespace, likeness string }

// pod is the stored form of a Pod.
type pod struct {
	node     *node // nil for a pod without a node
	requests []request
	workload *workload
	waits    *waits
}

// workload counts the pods of a workload. Pods with equal requests share the slice.
type workload struct {
	Workload
	pods     int64
	requests []request
	at       map[*node]int64 // pods per node; nil unless tracking
}

// NewClusterState returns a model without nodes, pods and quotas.
func NewClusterState() *ClusterState {
	return &ClusterState{
		byName: map[string]*node{}, pods: map[podKey]pod{}, pendingRequests: Amounts{}, workloads: map[Workload]*workload{},
		queued: map[queueKey]*reservation{}, quotas: map[string][]Quota{}, assumptions: map[string]*assumption{},
		namesakes: map[podKey][]*assumption{},
		unplaced:  map[*reservation]attempt{}, over: map[*node]bool{}, stale: map[*assumption]bool{},
		spreading: map[*reservation]bool{},
	}
}

// TakeGrown reports whether room may have appeared since the last call: a pod was deleted or requests less
// than was reserved for it, a node or quota grew, or an assumption was dropped or expects fewer replicas.
func (m *ClusterState) TakeGrown() bool {
	grown := m.grown
	m.grown = false
	return grown
}

// HasNodes reports whether the cluster has visible nodes. Without any, for example if nodes are created on demand, the
// model cannot estimate the room.
func (m *ClusterState) HasNodes() bool { return m.nodeCount > 0 }

// Nodes calls f for each node, sorted by name, with the requests of its pods. f must not keep its arguments.
func (m *ClusterState) Nodes(f func(n *Node, requested Amounts)) {
	for _, n := range m.nodes {
		if n.seen {
			f(&n.Node, n.requested)
		}
	}
}

// PendingRequests returns the sum of the requests of pods without a node. The caller must not keep it.
func (m *ClusterState) PendingRequests() Amounts { return m.pendingRequests }

// Unschedulable returns the pods that the member's scheduler marked Unschedulable, sorted by namespace and name.
func (m *ClusterState) Unschedulable() []UnschedulablePod {
	var pending []UnschedulablePod
	for _, p := range m.pods {
		if p.waits != nil && p.waits.unschedulable != nil {
			pending = append(pending, *p.waits.unschedulable)
		}
	}
	slices.SortFunc(pending, func(a, b UnschedulablePod) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return pending
}

// Utilisation returns the requested share of the allocatable resources of schedulable nodes. It returns nil if there
// are none.
func (m *ClusterState) Utilisation() map[corev1.ResourceName]float64 {
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

// SetNode adds or updates a node.
func (m *ClusterState) SetNode(now Node) {
	n := m.node(now.Name)
	if n.seen && n.equal(&now) {
		return
	}
	if !n.seen {
		n.seen = true
		m.nodeCount++
	}
	for name, amount := range n.Allocatable {
		n.free[name] -= amount
	}
	for name, amount := range now.Allocatable {
		n.free[name] += amount
	}
	n.Node = now
	m.displace(n, func(h *reservation) bool { return !n.admits(h.need) })
	m.over[n], m.freed, m.grown, m.shifted = true, true, true, true
}

func (m *ClusterState) RemoveNode(name string) {
	n := m.byName[name]
	if n == nil || !n.seen {
		return
	}
	for name, amount := range n.Allocatable {
		n.free[name] -= amount
	}
	n.Node, n.seen = Node{Name: name}, false
	m.nodeCount--
	m.displace(n, func(*reservation) bool { return true })
	m.shifted = true
	m.drop(n)
}

func (m *ClusterState) ReplaceNodes(all []Node) {
	replace(slices.Sorted(maps.Keys(m.byName)), all, func(n Node) string { return n.Name }, m.RemoveNode, m.SetNode)
}

// replace removes what is not in all, and sets the others.
func replace[T any, K comparable](known []K, all []T, key func(T) K, remove func(K), set func(T)) {
	there := make(map[K]bool, len(all))
	for _, o := range all {
		there[key(o)] = true
	}
	for _, k := range known {
		if !there[k] {
			remove(k)
		}
	}
	for _, o := range all {
		set(o)
	}
}

// node returns the node with this name and creates it if necessary.
func (m *ClusterState) node(name string) *node {
	if n := m.byName[name]; n != nil {
		return n
	}
	n := &node{Node: Node{Name: name}, requested: Amounts{}, free: Amounts{}, reservations: map[*reservation]int64{}}
	m.byName[name] = n
	at, _ := slices.BinarySearchFunc(m.nodes, name, func(n *node, name string) int {
		return strings.Compare(n.Name, name)
	})
	m.nodes = slices.Insert(m.nodes, at, n)
	return n
}

// take takes the room of k pods or replicas from a node; a negative number frees it.
func (m *ClusterState) take(n *node, requests []request, k int64) {
	n.free.add(requests, -k)
	if m.touched != nil {
		m.touched(n)
	}
}

// drop removes a node that does not exist and has no pods.
func (m *ClusterState) drop(n *node) {
	if n.seen || n.requested[corev1.ResourcePods] != 0 {
		return
	}
	delete(m.byName, n.Name)
	delete(m.over, n)
	m.nodes = slices.DeleteFunc(m.nodes, func(o *node) bool { return o == n })
}

// SetPod adds or updates a pod.
func (m *ClusterState) SetPod(now Pod) {
	key := podKey{now.Namespace, now.Name}
	was, known := m.pods[key]
	if known && was.node != nil && was.node.Name == now.node && slices.Equal(was.requests, now.requests) {
		return // no change in requests or node
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
	key.namespace = p.workload.Namespace // all pods of the workload share one string
	m.pods[key] = p
	if !known {
		m.markStale(p.workload)
	}
	if p.node == nil {
		m.pendingRequests.add(p.requests, 1)
		m.queue(p)
		return
	}
	m.shifted = true
	if m.tracking {
		p.workload.track(p.node, 1)
	}
	p.node.requested.add(p.requests, 1)
	m.take(p.node, p.requests, 1)
	if len(p.node.reservations) > 0 {
		m.over[p.node] = true
	}
}

// RemovePod removes a pod that was deleted or has ended.
func (m *ClusterState) RemovePod(namespace, name string) {
	key := podKey{namespace, name}
	was, known := m.pods[key]
	if !known {
		return
	}
	delete(m.pods, key)
	m.discount(was, pod{})
	m.markStale(was.workload)
	m.grown = true
}

func (m *ClusterState) ReplacePods(all []Pod) {
	replace(slices.Collect(maps.Keys(m.pods)), all, func(p Pod) podKey { return podKey{p.Namespace, p.Name} },
		func(k podKey) { m.RemovePod(k.namespace, k.name) }, m.SetPod)
}

// discount subtracts the old state of a pod. The new state is empty if the pod was deleted.
func (m *ClusterState) discount(was, now pod) {
	was.workload.pods--
	if was.workload.pods == 0 {
		delete(m.workloads, was.workload.Workload)
	}
	if was.node == nil {
		m.pendingRequests.add(was.requests, -1)
		maps.DeleteFunc(m.pendingRequests, func(_ corev1.ResourceName, n int64) bool { return n == 0 })
		m.unqueue(was, now.node)
		return
	}
	m.shifted = true
	if m.tracking {
		was.workload.track(was.node, -1)
	}
	was.node.requested.add(was.requests, -1)
	m.take(was.node, was.requests, -1)
	m.freed = true
	if was.node != now.node || !slices.Equal(was.requests, now.requests) {
		m.grown = true
	}
	if was.node != now.node {
		m.drop(was.node)
	}
}

// SetQuota adds or updates a quota.
func (m *ClusterState) SetQuota(now Quota) {
	quotas := m.quotas[now.Namespace]
	at := slices.IndexFunc(quotas, func(q Quota) bool { return q.Name == now.Name })
	if at < 0 {
		m.quotas[now.Namespace] = append(quotas, now)
		return
	}
	m.grown = m.grown || now.grew(&quotas[at])
	quotas[at] = now
}

func (m *ClusterState) RemoveQuota(namespace, name string) {
	left := slices.DeleteFunc(m.quotas[namespace], func(q Quota) bool { return q.Name == name })
	m.quotas[namespace] = left
	if len(left) == 0 {
		delete(m.quotas, namespace)
	}
	m.grown = true
}

func (m *ClusterState) ReplaceQuotas(all []Quota) {
	type key struct{ namespace, name string }
	of := func(q Quota) key { return key{q.Namespace, q.Name} }
	var known []key
	for _, quotas := range m.quotas {
		for _, q := range quotas {
			known = append(known, of(q))
		}
	}
	replace(known, all, of, func(k key) { m.RemoveQuota(k.namespace, k.name) }, m.SetQuota)
}

// maxSets limits Sets, which places one set after another. A small set fits a million times in a large member.
const maxSets = 100

// Replicas returns how many more replicas fit beside the pods and reservations, at most math.MaxInt32. With several
// spread rules it is the result of one order of placement, not always the optimum.
func (m *ClusterState) Replicas(need *Requirement) int32 {
	m.settle()
	bound, _, _ := m.allowed([]Part{{need, 1}})
	if need.spread != nil {
		return int32(min(m.newSpreader(need).room(), bound))
	}
	total := int64(0)
	for _, n := range m.nodes {
		if total >= bound {
			break
		}
		total += min(n.fitCount(need), math.MaxInt32)
	}
	return int32(min(total, bound))
}

// Sets returns how many sets of all parts fit together, at most 100. It places the largest parts first, each on the
// first node that fits. Another arrangement might fit more.
func (m *ClusterState) Sets(parts []Part) int32 {
	m.settle()
	largest := slices.Clone(parts)
	slices.SortStableFunc(largest, func(a, b Part) int { return cmp.Compare(m.share(b.Need), m.share(a.Need)) })
	bound, _, _ := m.allowed(parts)
	bound = min(bound, maxSets)
	var probes []*reservation
	sets := int64(0)
	for ; sets < bound; sets++ {
		fits := true
		for _, p := range largest {
			h := newReservation(p.Need)
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
			m.unreserve(h, n, h.at[n])
		}
	}
	m.freed = false // the probes are removed again
	return int32(sets)
}

// share returns the largest share of the cluster's allocatable resources that one replica requests.
func (m *ClusterState) share(need *Requirement) (most float64) {
	for _, r := range need.requests {
		total := int64(0)
		for _, n := range m.nodes {
			total += n.Allocatable[r.name]
		}
		most = max(most, float64(r.amount)/float64(max(1, total)))
	}
	return most
}

// allowed returns how many times the quotas of the namespace allow all parts, and the quota and its resource that allow
// no more; math.MaxInt32 without a quota.
func (m *ClusterState) allowed(parts []Part) (most int64, by *Quota, resource corev1.ResourceName) {
	most = int64(math.MaxInt32)
	if len(parts) == 0 || len(m.quotas) == 0 {
		return most, nil, ""
	}
	namespace := parts[0].Need.namespace
	for i := range m.quotas[namespace] {
		q := &m.quotas[namespace][i]
		asked, expected := Amounts{}, Amounts{}
		for _, p := range parts {
			if q.appliesTo(p.Need) {
				asked.addUpTo(p.Need.inQuotas(), p.Replicas)
			}
		}
		for _, a := range m.assumptions {
			for _, h := range a.reservations {
				if h.need.namespace == namespace && q.appliesTo(h.need) {
					expected.add(h.need.inQuotas(), h.replicas)
				}
			}
		}
		for name, left := range q.left {
			n := asked[name]
			if n == 0 {
				continue
			}
			if k := max(0, left-expected[name]) / n; k < most || k == most && by == q && name < resource {
				most, by, resource = k, q, name
			}
		}
	}
	return most, by, resource
}

// settle brings all reservations up to date.
func (m *ClusterState) settle() {
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
	var try []*reservation
	for h, was := range m.unplaced {
		if m.freed || was == untried {
			try = append(try, h)
		}
	}
	slices.SortFunc(try, func(a, b *reservation) int { return cmp.Compare(a.sequence, b.sequence) })
	for _, h := range try {
		if m.place(h, h.replicas-h.placed); h.placed == h.replicas {
			delete(m.unplaced, h)
		} else {
			m.unplaced[h] = tried
		}
	}
	m.freed = false
}

// Expire drops the assumptions that have expired.
func (m *ClusterState) Expire(now time.Time) {
	for key, a := range m.assumptions {
		if !now.Before(a.until) {
			m.Release(key)
		}
	}
}

// Spare returns the room on schedulable nodes after pods and reservations, and the number of expected pods: assumed
// replicas and pods without a node.
func (m *ClusterState) Spare() (free Amounts, expected int64) {
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
		expected += a.expected()
	}
	return free, expected
}
