package capacity

import (
	"cmp"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

// Rehearsal is a member in which the pods of a placement are there as soon as room is kept for them, and those that it
// has no more are gone: what a simulation goes by. Room for what is placed without fitting is looked for again when
// some appears.
type Rehearsal struct {
	member *Member
	// pods are by namespace and what they are of.
	pods map[string]map[Workload][]standing
	// counted are answers of before by what was asked, with the room of each node; touched are the nodes that pods came to
	// or left since, in that order. Both are of a time in which nothing was expected.
	counted map[string]*count
	touched []*node
}

// count is how many replicas nodes have room for, when that many of the nodes touched were looked at.
type count struct {
	room  map[*node]int64
	total int64
	seen  int
}

// mostCounts bounds the answers that are kept.
const mostCounts = 32

// standing is a pod and its node; empty for one that has none.
type standing struct{ node, name string }

// Rehearse begins with what a record says. The error is MemberOf's.
func Rehearse(r Record) (*Rehearsal, error) {
	m, err := MemberOf(r)
	if err != nil {
		return nil, err
	}
	re := &Rehearsal{member: m, pods: map[string]map[Workload][]standing{}, counted: map[string]*count{}}
	for key, p := range m.pods {
		switch {
		case p.workload.Name == "": // nobody's
		case p.node == nil:
			re.stand(p.workload.Workload, standing{"", key.name})
		default:
			re.stand(p.workload.Workload, standing{p.node.Name, key.name})
		}
	}
	return re, nil
}

// Known says whether there are nodes to go by.
func (r *Rehearsal) Known() bool { return r.member.Known() }

// Record is what is known now.
func (r *Rehearsal) Record() Record { return r.member.Record() }

// Room is Member's. Who asks for the same again, by likeness, has only those nodes looked at which changed; an empty
// one is like no other.
func (r *Rehearsal) Room(parts []Part, sets bool, likeness string) int32 {
	m := r.member
	if sets || likeness == "" || parts[0].Need.spread != nil {
		return m.Room(parts, sets)
	}
	m.settle()
	if len(m.assumptions)+len(m.queued) > 0 { // what is expected moves on by itself
		r.uncount()
		return m.Room(parts, sets)
	}
	need := parts[0].Need
	c := r.counted[likeness]
	if c == nil || len(r.touched)-c.seen > len(m.nodes) {
		if len(r.counted) >= mostCounts {
			r.uncount()
		}
		c = &count{room: make(map[*node]int64, len(m.nodes)), seen: len(r.touched)}
		for _, n := range m.nodes {
			c.room[n] = min(n.takes(need), math.MaxInt32)
			c.total += c.room[n]
		}
		r.counted[likeness] = c
	}
	for _, n := range r.touched[c.seen:] {
		now := min(n.takes(need), math.MaxInt32)
		c.total += now - c.room[n]
		c.room[n] = now
	}
	c.seen = len(r.touched)
	return int32(min(c.total, m.allowed(parts)))
}

// uncount forgets all answers.
func (r *Rehearsal) uncount() {
	clear(r.counted)
	r.touched = nil
}

// Likeness is equal for bindings that ask for the same of a node.
func Likeness(need *workv1alpha2.ReplicaRequirements, ports []string) string {
	text, err := json.Marshal([]any{need, ports})
	if err != nil {
		panic(err) // it holds nothing that JSON cannot
	}
	return string(text)
}

// Place has the workload have a.Replicas, none if that is zero, with their pods, as far as they fit.
func (r *Rehearsal) Place(a Assumption) {
	m, each := r.member, podsIn(a.Parts)
	if a.Replicas > 0 {
		m.Assume(a)
	} else {
		m.Release(a.Key)
	}
	m.settle()
	if surplus := m.there(a.Workload) - a.Replicas*each; surplus > 0 {
		r.dismiss(a, surplus)
	}
	// What does not fit, or what a quota refuses, stays expected.
	if made := m.assumptions[a.Key]; made != nil && m.permits(made.holds) &&
		!slices.ContainsFunc(made.holds, func(h *hold) bool { return h.placed < h.replicas }) {
		r.arrive(made)
	}
}

// Renew has all pods of a workload, and its placement, be gone, and then be placed as a says: it was made anew, and
// asks for something else.
func (r *Rehearsal) Renew(a Assumption) {
	gone := a
	gone.Replicas = 0
	r.Place(gone)
	a.Before = 0
	r.Place(a)
}

// Amend takes in nodes and quotas that are new, or are another now, by name.
func (r *Rehearsal) Amend(change Record) error {
	now, err := MemberOf(Record{Nodes: change.Nodes, Quotas: change.Quotas})
	if err != nil {
		return err
	}
	r.uncount()
	for _, n := range now.nodes {
		r.member.SetNode(n.Node)
	}
	for key, p := range now.pods { // what their nodes have requested
		r.member.SetPod(Pod{Name: key.name, node: p.node.Name, requests: p.requests})
	}
	for _, quotas := range now.quotas {
		for _, q := range quotas {
			r.member.SetQuota(q)
		}
	}
	return nil
}

// Sums are what the nodes that take pods have, and what is left of that beside pods and what is expected: also of what
// found no room, so that it is negative where more is placed than there is.
func (r *Rehearsal) Sums() (allocatable, free Amounts) {
	m := r.member
	m.settle()
	allocatable, free = Amounts{}, Amounts{}
	for _, n := range m.nodes {
		if !n.open() {
			continue
		}
		for name, amount := range n.Allocatable {
			allocatable[name] += amount
			free[name] += n.free[name]
		}
	}
	for h := range m.unplaced {
		for _, q := range h.need.requests {
			if _, has := allocatable[q.name]; has {
				free[q.name] -= q.amount * (h.replicas - h.placed)
			}
		}
	}
	return allocatable, free
}

// Homeless is how many replicas are expected that no node has room for.
func (r *Rehearsal) Homeless() (replicas int64) {
	r.member.settle()
	for h := range r.member.unplaced {
		replicas += h.replicas - h.placed
	}
	return replicas
}

// arrive has the pods of a placement be there, on the nodes that have room kept for them.
func (r *Rehearsal) arrive(a *assumption) {
	m := r.member
	type arrival struct {
		on   *node
		need *Requirement
		pods int64
	}
	var all []arrival
	for _, h := range a.holds {
		for _, n := range slices.SortedFunc(maps.Keys(h.at), func(a, b *node) int {
			return strings.Compare(a.Name, b.Name)
		}) {
			all = append(all, arrival{n, h.need, h.at[n]})
		}
	}
	m.forget(a)
	for _, at := range all {
		for range at.pods {
			name := m.unusedName()
			m.SetPod(Pod{Namespace: a.workload.Namespace, Name: name, node: at.on.Name, requests: at.need.requests,
				workload: a.workload})
			r.stand(a.workload, standing{at.on.Name, name})
		}
		m.use(at.need, at.pods)
		r.touched = append(r.touched, at.on)
	}
}

// dismiss has pods of a workload be gone: those without a node first, then from the last node on.
func (r *Rehearsal) dismiss(a Assumption, surplus int64) {
	m := r.member
	var of []Workload
	if kind := a.Workload.Kind; owns[kind] || makes[kind] {
		of = []Workload{a.Workload, {a.Workload.Namespace, replicaSet, a.Workload.Name}}
	} else {
		of = slices.Collect(maps.Keys(r.pods[a.Workload.Namespace]))
	}
	of = slices.DeleteFunc(of, func(w Workload) bool { return !w.Of(a.Workload) })
	slices.SortFunc(of, compareWorkloads)
	for _, w := range slices.Compact(of) {
		pods := r.pods[w.Namespace][w]
		slices.SortFunc(pods, compareStanding)
		for ; surplus > 0 && len(pods) > 0; surplus-- {
			last := pods[len(pods)-1]
			pods = pods[:len(pods)-1]
			gone := m.pods[podKey{w.Namespace, last.name}]
			m.RemovePod(w.Namespace, last.name)
			if gone.node != nil {
				r.touched = append(r.touched, gone.node)
			}
			m.use(&Requirement{requests: gone.requests, namespace: a.Parts[0].Need.namespace,
				priorityClass: a.Parts[0].Need.priorityClass}, -1)
		}
		if len(pods) > 0 {
			r.pods[w.Namespace][w] = pods
		} else {
			delete(r.pods[w.Namespace], w)
		}
	}
}

func (r *Rehearsal) stand(w Workload, s standing) {
	if r.pods[w.Namespace] == nil {
		r.pods[w.Namespace] = map[Workload][]standing{}
	}
	r.pods[w.Namespace][w] = append(r.pods[w.Namespace][w], s)
}

// permits says whether the quotas let the pods of holds be made.
func (m *Member) permits(holds []*hold) bool {
	for _, q := range m.quotas[holds[0].need.namespace] {
		asked := Amounts{}
		for _, h := range holds {
			if q.about(h.need) {
				asked.addUpTo(h.need.requests, h.replicas)
			}
		}
		for name, left := range q.left {
			if asked[name] > left {
				return false
			}
		}
	}
	return true
}

// use takes from the quotas what pods request, as the member's own admission does when they are made.
func (m *Member) use(need *Requirement, pods int64) {
	for _, q := range m.quotas[need.namespace] {
		if !q.about(need) {
			continue
		}
		for _, asked := range need.requests {
			if _, bounded := q.left[asked.name]; bounded {
				q.left[asked.name] -= asked.amount * pods
			}
		}
	}
}

// Room is for how many more replicas, or sets of all parts, there is room.
func (m *Member) Room(parts []Part, sets bool) int32 {
	if sets {
		return m.Sets(parts)
	}
	return m.Replicas(parts[0].Need)
}

// AssumptionOf is the placement of a binding's replicas, or sets of components, in a cluster, by the clusters it had
// and is to have.
func AssumptionOf(b workv1alpha2.Binding, parts []Part, cluster string, had,
	has []workv1alpha2.TargetCluster) Assumption {
	spec := b.BindingSpec()
	return Assumption{Key: b.GetNamespace() + "/" + b.GetName(), Workload: WorkloadOf(b), Parts: parts,
		Before: ReplicasIn(spec, had, cluster), Replicas: ReplicasIn(spec, has, cluster)}
}

// ReplicasIn is how many of a binding's replicas, or sets of its components, go to a cluster.
func ReplicasIn(spec *workv1alpha2.ResourceBindingSpec, targets []workv1alpha2.TargetCluster, cluster string) int64 {
	at := slices.IndexFunc(targets, func(t workv1alpha2.TargetCluster) bool { return t.Name == cluster })
	switch {
	case at < 0:
		return 0
	case len(spec.Components) > 0:
		return 1
	}
	return int64(targets[at].Replicas)
}

// compareStanding has those go last that are to go first.
func compareStanding(a, b standing) int {
	if (a.node == "") != (b.node == "") {
		return strings.Compare(b.node, a.node)
	}
	return cmp.Or(strings.Compare(a.node, b.node), cmp.Compare(len(a.name), len(b.name)), strings.Compare(a.name, b.name))
}
