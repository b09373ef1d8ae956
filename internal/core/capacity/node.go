package capacity

import (
	"maps"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Node is what counts of a node.
type Node struct {
	Name          string
	Labels        map[string]string
	Taints        []corev1.Taint // those that keep pods away
	Unschedulable bool
	Ready         bool
	Allocatable   Amounts
}

// NodeOf keeps what counts of a node.
func NodeOf(n *corev1.Node) Node {
	ready := slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
	kept := Node{Name: n.Name, Labels: n.Labels, Unschedulable: n.Spec.Unschedulable, Ready: ready,
		Allocatable: AmountsOf(n.Status.Allocatable)}
	for _, t := range n.Spec.Taints {
		if t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute {
			kept.Taints = append(kept.Taints, corev1.Taint{Key: t.Key, Value: t.Value, Effect: t.Effect})
		}
	}
	return kept
}

// equal says whether both are the same to whoever asks for room; a heartbeat makes no difference.
func (n *Node) equal(o *Node) bool {
	return n.Unschedulable == o.Unschedulable && n.Ready == o.Ready && maps.Equal(n.Allocatable, o.Allocatable) &&
		maps.Equal(n.Labels, o.Labels) && slices.Equal(n.Taints, o.Taints)
}

// node is a node and what is on it.
type node struct {
	Node
	// seen is false for one that pods are said to be on but that is not there, or not yet.
	seen bool
	// requested is what the pods on it request; free is what is left after them and the holds.
	requested, free Amounts
	// holds are replicas that are expected here.
	holds map[*hold]int64
}

// cordoned is the taint that stands for an unschedulable node.
var cordoned = corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}

// open says whether the node takes pods, if their tolerations do not matter.
func (n *node) open() bool { return n.seen && n.Ready && !n.Unschedulable }

// admits says whether the node is for such a replica, whatever room it has.
func (n *node) admits(r *Requirement) bool {
	return n.seen && n.Ready && r.bears(n) && r.selects(n)
}

// bears says whether no taint of the node keeps the replica away.
func (r *Requirement) bears(n *node) bool {
	if n.Unschedulable && !Tolerates(r.tolerations, cordoned) {
		return false
	}
	for _, t := range n.Taints {
		if !Tolerates(r.tolerations, t) {
			return false
		}
	}
	return true
}

// selects says whether the replica's selector and affinity are for the node.
func (r *Requirement) selects(n *node) bool {
	if r.impossible {
		return false
	}
	for key, value := range r.selector {
		if has, ok := n.Labels[key]; !ok || has != value {
			return false
		}
	}
	if r.affinity == nil {
		return true
	}
	probe := corev1.Node{}
	probe.Name, probe.Labels = n.Name, n.Labels
	return r.affinity.Match(&probe)
}

// takes is how many more such replicas the node has room for.
func (n *node) takes(r *Requirement) int64 {
	if !n.admits(r) {
		return 0
	}
	k := int64(math.MaxInt64)
	for _, q := range r.requests {
		k = min(k, n.left(q.name)/q.amount)
	}
	return max(0, k)
}

// left is what is free of a resource, or of a port.
func (n *node) left(name corev1.ResourceName) int64 {
	if strings.HasPrefix(string(name), portPrefix) {
		return n.free[name] + 1
	}
	return n.free[name]
}
