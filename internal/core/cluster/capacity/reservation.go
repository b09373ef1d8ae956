package capacity

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/argosy-io/argosy/internal/core/kind"
)

// reservation reserves room on nodes for a number of equal replicas that are expected to appear.
type reservation struct {
	need     *Requirement
	replicas int64
	placed   int64 // replicas with room on a node, at most replicas
	at       map[*node]int64
	sequence uint64 // the lowest sequence is placed first
}

func newReservation(need *Requirement) *reservation {
	return &reservation{need: need, at: map[*node]int64{}}
}

// place reserves room for up to k more replicas and returns for how many it found room.
func (m *ClusterState) place(h *reservation, k int64) (placed int64) {
	if h.need.spread != nil {
		return m.placeSpread(h, k)
	}
	for _, n := range m.nodes {
		if placed >= k {
			break
		}
		here := min(n.fitCount(h.need), k-placed)
		if here <= 0 {
			continue
		}
		m.reserve(h, n, here)
		placed += here
	}
	return placed
}

// reserve reserves room for k replicas on a node.
func (m *ClusterState) reserve(h *reservation, n *node, k int64) {
	m.take(n, h.need.requests, k)
	n.reservations[h] += k
	h.at[n] += k
	h.placed += k
}

// unreserve frees the room of k replicas on a node.
func (m *ClusterState) unreserve(h *reservation, n *node, k int64) {
	m.take(n, h.need.requests, -k)
	m.freed = true
	h.placed -= k
	if h.at[n] -= k; h.at[n] == 0 {
		delete(h.at, n)
	}
	if n.reservations[h] -= k; n.reservations[h] == 0 {
		delete(n.reservations, h)
	}
}

// displace frees the matching reservations of a node. settle places them again.
func (m *ClusterState) displace(n *node, which func(*reservation) bool) {
	for h, k := range n.reservations {
		if which(h) {
			m.unreserve(h, n, k)
			m.unplaced[h] = untried
		}
	}
}

// relieve displaces the newest reservations of a node until the node is no longer overcommitted.
func (m *ClusterState) relieve(n *node) {
	for _, name := range slices.Sorted(maps.Keys(n.free)) { // sorted, so that the result is deterministic
		if n.left(name) >= 0 || len(n.reservations) == 0 {
			continue
		}
		latest := slices.SortedFunc(maps.Keys(n.reservations),
			func(a, b *reservation) int { return cmp.Compare(b.sequence, a.sequence) })
		for _, h := range latest {
			at := slices.IndexFunc(h.need.requests, func(r request) bool { return r.name == name })
			if lack := -n.left(name); at >= 0 && lack > 0 {
				each := h.need.requests[at].amount
				m.unreserve(h, n, min(n.reservations[h], (lack-1)/each+1))
				m.unplaced[h] = untried
			}
		}
	}
}

// resize sets the number of replicas of a reservation.
func (m *ClusterState) resize(h *reservation, replicas int64) {
	h.replicas = replicas
	m.shifted = m.shifted || h.need.spread != nil
	if h.placed > replicas {
		// place fills nodes in order, so free the last nodes first.
		for _, n := range slices.SortedFunc(maps.Keys(h.at), func(a, b *node) int {
			return strings.Compare(b.Name, a.Name)
		}) {
			if h.placed > replicas {
				m.unreserve(h, n, min(h.at[n], h.placed-replicas))
			}
		}
	}
	if h.placed < replicas {
		m.unplaced[h] = untried
	} else {
		delete(m.unplaced, h)
	}
}

// queue reserves room for a pod without a node.
func (m *ClusterState) queue(p pod) {
	key := queueKey{p.workload.Namespace, p.waits.likeness}
	h := m.queued[key]
	if h == nil {
		m.sequence++
		h = newReservation(p.waits.need)
		h.sequence = m.sequence
		m.queued[key] = h
	}
	m.resize(h, h.replicas+1)
}

// unqueue removes the reservation of a pod that was deleted or got a node.
func (m *ClusterState) unqueue(p pod, got *node) {
	key := queueKey{p.workload.Namespace, p.waits.likeness}
	h := m.queued[key]
	if got != nil && h.at[got] > 0 {
		m.unreserve(h, got, 1) // the pod is on the reserved node
	} else if h.placed == h.replicas && got != nil {
		m.grown = true // the pod is elsewhere: the reserved room is free again
	}
	m.resize(h, h.replicas-1)
	if h.replicas == 0 {
		delete(m.queued, key)
	}
}

// assumption is an Assumption in pods, with its reservations.
type assumption struct {
	key      string
	workload Workload
	parts    []Part
	// before is the number of pods when the first unfinished placement was made. replicas is the number of pods wanted.
	before, replicas int64
	until            time.Time
	reservations     []*reservation // one per part, in the order of parts
}

// Assumption is a placement whose pods do not all exist yet: the workload had Before replicas in the cluster and will
// have Replicas. Each replica consists of all Parts.
type Assumption struct {
	// Key identifies the assumption. A new assumption replaces one with the same key.
	Key              string
	Workload         Workload
	Parts            []Part
	Before, Replicas int64
	// Until is the time at which the assumption expires.
	Until time.Time
}

// Assume reserves room for the missing pods of a placement and reports whether any are missing. The reservation shrinks
// as pods of the workload appear.
func (m *ClusterState) Assume(a Assumption) bool {
	each := podsIn(a.Parts)
	now := &assumption{key: a.Key, workload: a.Workload, parts: a.Parts, before: a.Before * each,
		replicas: a.Replicas * each, until: a.Until}
	known, expected := m.assumptions[a.Key], int64(0)
	if known != nil {
		if m.stale[known] {
			m.revise(known)
		}
		expected = known.expected()
		now.before = min(known.before, now.replicas)
		if known.replicas == now.replicas {
			now.until = known.until
		}
		m.forget(known)
	}
	for _, p := range a.Parts {
		m.sequence++
		h := newReservation(p.Need)
		h.sequence = m.sequence
		now.reservations = append(now.reservations, h)
	}
	m.assumptions[a.Key] = now
	name := podKey{a.Workload.Namespace, a.Workload.Name}
	m.namesakes[name] = append(m.namesakes[name], now)
	m.revise(now)
	m.grown = m.grown || now.expected() < expected
	return m.assumptions[a.Key] != nil
}

// expected returns the number of pods for which room is reserved.
func (a *assumption) expected() (pods int64) {
	for _, h := range a.reservations {
		pods += h.replicas
	}
	return pods
}

// ShrinkAssumption lowers the number of expected replicas before the placement is decided again.
func (m *ClusterState) ShrinkAssumption(key string, replicas int64) {
	a := m.assumptions[key]
	if a == nil {
		return
	}
	if pods := replicas * podsIn(a.parts); a.replicas > pods {
		a.replicas = pods
		m.revise(a)
	}
}

// Release drops an assumption and its reservations.
func (m *ClusterState) Release(key string) {
	if a := m.assumptions[key]; a != nil {
		m.forget(a)
		m.grown = true
	}
}

func (m *ClusterState) forget(a *assumption) {
	for _, h := range a.reservations {
		m.resize(h, 0)
	}
	delete(m.assumptions, a.key)
	delete(m.stale, a)
	name := podKey{a.workload.Namespace, a.workload.Name}
	if left := slices.DeleteFunc(m.namesakes[name], func(o *assumption) bool { return o == a }); len(left) > 0 {
		m.namesakes[name] = left
	} else {
		delete(m.namesakes, name)
	}
}

// revise resizes the reservations to the pods that are missing. It drops the assumption when none is missing.
func (m *ClusterState) revise(a *assumption) {
	missing := min(a.replicas-a.before, a.replicas-m.podsOf(a.workload))
	if missing <= 0 {
		m.forget(a)
		return
	}
	sets := a.replicas / podsIn(a.parts)
	for i, p := range a.parts {
		k := min(missing, p.Replicas*sets)
		m.resize(a.reservations[i], k)
		missing -= k
	}
}

// podsOf returns the number of pods of a workload, including pods of the workloads that it created.
func (m *ClusterState) podsOf(of Workload) (pods int64) {
	m.eachCreated(of, func(w *workload) { pods += w.pods })
	return pods
}

// Pods returns the number of pods of a workload, including pods of the workloads that it created.
func (m *ClusterState) Pods(of Workload) int64 { return m.podsOf(of) }

// eachCreated calls f for a workload and for the workloads that it created, if they have pods.
func (m *ClusterState) eachCreated(of Workload, f func(*workload)) {
	known := func(kind string) {
		if w := m.workloads[Workload{of.Namespace, kind, of.Name}]; w != nil {
			f(w)
		}
	}
	known(of.Kind)
	if kind.OwnsPods(of.Kind) {
		return
	}
	known(replicaSet)
	if kind.OwnsReplicaSets(of.Kind) {
		return
	}
	for w, known := range m.workloads {
		if w.Kind != of.Kind && w.createdBy(of) {
			f(known)
		}
	}
}

// createdBy reports whether creator made a workload with the name and namespace of w.
func (w Workload) createdBy(of Workload) bool {
	if w.Namespace != of.Namespace || w.Name == "" {
		return false
	}
	_, part := strings.CutPrefix(w.Name, of.Name+"-")
	return part || w.Name == of.Name && w.Kind != replicaSet // a ReplicaSet of the same name is counted already
}

// markStale marks the assumptions that count the pods of a workload. A new pod may request less than was reserved.
func (m *ClusterState) markStale(w *workload) {
	if len(m.assumptions) == 0 || w.Name == "" {
		return
	}
	for at := len(w.Name); at > 0; at = strings.LastIndexByte(w.Name[:at], '-') {
		for _, a := range m.namesakes[podKey{w.Namespace, w.Name[:at]}] {
			m.stale[a] = true
			m.grown = m.grown || !slices.ContainsFunc(a.parts, func(p Part) bool {
				return covers(w.requests, p.Need.requests)
			})
		}
	}
}

// covers reports whether a pod requests at least as much of each resource as was reserved.
func covers(pod, reserved []request) bool {
	return !slices.ContainsFunc(reserved, func(r request) bool {
		return !slices.ContainsFunc(pod, func(q request) bool { return q.name == r.name && q.amount >= r.amount })
	})
}
