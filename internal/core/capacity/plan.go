package capacity

import (
	"math"
	"slices"
)

// mostSpread bounds how many replicas are counted one after another, where several rules that spread them meet.
const mostSpread = 1000

// plan is where replicas of one kind may go that keep away from each other.
type plan struct {
	nodes []*node
	// left is how many more each node has resources for.
	left  []int64
	rules []rule
}

// rule keeps pods on nodes of the same domain apart or even.
type rule struct {
	apart     bool
	skew      int64
	tooFew    bool // domains, so that one more without pods counts
	domain    []int
	pods      []int64 // by domain
	each, out int64   // the most nodes of a domain, and nodes outside of all
}

// plan looks at the nodes for replicas of a workload, beside those of it that are there or expected.
func (m *Member) plan(need *Requirement) *plan {
	there := m.whereabouts(need.of)
	p := &plan{nodes: m.nodes, left: make([]int64, len(m.nodes))}
	keyed := func(n *node) bool {
		return !slices.ContainsFunc(need.spread.Even, func(e Even) bool { _, has := n.Labels[e.Key]; return !has })
	}
	for i, n := range m.nodes {
		if keyed(n) {
			p.left[i] = min(n.takes(need), math.MaxInt32)
		}
	}
	for _, key := range need.spread.Apart {
		p.rules = append(p.rules, p.rule(key, there, func(*node) bool { return true }))
		p.rules[len(p.rules)-1].apart = true
	}
	for _, e := range need.spread.Even {
		r := p.rule(e.Key, there, func(n *node) bool {
			return keyed(n) && (e.AnyNode || need.selects(n)) && (!e.Tolerated || need.bears(n))
		})
		r.skew, r.tooFew = int64(e.MaxSkew), len(r.pods) < int(e.MinDomains)
		p.rules = append(p.rules, r)
	}
	return p
}

// rule has the domains of a label, of the nodes that count.
func (p *plan) rule(key string, there map[*node]int64, counts func(*node) bool) rule {
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

// least is the fewest pods of a domain, as the rule counts.
func (r *rule) least() int64 {
	if r.tooFew || len(r.pods) == 0 {
		return 0
	}
	return slices.Min(r.pods)
}

// room is how many more replicas fit, one after another: exactly, unless several rules meet about domains of several
// nodes, or about evenness; then some order of which is tried, and 1000 at most.
func (p *plan) room() (total int64) {
	var meet []*rule
	for i := range p.rules {
		r := &p.rules[i]
		if !r.apart || r.each > 1 {
			meet = append(meet, r)
			continue
		}
		for i, d := range r.domain { // a domain is a node
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
		return p.within(meet[0])
	}
	for ; total < mostSpread; total++ {
		at := p.next()
		if at < 0 {
			break
		}
		p.take(at)
	}
	return total
}

// within is how many fit by one rule.
func (p *plan) within(r *rule) (total int64) {
	room := make([]int64, len(r.pods))
	for i, d := range r.domain {
		switch {
		case d >= 0:
			room[d] += p.left[i]
		case r.apart:
			total += p.left[i] // a node without the label is apart from all
		}
	}
	// The emptiest domain can be filled up to a number that no other choice makes higher; all others may have skew more.
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

// next is the node for one more, in the emptiest domains; -1 if there is none.
func (p *plan) next() int {
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

// take puts one onto a node.
func (p *plan) take(at int) {
	p.left[at]--
	for i := range p.rules {
		if d := p.rules[i].domain[at]; d >= 0 {
			p.rules[i].pods[d]++
		}
	}
}

// spread is place for replicas that keep away from each other.
func (m *Member) spread(h *hold, k int64) (placed int64) {
	m.spreading[h] = true
	p := m.plan(h.need)
	for ; placed < k; placed++ {
		at := p.next()
		if at < 0 {
			break
		}
		p.take(at)
		m.keep(h, p.nodes[at], 1)
	}
	return placed
}

// regroup has all that keeps away from each other look for nodes anew: pods that came may be where it is expected.
func (m *Member) regroup() {
	for h := range m.spreading {
		for n, k := range h.at {
			m.lift(h, n, k)
		}
		delete(m.spreading, h)
		if h.replicas > 0 {
			m.unplaced[h] = untried
		}
	}
}

// whereabouts is how many pods of a workload are on each node, or are expected there.
func (m *Member) whereabouts(of Workload) map[*node]int64 {
	if !m.tracking {
		m.tracking = true
		for _, p := range m.pods {
			p.workload.track(p.node, 1)
		}
	}
	at := map[*node]int64{}
	m.each(of, func(w *workload) {
		for n, k := range w.at {
			at[n] += k
		}
	})
	expected := func(h *hold) {
		if h.need.of.Name != "" && (h.need.of.Of(of) || of.Of(h.need.of)) {
			for n, k := range h.at {
				at[n] += k
			}
		}
	}
	for _, h := range m.queued {
		expected(h)
	}
	for _, a := range m.assumptions {
		for _, h := range a.holds {
			expected(h)
		}
	}
	return at
}

// track counts pods that come to a node, or go.
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

// Of says whether pods of w are those of maker: its own, or of what it made.
func (w Workload) Of(maker Workload) bool {
	if w.Namespace != maker.Namespace {
		return false
	}
	if w == maker || owns[maker.Kind] {
		return w == maker
	}
	return w == Workload{maker.Namespace, replicaSet, maker.Name} || !makes[maker.Kind] && w.Kind != maker.Kind &&
		w.made(maker)
}
