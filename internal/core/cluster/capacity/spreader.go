package capacity

import (
	"math"
	"slices"

	"github.com/argosy-io/argosy/internal/core/kind"
)

// maxSpread limits the replicas that are placed one after another when several spread rules apply. Small pods fit a
// million times in a large member.
const maxSpread = 1000

// spreader places replicas that have spread rules on nodes.
type spreader struct {
	nodes []*node
	// left is the number of replicas that still fit on each node by resources.
	left  []int64
	rules []rule
}

// rule is one anti-affinity term or topology spread constraint.
type rule struct {
	apart     bool
	skew      int64
	tooFew    bool // fewer domains than minDomains: the minimum counts as zero
	domain    []int
	pods      []int64 // by domain
	each, out int64   // the largest number of nodes in a domain; the nodes in no domain
}

// newSpreader returns the spreader of a workload from the current nodes, pods and reservations.
func (m *ClusterState) newSpreader(need *Requirement) *spreader {
	there := m.podsPerNode(need.of)
	p := &spreader{nodes: m.nodes, left: make([]int64, len(m.nodes))}
	keyed := func(n *node) bool {
		return !slices.ContainsFunc(need.spread.Even, func(e Even) bool { _, has := n.Labels[e.Key]; return !has })
	}
	for i, n := range m.nodes {
		if keyed(n) {
			p.left[i] = min(n.fitCount(need), math.MaxInt32)
		}
	}
	for _, key := range need.spread.Apart {
		p.rules = append(p.rules, p.newRule(key, there, func(*node) bool { return true }))
		p.rules[len(p.rules)-1].apart = true
	}
	for _, e := range need.spread.Even {
		r := p.newRule(e.Key, there, func(n *node) bool {
			return keyed(n) && (e.AnyNode || need.selects(n)) && (!e.Tolerated || need.toleratesTaints(n))
		})
		r.skew, r.tooFew = int64(e.MaxSkew), len(r.pods) < int(e.MinDomains)
		p.rules = append(p.rules, r)
	}
	return p
}

// newRule groups the nodes that count by the value of the label.
func (p *spreader) newRule(key string, there map[*node]int64, counts func(*node) bool) rule {
	r := rule{domain: make([]int, len(p.nodes))}
	known := map[string]int{}
	var size []int64
	for i, n := range p.nodes {
		value, has := n.Labels[key]
		if r.domain[i] = -1; !has || !n.seen || !counts(n) {
			r.out++
			continue
		}
		d, ok := known[value]
		if !ok {
			d = len(known)
			known[value] = d
			r.pods, size = append(r.pods, 0), append(size, 0)
		}
		r.domain[i] = d
		r.pods[d] += there[n]
		size[d]++
		r.each = max(r.each, size[d])
	}
	return r
}

// least returns the smallest number of pods in a domain, or 0 with fewer domains than minDomains.
func (r *rule) least() int64 {
	if r.tooFew || len(r.pods) == 0 {
		return 0
	}
	return slices.Min(r.pods)
}

// room returns how many more replicas fit. The result is exact if at most one rule has domains of several nodes.
// Otherwise it is the result of one order of placement, at most 1000.
func (p *spreader) room() (total int64) {
	var meet []*rule
	for i := range p.rules {
		r := &p.rules[i]
		if !r.apart || r.each > 1 {
			meet = append(meet, r)
			continue
		}
		for i, d := range r.domain { // each domain is one node
			if d >= 0 {
				p.left[i] = min(p.left[i], max(0, 1-r.pods[d]))
			}
		}
	}
	switch len(meet) {
	case 0:
		for _, k := range p.left {
			total += k
		}
		return total
	case 1:
		return p.roomByRule(meet[0])
	}
	for ; total < maxSpread; total++ {
		at := p.next()
		if at < 0 {
			break
		}
		p.take(at)
	}
	return total
}

// roomByRule returns how many more replicas fit under one rule.
func (p *spreader) roomByRule(r *rule) (total int64) {
	room := make([]int64, len(r.pods))
	for i, d := range r.domain {
		switch {
		case d >= 0:
			room[d] += p.left[i]
		case r.apart:
			total += p.left[i] // a node without the label is not restricted
		}
	}
	// level is the number of pods to which the emptiest domain can be filled. All other domains may have skew more.
	level := int64(0)
	if !r.tooFew && len(room) > 0 {
		level = math.MaxInt64
		for d, k := range room {
			level = min(level, r.pods[d]+k)
		}
	}
	for d, k := range room {
		if r.apart {
			total += min(k, max(0, 1-r.pods[d]))
		} else {
			total += min(k, max(0, level+r.skew-r.pods[d]))
		}
	}
	return total
}

// next returns the node for the next replica, in the domains with the fewest pods; -1 if there is none.
func (p *spreader) next() int {
	best, crowd := -1, int64(0)
	least := make([]int64, len(p.rules))
	for i := range p.rules {
		least[i] = p.rules[i].least()
	}
	for i, left := range p.left {
		if left <= 0 {
			continue
		}
		ok, around := true, int64(0)
		for j := range p.rules {
			r := &p.rules[j]
			d := r.domain[i]
			switch {
			case d < 0:
				ok = ok && r.apart
				continue
			case r.apart:
				ok = ok && r.pods[d] == 0
			default:
				ok = ok && r.pods[d]+1-least[j] <= r.skew
			}
			around += r.pods[d]
		}
		if ok && (best < 0 || around < crowd) {
			best, crowd = i, around
		}
	}
	return best
}

// take places one replica on a node.
func (p *spreader) take(at int) {
	p.left[at]--
	for i := range p.rules {
		if d := p.rules[i].domain[at]; d >= 0 {
			p.rules[i].pods[d]++
		}
	}
}

// placeSpread is place for replicas with spread rules.
func (m *ClusterState) placeSpread(h *reservation, k int64) (placed int64) {
	m.spreading[h] = true
	p := m.newSpreader(h.need)
	for ; placed < k; placed++ {
		at := p.next()
		if at < 0 {
			break
		}
		p.take(at)
		m.reserve(h, p.nodes[at], 1)
	}
	return placed
}

// regroup frees all reservations with spread rules, because pods may have appeared on nodes that they reserve.
func (m *ClusterState) regroup() {
	for h := range m.spreading {
		for n, k := range h.at {
			m.unreserve(h, n, k)
		}
		delete(m.spreading, h)
		if h.replicas > 0 {
			m.unplaced[h] = untried
		}
	}
}

// podsPerNode returns the pods of a workload per node, including expected pods.
func (m *ClusterState) podsPerNode(of Workload) map[*node]int64 {
	m.track()
	at := map[*node]int64{}
	m.eachCreated(of, func(w *workload) {
		for n, k := range w.at {
			at[n] += k
		}
	})
	expected := func(h *reservation) {
		if h.need.of.Name != "" && (h.need.of.BelongsTo(of) || of.BelongsTo(h.need.of)) {
			for n, k := range h.at {
				at[n] += k
			}
		}
	}
	for _, h := range m.queued {
		expected(h)
	}
	for _, a := range m.assumptions {
		for _, h := range a.reservations {
			expected(h)
		}
	}
	return at
}

// track has workloads count their pods per node from now on.
func (m *ClusterState) track() {
	if m.tracking {
		return
	}
	m.tracking = true
	for _, p := range m.pods {
		p.workload.track(p.node, 1)
	}
}

// track adds to the number of pods on a node.
func (w *workload) track(n *node, pods int64) {
	if n == nil {
		return
	}
	if w.at == nil {
		w.at = map[*node]int64{}
	}
	if w.at[n] += pods; w.at[n] == 0 {
		delete(w.at, n)
	}
}

// BelongsTo reports whether pods of w are pods of creator, directly or through a workload that creator made.
func (w Workload) BelongsTo(creator Workload) bool {
	if w.Namespace != creator.Namespace {
		return false
	}
	if w == creator || kind.OwnsPods(creator.Kind) {
		return w == creator
	}
	return w == Workload{creator.Namespace, replicaSet, creator.Name} || !kind.OwnsReplicaSets(creator.Kind) &&
		w.Kind != creator.Kind &&
		w.createdBy(creator)
}
