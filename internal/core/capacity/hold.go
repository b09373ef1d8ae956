package capacity

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
)

// hold is a number of equal replicas that are expected, and the nodes that have room kept for them.
type hold struct {
	need     *Requirement
	replicas int64
	placed   int64 // on nodes; the others found no room
	at       map[*node]int64
	sequence uint64 // earlier holds are placed first
}

func newHold(need *Requirement) *hold { return &hold{need: need, at: map[*node]int64{}} }

// place keeps room for up to k more replicas of a hold, and returns for how many there was.
func (m *Member) place(h *hold, k int64) (placed int64) {
	if h.need.spread != nil {
		return m.spread(h, k)
	}
	for _, n := range m.nodes {
		if placed >= k {
			break
		}
		here := min(n.takes(h.need), k-placed)
		if here <= 0 {
			continue
		}
		m.keep(h, n, here)
		placed += here
	}
	return placed
}

// keep keeps room for k replicas of a hold on a node.
func (m *Member) keep(h *hold, n *node, k int64) {
	n.free.add(h.need.requests, -k)
	n.holds[h] += k
	h.at[n] += k
	h.placed += k
}

// lift gives back the room of k replicas of a hold on a node.
func (m *Member) lift(h *hold, n *node, k int64) {
	n.free.add(h.need.requests, k)
	m.freed = true
	h.placed -= k
	if h.at[n] -= k; h.at[n] == 0 {
		delete(h.at, n)
	}
	if n.holds[h] -= k; n.holds[h] == 0 {
		delete(n.holds, h)
	}
}

// evict has holds look for another node.
func (m *Member) evict(n *node, which func(*hold) bool) {
	for h, k := range n.holds {
		if which(h) {
			m.lift(h, n, k)
			m.unplaced[h] = untried
		}
	}
}

// relieve has the last holds of a node look for another one, until no more is held there than it has.
func (m *Member) relieve(n *node) {
	for _, name := range slices.Sorted(maps.Keys(n.free)) { // the same answer each time
		if n.left(name) >= 0 || len(n.holds) == 0 {
			continue
		}
		latest := slices.SortedFunc(maps.Keys(n.holds), func(a, b *hold) int { return cmp.Compare(b.sequence, a.sequence) })
		for _, h := range latest {
			at := slices.IndexFunc(h.need.requests, func(r request) bool { return r.name == name })
			if lack := -n.left(name); at >= 0 && lack > 0 {
				each := h.need.requests[at].amount
				m.lift(h, n, min(n.holds[h], (lack-1)/each+1))
				m.unplaced[h] = untried
			}
		}
	}
}

// resize makes a hold one of that many replicas.
func (m *Member) resize(h *hold, replicas int64) {
	h.replicas = replicas
	m.shifted = m.shifted || h.need.spread != nil
	if h.placed > replicas {
		// The last nodes first, as place fills the first first.
		for _, n := range slices.SortedFunc(maps.Keys(h.at), func(a, b *node) int {
			return strings.Compare(b.Name, a.Name)
		}) {
			if h.placed > replicas {
				m.lift(h, n, min(h.at[n], h.placed-replicas))
			}
		}
	}
	if h.placed < replicas {
		m.unplaced[h] = untried
	} else {
		delete(m.unplaced, h)
	}
}

// queue expects a pod that has no node.
func (m *Member) queue(p pod) {
	key := queueKey{p.workload.Namespace, p.waits.likeness}
	h := m.queued[key]
	if h == nil {
		m.sequence++
		h = newHold(p.waits.need)
		h.sequence = m.sequence
		m.queued[key] = h
	}
	m.resize(h, h.replicas+1)
}

// unqueue expects a pod no more, because it is gone or got a node.
func (m *Member) unqueue(p pod, got *node) {
	key := queueKey{p.workload.Namespace, p.waits.likeness}
	h := m.queued[key]
	if got != nil && h.at[got] > 0 {
		m.lift(h, got, 1) // it is where it was expected
	} else if h.placed == h.replicas && got != nil {
		m.grown = true // it is elsewhere, and there is room where it was expected
	}
	m.resize(h, h.replicas-1)
	if h.replicas == 0 {
		delete(m.queued, key)
	}
}

// assumption is a placement whose pods are not all there yet.
type assumption struct {
	key      string
	workload Workload
	parts    []Part
	// before is how many replicas there were when the first of the placements was made that are waited for, replicas how
	// many there are to be.
	before, replicas int64
	until            time.Time
	holds            []*hold // one per part
}

// Assumption is a placement: of a workload that had Before replicas in the member and is to have Replicas, each of all
// Parts.
type Assumption struct {
	// Key names it; the same key replaces it.
	Key              string
	Workload         Workload
	Parts            []Part
	Before, Replicas int64
	// Until is when it is given up at the latest.
	Until time.Time
}

// Assume keeps room for the replicas of a placement whose pods are not there yet, and reports whether there are any. As
// pods of the workload appear, the room is theirs.
func (m *Member) Assume(a Assumption) bool {
	each := podsIn(a.Parts)
	now := &assumption{key: a.Key, workload: a.Workload, parts: a.Parts, before: a.Before * each,
		replicas: a.Replicas * each, until: a.Until}
	known := m.assumptions[a.Key]
	if known != nil {
		now.before = min(known.before, now.replicas)
		if known.replicas == now.replicas {
			now.until = known.until
		}
		m.forget(known)
	}
	for _, p := range a.Parts {
		m.sequence++
		h := newHold(p.Need)
		h.sequence = m.sequence
		now.holds = append(now.holds, h)
	}
	m.assumptions[a.Key] = now
	name := podKey{a.Workload.Namespace, a.Workload.Name}
	m.namesakes[name] = append(m.namesakes[name], now)
	m.revise(now)
	return m.assumptions[a.Key] != nil
}

// Recede gives up what a placement was to have beyond that many replicas, each of all its parts: it is about to be made
// again.
func (m *Member) Recede(key string, replicas int64) {
	a := m.assumptions[key]
	if a == nil {
		return
	}
	if pods := replicas * podsIn(a.parts); a.replicas > pods {
		a.replicas = pods
		m.revise(a)
	}
}

// Release gives a placement up.
func (m *Member) Release(key string) {
	if a := m.assumptions[key]; a != nil {
		m.forget(a)
		m.grown = true
	}
}

func (m *Member) forget(a *assumption) {
	for _, h := range a.holds {
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

// revise holds room for the replicas that are not there yet; when all are, the placement is a fact and needs none.
func (m *Member) revise(a *assumption) {
	missing := min(a.replicas-a.before, a.replicas-m.there(a.workload))
	if missing <= 0 {
		m.forget(a)
		return
	}
	sets := a.replicas / podsIn(a.parts)
	for i, p := range a.parts {
		k := min(missing, p.Replicas*sets)
		m.resize(a.holds[i], k)
		missing -= k
	}
}

// there is how many pods of a workload there are, of those that it owns and of those of what it made.
func (m *Member) there(of Workload) (pods int64) {
	m.each(of, func(w *workload) { pods += w.pods })
	return pods
}

// Pods is how many pods of a workload there are, of those that it owns and of those of what it made.
func (m *Member) Pods(of Workload) int64 { return m.there(of) }

// each calls f for a workload and for what it made, as far as there are pods of them.
func (m *Member) each(of Workload, f func(*workload)) {
	known := func(kind string) {
		if w := m.workloads[Workload{of.Namespace, kind, of.Name}]; w != nil {
			f(w)
		}
	}
	known(of.Kind)
	if owns[of.Kind] {
		return
	}
	known(replicaSet)
	if makes[of.Kind] {
		return
	}
	for w, known := range m.workloads {
		if w.Kind != of.Kind && w.made(of) {
			f(known)
		}
	}
}

// owns are kinds whose pods are their own; makes are those whose pods are those of ReplicaSets.
var (
	owns = map[string]bool{
		replicaSet: true, "StatefulSet": true, "DaemonSet": true, "Job": true, "ReplicationController": true,
		"CloneSet": true, "BroadcastJob": true,
	}
	makes = map[string]bool{"Deployment": true, "Rollout": true}
)

// made says whether a workload is named as one of what another made.
func (w Workload) made(of Workload) bool {
	if w.Namespace != of.Namespace || w.Name == "" {
		return false
	}
	_, part := strings.CutPrefix(w.Name, of.Name+"-")
	return part || w.Name == of.Name && w.Kind != replicaSet // counted before
}

// moved notes that pods of a workload came or went, for those that wait for it.
func (m *Member) moved(w *workload) {
	if len(m.assumptions) == 0 || w.Name == "" {
		return
	}
	for at := len(w.Name); at > 0; at = strings.LastIndexByte(w.Name[:at], '-') {
		for _, a := range m.namesakes[podKey{w.Namespace, w.Name[:at]}] {
			m.stale[a] = true
		}
	}
}
