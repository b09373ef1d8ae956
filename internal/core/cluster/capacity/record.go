package capacity

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/kind"
)

// Record is a serialized ClusterState, recorded or written by hand. A ClusterState built from it gives the same answers
// as the recorded one.
type Record struct {
	Nodes []NodeRecord `json:"nodes"`
	// Pods are pods with a node, grouped by workload. The requests of a node's other pods are in the node's Requested. A
	// record without this field has no pod data.
	Pods []PodsRecord `json:"pods,omitzero"`
	// Expected are the reservations, in the order of placement.
	Expected []ExpectedRecord `json:"expected,omitempty"`
	Quotas   []QuotaRecord    `json:"quotas,omitempty"`
}

// NodeRecord is one node, or Count equal nodes.
type NodeRecord struct {
	// Name of the node. With a count, the nodes are NAME-1 to NAME-20.
	Name  string `json:"name"`
	Count int    `json:"count,omitempty"`
	// Allocatable, for example cpu: 16, memory: 64Gi, pods: 110. The default for pods is the kubelet's, 110.
	Allocatable corev1.ResourceList `json:"allocatable,omitempty"`
	// Requested is the sum of the requests of pods that are not listed, per node. "pods" is their number.
	Requested corev1.ResourceList `json:"requested,omitempty"`
	// Ports are the host ports of these pods, such as TCP/80.
	Ports         []string          `json:"ports,omitempty"`
	Labels        map[string]string `json:"labels,omitempty"`
	Taints        []corev1.Taint    `json:"taints,omitempty"`
	Unschedulable bool              `json:"unschedulable,omitempty"`
	NotReady      bool              `json:"notReady,omitempty"`
	// Gone marks a node that does not exist but is named by pods.
	Gone bool `json:"gone,omitempty"`
}

// PodsRecord is a group of equal pods of one workload.
type PodsRecord struct {
	// Namespace, Kind and Name identify the workload.
	Namespace string `json:"namespace"`
	Kind      string `json:"kind,omitempty"`
	Name      string `json:"name,omitempty"`
	// Requests are per pod. Ports are host ports, such as TCP/80.
	Requests corev1.ResourceList `json:"requests,omitempty"`
	Ports    []string            `json:"ports,omitempty"`
	// Nodes is the number of pods per node.
	Nodes map[string]int64 `json:"nodes"`
}

// ExpectedRecord describes pods without a node, or the missing replicas of a placement.
type ExpectedRecord struct {
	// Waiting counts pods without a node per workload. It is empty for a placement.
	Waiting []WaitingRecord `json:"waiting,omitempty"`
	// Placement is the key of a placement of the workload Namespace, Kind and Name, which had Before pods and will have
	// Replicas.
	Placement string `json:"placement,omitempty"`
	Namespace string `json:"namespace"`
	Kind      string `json:"kind,omitempty"`
	Name      string `json:"name,omitempty"`
	Before    int64  `json:"before,omitempty"`
	Replicas  int64  `json:"replicas,omitempty"`
	// Parts are the requirements. Pods without a node have exactly one part.
	Parts []PartRecord `json:"parts"`
}

// WaitingRecord counts the pods of one workload that have no node.
type WaitingRecord struct {
	Kind string `json:"kind,omitempty"`
	Name string `json:"name,omitempty"`
	Pods int64  `json:"pods"`
}

// PartRecord has the requirements of a replica, the number of such replicas in a placement, how many of them are
// expected, and the nodes with reserved room.
type PartRecord struct {
	Requests          corev1.ResourceList  `json:"requests,omitempty"`
	NodeSelector      map[string]string    `json:"nodeSelector,omitempty"`
	NodeAffinity      *corev1.NodeSelector `json:"nodeAffinity,omitempty"`
	Tolerations       []corev1.Toleration  `json:"tolerations,omitempty"`
	Namespace         string               `json:"namespace"`
	PriorityClassName string               `json:"priorityClassName,omitempty"`
	// QuotaUse has the amounts that a replica uses of quotas besides its requests.
	QuotaUse *QuotaUse `json:"quotaUse,omitempty"`
	// Spread has the spread rules. OfWorkload is true if the replicas count as pods of the workload for these rules.
	Spread     *Spread          `json:"spread,omitempty"`
	OfWorkload bool             `json:"ofWorkload,omitempty"`
	Replicas   int64            `json:"replicas"`
	Expected   int64            `json:"expected"`
	Nodes      map[string]int64 `json:"nodes,omitempty"`
}

type QuotaRecord struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Left has the amounts that may still be requested, for example cpu: 10, pods: 20.
	Left   corev1.ResourceList                        `json:"left"`
	Scopes []corev1.ScopedResourceSelectorRequirement `json:"scopes,omitempty"`
}

func (m *ClusterState) Record() Record {
	m.settle()
	r := Record{Nodes: []NodeRecord{}, Pods: []PodsRecord{}}
	for _, n := range m.nodes {
		if !n.seen {
			r.Nodes = append(r.Nodes, NodeRecord{Name: n.Name, Gone: true})
			continue
		}
		kept := NodeRecord{Name: n.Name, Allocatable: n.Allocatable.List(), Labels: n.Labels, Taints: n.Taints,
			Unschedulable: n.Unschedulable, NotReady: !n.Ready}
		if _, has := kept.Allocatable[corev1.ResourcePods]; !has {
			kept.Allocatable[corev1.ResourcePods] = zero
		}
		r.Nodes = append(r.Nodes, kept)
	}

	// Pods with equal requirements usually share their requests, but not always.
	type group struct {
		Workload
		requests string
	}
	groups := map[group]*PodsRecord{}
	waiting := map[*reservation]map[WaitingRecord]int64{}
	for _, p := range m.pods {
		w := p.workload.Workload
		if p.node == nil {
			h := m.queued[queueKey{w.Namespace, p.waits.likeness}]
			if waiting[h] == nil {
				waiting[h] = map[WaitingRecord]int64{}
			}
			waiting[h][WaitingRecord{Kind: w.Kind, Name: w.Name}]++
			continue
		}
		key := group{w, fmt.Sprint(p.requests)}
		if groups[key] == nil {
			groups[key] = &PodsRecord{Namespace: w.Namespace, Kind: w.Kind, Name: w.Name, Requests: listOf(p.requests),
				Ports: portsOf(p.requests), Nodes: map[string]int64{}}
		}
		groups[key].Nodes[p.node.Name]++
	}
	keys := slices.SortedFunc(maps.Keys(groups), func(a, b group) int {
		return cmp.Or(compareWorkloads(a.Workload, b.Workload), strings.Compare(a.requests, b.requests))
	})
	for _, key := range keys {
		r.Pods = append(r.Pods, *groups[key])
	}

	type expected struct {
		ExpectedRecord
		sequence uint64
	}
	var all []expected
	for key, h := range m.queued {
		e := ExpectedRecord{Namespace: key.namespace, Parts: []PartRecord{partOf(h, h.replicas)}}
		for w, pods := range waiting[h] {
			w.Pods = pods
			e.Waiting = append(e.Waiting, w)
		}
		slices.SortFunc(e.Waiting, func(a, b WaitingRecord) int {
			return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Name, b.Name))
		})
		all = append(all, expected{e, h.sequence})
	}
	for _, a := range m.assumptions {
		e := ExpectedRecord{Placement: a.key, Namespace: a.workload.Namespace, Kind: a.workload.Kind, Name: a.workload.Name,
			Before: a.before, Replicas: a.replicas}
		for i, h := range a.reservations {
			e.Parts = append(e.Parts, partOf(h, a.parts[i].Replicas))
		}
		all = append(all, expected{e, a.reservations[0].sequence})
	}
	slices.SortFunc(all, func(a, b expected) int { return cmp.Compare(a.sequence, b.sequence) })
	for _, e := range all {
		r.Expected = append(r.Expected, e.ExpectedRecord)
	}

	for _, namespace := range slices.Sorted(maps.Keys(m.quotas)) {
		for _, q := range m.quotas[namespace] {
			kept := QuotaRecord{Namespace: q.Namespace, Name: q.Name, Left: q.left.List(), Scopes: q.selector}
			for name, left := range q.left {
				if left <= 0 {
					kept.Left[name] = zero
				}
			}
			r.Quotas = append(r.Quotas, kept)
		}
	}
	slices.SortFunc(r.Quotas, func(a, b QuotaRecord) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return r
}

// Summed returns the record with the pods of workloads for which keep is false added to the Requested of their nodes.
func (r Record) Summed(keep func(Workload) bool) Record {
	sums := map[string]Amounts{}
	kept := []PodsRecord{}
	for _, p := range r.Pods {
		if keep(Workload{p.Namespace, p.Kind, p.Name}) {
			kept = append(kept, p)
			continue
		}
		requests := withPorts(requestsOf(p.Requests), p.Ports)
		for node, pods := range p.Nodes {
			if sums[node] == nil {
				sums[node] = Amounts{}
			}
			sums[node].add(requests, pods)
		}
	}
	r.Pods, r.Nodes = kept, slices.Clone(r.Nodes)
	for i := range r.Nodes {
		if sum := sums[r.Nodes[i].Name]; sum != nil {
			sum.add(r.Nodes[i].requested(), 1)
			r.Nodes[i].Requested, r.Nodes[i].Ports = sum.List(), sum.ports()
		}
	}
	return r
}

// PodsOf returns a filter for the workloads that belong to one of the creators.
func PodsOf(creators []Workload) func(Workload) bool {
	known, others := map[Workload]bool{}, map[string][]Workload{}
	for _, of := range creators {
		known[of] = true
		if kind.OwnsPods(of.Kind) {
			continue
		}
		known[Workload{of.Namespace, replicaSet, of.Name}] = true
		if !kind.OwnsReplicaSets(of.Kind) {
			others[of.Namespace] = append(others[of.Namespace], of)
		}
	}
	return func(w Workload) bool {
		return known[w] || slices.ContainsFunc(others[w.Namespace], func(of Workload) bool { return w.BelongsTo(of) })
	}
}

// ClusterStateOf builds the state of a record. The error joins all invalid entries.
func ClusterStateOf(r Record) (*ClusterState, error) {
	m := NewClusterState()
	var errs []error
	for i, n := range r.Nodes {
		nodes, err := n.expand()
		if err != nil {
			errs = append(errs, fmt.Errorf("nodes[%d]: %w", i, err))
			continue
		}
		for _, node := range nodes {
			if n.Gone && m.byName[node.Name] == nil {
				m.node(node.Name)
				continue
			}
			if m.byName[node.Name] != nil {
				errs = append(errs, fmt.Errorf("nodes[%d]: there is already a node %q: use another name", i, node.Name))
				continue
			}
			m.SetNode(node)
			if taken := n.requested(); len(taken) > 0 {
				m.SetPod(Pod{Name: node.Name, node: node.Name, requests: taken})
			}
		}
	}
	for i, p := range r.Pods {
		err := checkAmounts(p.Requests)
		for node, pods := range p.Nodes {
			if m.byName[node] == nil || pods < 0 {
				err = errors.Join(err, fmt.Errorf("%d pods are on node %q, which does not exist in nodes", pods, node))
			}
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("pods[%d] (of %s %s/%s): %w", i, p.Kind, p.Namespace, p.Name, err))
			continue
		}
		requests := withPorts(requestsOf(p.Requests), p.Ports)
		for _, node := range slices.Sorted(maps.Keys(p.Nodes)) {
			for range p.Nodes[node] {
				m.SetPod(Pod{Namespace: p.Namespace, Name: m.unusedName(), node: node, requests: requests,
					workload: Workload{p.Namespace, p.Kind, p.Name}})
			}
		}
	}
	for i, q := range r.Quotas {
		if err := errors.Join(checkAmounts(q.Left), checkSet("namespace", q.Namespace)); err != nil {
			errs = append(errs, fmt.Errorf("quotas[%d]: %w", i, err))
			continue
		}
		m.SetQuota(Quota{Namespace: q.Namespace, Name: q.Name, left: AmountsOf(q.Left), selector: q.Scopes})
	}
	for i, e := range r.Expected {
		if err := m.expect(e); err != nil {
			errs = append(errs, fmt.Errorf("expected[%d]: %w", i, err))
		}
	}
	m.freed, m.shifted = false, false // Record settled the state
	return m, errors.Join(errs...)
}

// expect adds reservations with their recorded room.
func (m *ClusterState) expect(e ExpectedRecord) error {
	for _, p := range e.Parts {
		err := checkAmounts(p.Requests)
		if p.QuotaUse != nil {
			err = errors.Join(err, checkAmounts(p.QuotaUse.Limits))
		}
		if err != nil {
			return err
		}
	}
	var reservations []*reservation
	switch {
	case e.Placement != "":
		if len(e.Parts) == 0 {
			return errors.New("the placement has no parts")
		}
		a := &assumption{key: e.Placement, workload: Workload{e.Namespace, e.Kind, e.Name}, before: e.Before,
			replicas: e.Replicas}
		for _, p := range e.Parts {
			part := Part{p.requirement(a.workload), p.Replicas}
			m.sequence++
			h := newReservation(part.Need)
			h.sequence, h.replicas = m.sequence, p.Expected
			a.parts, a.reservations, reservations = append(a.parts, part), append(a.reservations, h), append(reservations, h)
		}
		m.assumptions[a.key] = a
		name := podKey{a.workload.Namespace, a.workload.Name}
		m.namesakes[name] = append(m.namesakes[name], a)
	case len(e.Parts) != 1:
		return fmt.Errorf("pods without a node must have one part, but there are %d", len(e.Parts))
	default:
		if len(e.Waiting) == 0 {
			return errors.New("set waiting, or placement")
		}
		// All that matters is that these pods share a key that no other pod has.
		asks := &waits{need: e.Parts[0].requirement(Workload{e.Namespace, e.Waiting[0].Kind, e.Waiting[0].Name}),
			likeness: m.unusedName()}
		for _, w := range e.Waiting {
			for range w.Pods {
				m.SetPod(Pod{Namespace: e.Namespace, Name: m.unusedName(), requests: asks.need.requests,
					workload: Workload{e.Namespace, w.Kind, w.Name}, waits: asks})
			}
		}
		reservations = append(reservations, m.queued[queueKey{e.Namespace, asks.likeness}])
	}
	for i, h := range reservations {
		for _, name := range slices.Sorted(maps.Keys(e.Parts[i].Nodes)) {
			n := m.byName[name]
			if n == nil {
				return fmt.Errorf("capacity is reserved on node %q, which does not exist in nodes", name)
			}
			m.reserve(h, n, e.Parts[i].Nodes[name])
		}
		if h.need.spread != nil {
			m.spreading[h] = true
		}
		if m.unplaced[h] = tried; h.placed == h.replicas {
			delete(m.unplaced, h)
		}
	}
	return nil
}

// unusedName returns a unique name for a pod of a record. It is not a valid Kubernetes name.
func (m *ClusterState) unusedName() string {
	m.sequence++
	return fmt.Sprintf("#%d", m.sequence)
}

// expand returns the nodes that a record describes.
func (n NodeRecord) expand() ([]Node, error) {
	err := errors.Join(checkSet("name", n.Name), checkAmounts(n.Allocatable), checkAmounts(n.Requested))
	for _, t := range n.Taints {
		switch t.Effect {
		case corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute, corev1.TaintEffectPreferNoSchedule:
		default:
			err = errors.Join(err, fmt.Errorf("taint %q has the effect %q: use NoSchedule, NoExecute or PreferNoSchedule", t.Key,
				t.Effect))
		}
	}
	if n.Count < 0 {
		err = errors.Join(err, fmt.Errorf("the count is %d", n.Count))
	}
	if err != nil {
		return nil, err
	}
	one := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: n.Labels},
		Spec: corev1.NodeSpec{Taints: n.Taints, Unschedulable: n.Unschedulable}}
	one.Status.Allocatable = n.Allocatable
	if _, known := n.Allocatable[corev1.ResourcePods]; !known {
		one.Status.Allocatable = maps.Clone(n.Allocatable)
		if one.Status.Allocatable == nil {
			one.Status.Allocatable = corev1.ResourceList{}
		}
		one.Status.Allocatable[corev1.ResourcePods] = usualPods
	}
	if !n.NotReady {
		one.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	}
	if n.Count == 0 {
		return []Node{NodeOf(&one)}, nil
	}
	width := len(fmt.Sprint(n.Count)) // zero-padded, so that the names sort in order
	nodes := make([]Node, n.Count)
	for i := range nodes {
		one.Name = fmt.Sprintf("%s-%0*d", n.Name, width, i+1)
		nodes[i] = NodeOf(&one)
	}
	return nodes, nil
}

func (p PartRecord) requirement(of Workload) *Requirement {
	claim := &workv1alpha2.NodeClaim{HardNodeAffinity: p.NodeAffinity, NodeSelector: p.NodeSelector,
		Tolerations: p.Tolerations}
	need := newRequirement(p.Requests, claim, p.Namespace, p.PriorityClassName)
	if p.QuotaUse != nil {
		need.setQuotaUse(*p.QuotaUse)
	}
	if p.OfWorkload {
		need.of = of
	}
	if p.Spread != nil {
		need.requests = withPorts(need.requests, p.Spread.Ports)
		need.setSpread(*p.Spread, of)
	}
	return need
}

func partOf(h *reservation, replicas int64) PartRecord {
	need := h.need
	p := PartRecord{Requests: listOf(need.requests), NodeSelector: need.selector, NodeAffinity: need.hard,
		Tolerations: need.tolerations,
		Namespace:   need.namespace, PriorityClassName: need.priorityClass, OfWorkload: need.of.Name != "",
		Replicas: replicas,
		Expected: h.replicas}
	if u := need.quotaUse(); !u.empty() {
		p.QuotaUse = &u
	}
	spread := Spread{Ports: portsOf(need.requests)}
	if need.spread != nil {
		spread.Apart, spread.Even = need.spread.Apart, need.spread.Even
	}
	if !spread.Empty() {
		p.Spread = &spread
	}
	if len(h.at) > 0 {
		p.Nodes = make(map[string]int64, len(h.at))
	}
	for n, k := range h.at {
		p.Nodes[n.Name] = k
	}
	return p
}

// listOf is the inverse of requestsOf.
func listOf(requests []request) corev1.ResourceList {
	sum := Amounts{}
	sum.add(requests, 1)
	delete(sum, corev1.ResourcePods)
	return sum.List()
}

// portsOf returns the host ports among the requests.
func portsOf(requests []request) []string {
	sum := Amounts{}
	sum.add(requests, 1)
	return sum.ports()
}

// ports returns the host ports in use, sorted.
func (a Amounts) ports() (ports []string) {
	for name, n := range a {
		if port, is := strings.CutPrefix(string(name), portPrefix); is && n > 0 {
			ports = append(ports, port)
		}
	}
	slices.Sort(ports)
	return ports
}

// requested returns the summed requests of several pods. The pod slots come from the list.
func (n *NodeRecord) requested() []request {
	requests := slices.DeleteFunc(requestsOf(n.Requested), func(r request) bool { return r.name == corev1.ResourcePods })
	if slots := n.Requested.Pods().Value(); slots > 0 {
		requests = append(requests, request{corev1.ResourcePods, slots})
	}
	return withPorts(requests, n.Ports)
}

// usualPods is the kubelet's default for maxPods.
var usualPods = *resource.NewQuantity(110, resource.DecimalSI)

// zero is written explicitly where a missing value has another meaning.
var zero = *resource.NewQuantity(0, resource.DecimalSI)

func checkAmounts(list corev1.ResourceList) error {
	for _, name := range slices.Sorted(maps.Keys(list)) {
		if q := list[name]; q.Sign() < 0 {
			return fmt.Errorf("%s is %s: must be 0 or more", name, q.String())
		}
	}
	return nil
}

func checkSet(field, value string) error {
	if value == "" {
		return fmt.Errorf("set the %s", field)
	}
	return nil
}

func compareWorkloads(a, b Workload) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Kind, b.Kind),
		strings.Compare(a.Name, b.Name))
}
