package capacity

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/kind"
	"github.com/argosy-io/argosy/internal/core/object/text"
)

// Rehearsal simulates placements as they happen: the hub reserves room for what a placement adds, and later the member
// follows. Surplus pods leave only then.
type Rehearsal struct {
	member *ClusterState
	// pods are by namespace and workload.
	pods map[string]map[Workload][]simulatedPod
	// expected are the placements that the member has not followed yet, by key.
	expected map[string]expectation
	// counted caches the answers of Room by likeness.
	counted map[string]*count
	// touched lists the nodes whose free room changed since the cache was cleared, in order.
	touched []*node
}

// expectation is a placement. recreate replaces all pods, because their requirements changed.
type expectation struct {
	Assumption
	recreate bool
}

// count is a cached answer. seen is the number of entries of touched that it includes.
type count struct {
	room  map[*node]int64
	total int64
	seen  int
}

// maxCounts limits the cached answers, maxTouched the changes that they follow: a simulation of thousands of workloads
// must not use all memory of the hub.
const maxCounts, maxTouched = 32, 1 << 16

// simulatedPod is a pod and its node. node is empty for a pod without one.
type simulatedPod struct{ node, name string }

// Rehearse starts a simulation from a record. It fails if ClusterStateOf does.
func Rehearse(r Record) (*Rehearsal, error) {
	m, err := ClusterStateOf(r)
	if err != nil {
		return nil, err
	}
	re := &Rehearsal{member: m, pods: map[string]map[Workload][]simulatedPod{}, counted: map[string]*count{},
		expected: map[string]expectation{}}
	m.touched = func(n *node) { re.touched = append(re.touched, n) }
	for key, p := range m.pods {
		switch {
		case p.workload.Name == "": // without a controller
		case p.node == nil:
			re.addPod(p.workload.Workload, simulatedPod{"", key.name})
		default:
			re.addPod(p.workload.Workload, simulatedPod{p.node.Name, key.name})
		}
	}
	return re, nil
}

// Clone returns a copy that placements can be tried on. Follow must not be called on it.
func (r *Rehearsal) Clone() *Rehearsal {
	re := &Rehearsal{member: r.member.Clone(), counted: map[string]*count{}, expected: map[string]expectation{}}
	re.member.touched = func(n *node) { re.touched = append(re.touched, n) }
	return re
}

// HasNodes reports whether the cluster has visible nodes.
func (r *Rehearsal) HasNodes() bool { return r.member.HasNodes() }

// Limit returns what keeps more of a binding from fitting.
func (r *Rehearsal) Limit(b workv1alpha2.Binding) Limit { return r.member.Limit(b) }

// Record returns the current state.
func (r *Rehearsal) Record() Record { return r.member.Record() }

// Room returns how many more replicas or sets fit. Calls with the same likeness recount only the nodes that changed. An
// empty likeness disables the cache.
func (r *Rehearsal) Room(parts []Part, sets bool, likeness string) int32 {
	m := r.member
	if sets || likeness == "" || parts[0].Need.spread != nil {
		return m.Room(parts, sets)
	}
	m.settle()
	if len(r.touched) > maxTouched {
		r.uncount()
	}
	need := parts[0].Need
	c := r.counted[likeness]
	if c == nil || len(r.touched)-c.seen > len(m.nodes) {
		if len(r.counted) >= maxCounts {
			r.uncount()
		}
		c = &count{room: make(map[*node]int64, len(m.nodes)), seen: len(r.touched)}
		for _, n := range m.nodes {
			c.room[n] = min(n.fitCount(need), math.MaxInt32)
			c.total += c.room[n]
		}
		r.counted[likeness] = c
	}
	for _, n := range r.touched[c.seen:] {
		now := min(n.fitCount(need), math.MaxInt32)
		c.total += now - c.room[n]
		c.room[n] = now
	}
	c.seen = len(r.touched)
	bound, _, _ := m.allowed(parts)
	return int32(min(c.total, bound))
}

// uncount clears the cache.
func (r *Rehearsal) uncount() {
	clear(r.counted)
	r.touched = nil
}

// Likeness is equal for bindings with equal requirements.
func Likeness(need *workv1alpha2.ReplicaRequirements, ports []string) string {
	return text.JSON([]any{need, ports})
}

// Expect changes the workload to a.Replicas. It reserves room for the pods that are missing, as the hub does. recreate
// is true if the requirements of all its pods changed.
func (r *Rehearsal) Expect(a Assumption, recreate bool) {
	switch {
	case a.Replicas == 0:
		r.member.Release(a.Key)
	case a.Before != a.Replicas:
		r.member.Assume(a)
	}
	r.expected[a.Key] = expectation{a, recreate || r.expected[a.Key].recreate}
}

// Follow has the member do what is expected: surplus pods leave, and then the missing ones come. Pods that fit on no
// node exist without one. What exceeds a quota stays expected.
func (r *Rehearsal) Follow() {
	keys := slices.Sorted(maps.Keys(r.expected))
	for _, key := range keys {
		e := r.expected[key]
		pods := e.Replicas * podsIn(e.Parts)
		if e.recreate {
			pods = 0
		}
		if surplus := r.member.podsOf(e.Workload) - pods; surplus > 0 {
			r.dismiss(e.Assumption, surplus)
		}
	}
	for _, key := range keys {
		if e := r.expected[key]; e.recreate && e.Replicas > 0 {
			e.Before = 0
			r.member.Release(key)
			r.member.Assume(e.Assumption)
		}
	}
	if len(keys) > 0 {
		r.member.settle()
	}
	for _, key := range keys {
		made := r.member.assumptions[key]
		if made != nil && !r.member.permits(made.reservations) {
			r.expected[key] = expectation{Assumption: r.expected[key].Assumption}
			continue
		}
		if delete(r.expected, key); made != nil {
			r.arrive(made)
		}
	}
}

// Amend adds or replaces nodes and quotas by name.
func (r *Rehearsal) Amend(change Record) error {
	now, err := ClusterStateOf(Record{Nodes: change.Nodes, Quotas: change.Quotas})
	if err != nil {
		return err
	}
	r.uncount()
	for _, n := range now.nodes {
		r.member.SetNode(n.Node)
	}
	for key, p := range now.pods { // the summed pods of the nodes
		r.member.SetPod(Pod{Name: key.name, node: p.node.Name, requests: p.requests})
	}
	for _, quotas := range now.quotas {
		for _, q := range quotas {
			r.member.SetQuota(q)
		}
	}
	return nil
}

// Sums returns the allocatable resources of schedulable nodes and what is left after pods and expected replicas.
// Replicas without room count too, so free may be negative.
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

// Unplaced returns the number of expected replicas that fit on no node.
func (r *Rehearsal) Unplaced() (replicas int64) {
	r.member.settle()
	for h := range r.member.unplaced {
		replicas += h.replicas - h.placed
	}
	return replicas
}

// arrive creates the pods of a placement on the nodes with reserved room, and those without room on none.
func (r *Rehearsal) arrive(a *assumption) {
	m := r.member
	type arrival struct {
		node string
		need *Requirement
		part int
		pods int64
	}
	var all []arrival
	for i, h := range a.reservations {
		for _, n := range slices.SortedFunc(maps.Keys(h.at), func(a, b *node) int {
			return strings.Compare(a.Name, b.Name)
		}) {
			all = append(all, arrival{n.Name, h.need, i, h.at[n]})
		}
		all = append(all, arrival{"", h.need, i, h.replicas - h.placed})
	}
	m.forget(a)
	for _, at := range all {
		for range at.pods {
			p := Pod{Namespace: a.workload.Namespace, Name: m.unusedName(), node: at.node, requests: at.need.requests,
				workload: a.workload}
			if at.node == "" {
				p.waits = &waits{need: at.need, likeness: fmt.Sprintf("#%s/%d", a.key, at.part)}
			}
			m.SetPod(p)
			r.addPod(a.workload, simulatedPod{at.node, p.Name})
		}
		m.useQuota(at.need, at.pods)
	}
}

// dismiss removes pods of a workload: pods without a node first, then those of the last nodes.
func (r *Rehearsal) dismiss(a Assumption, surplus int64) {
	m := r.member
	var of []Workload
	if name := a.Workload.Kind; kind.OwnsPods(name) || kind.OwnsReplicaSets(name) {
		of = []Workload{a.Workload, {a.Workload.Namespace, replicaSet, a.Workload.Name}}
	} else {
		of = slices.Collect(maps.Keys(r.pods[a.Workload.Namespace]))
	}
	of = slices.DeleteFunc(of, func(w Workload) bool { return !w.BelongsTo(a.Workload) })
	slices.SortFunc(of, compareWorkloads)
	for _, w := range slices.Compact(of) {
		pods := r.pods[w.Namespace][w]
		slices.SortFunc(pods, compareRemoval)
		for ; surplus > 0 && len(pods) > 0; surplus-- {
			last := pods[len(pods)-1]
			pods = pods[:len(pods)-1]
			gone := m.pods[podKey{w.Namespace, last.name}]
			m.RemovePod(w.Namespace, last.name)
			need := a.Parts[0].Need
			m.useQuota(&Requirement{requests: gone.requests, namespace: need.namespace, limits: need.limits,
				priorityClass: need.priorityClass, terminating: need.terminating}, -1)
		}
		if len(pods) > 0 {
			r.pods[w.Namespace][w] = pods
		} else {
			delete(r.pods[w.Namespace], w)
		}
	}
}

func (r *Rehearsal) addPod(w Workload, s simulatedPod) {
	if r.pods[w.Namespace] == nil {
		r.pods[w.Namespace] = map[Workload][]simulatedPod{}
	}
	r.pods[w.Namespace][w] = append(r.pods[w.Namespace][w], s)
}

// permits reports whether the quotas allow the pods of the reservations.
func (m *ClusterState) permits(reservations []*reservation) bool {
	for _, q := range m.quotas[reservations[0].need.namespace] {
		asked := Amounts{}
		for _, h := range reservations {
			if q.appliesTo(h.need) {
				asked.addUpTo(h.need.inQuotas(), h.replicas)
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

// useQuota subtracts pods from the quotas, as the member's admission does.
func (m *ClusterState) useQuota(need *Requirement, pods int64) {
	for _, q := range m.quotas[need.namespace] {
		if !q.appliesTo(need) {
			continue
		}
		for _, asked := range need.inQuotas() {
			if _, bounded := q.left[asked.name]; bounded {
				q.left[asked.name] -= asked.amount * pods
			}
		}
	}
}

// Room returns how many more replicas, or sets of all parts, fit.
func (m *ClusterState) Room(parts []Part, sets bool) int32 {
	if sets {
		return m.Sets(parts)
	}
	return m.Replicas(parts[0].Need)
}

// AssumptionOf returns the placement of a binding in a cluster, given its clusters before and after.
func AssumptionOf(b workv1alpha2.Binding, parts []Part, cluster string, had,
	has []workv1alpha2.TargetCluster) Assumption {
	spec := b.BindingSpec()
	return Assumption{Key: b.GetNamespace() + "/" + b.GetName(), Workload: WorkloadOf(b), Parts: parts,
		Before: ReplicasIn(spec, had, cluster), Replicas: ReplicasIn(spec, has, cluster)}
}

// ReplicasIn returns how many replicas of a binding, or sets of its components, are in a cluster.
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

// Gains returns the clusters in which a binding gets more replicas, or a set of its components, and how many more.
func Gains(spec *workv1alpha2.ResourceBindingSpec,
	to []workv1alpha2.TargetCluster) (gains []workv1alpha2.TargetCluster) {
	for _, t := range to {
		if n := ReplicasIn(spec, to, t.Name) - ReplicasIn(spec, spec.Clusters, t.Name); n > 0 {
			gains = append(gains, workv1alpha2.TargetCluster{Name: t.Name, Replicas: int32(n)})
		}
	}
	return gains
}

// compareRemoval sorts the pods to be removed first to the end.
func compareRemoval(a, b simulatedPod) int {
	if (a.node == "") != (b.node == "") {
		return strings.Compare(b.node, a.node)
	}
	return cmp.Or(strings.Compare(a.node, b.node), cmp.Compare(len(a.name), len(b.name)), strings.Compare(a.name, b.name))
}
