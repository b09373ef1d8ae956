package capacity

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Node has the properties of a node that affect scheduling.
type Node struct {
	Name          string
	Labels        map[string]string
	Taints        []corev1.Taint // only NoSchedule and NoExecute
	Unschedulable bool
	Ready         bool
	Allocatable   Amounts
}

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

// equal reports whether the nodes are equal for scheduling. Heartbeats make no difference.
func (n *Node) equal(o *Node) bool {
	return n.Unschedulable == o.Unschedulable && n.Ready == o.Ready && maps.Equal(n.Allocatable, o.Allocatable) &&
		maps.Equal(n.Labels, o.Labels) && slices.Equal(n.Taints, o.Taints)
}

// node is a node with its pods and reservations.
type node struct {
	Node
	// seen is false for a node that does not exist but is named by a pod.
	seen bool
	// requested is the sum of the requests of its pods. free remains after pods and reservations.
	requested, free Amounts
	// reservations counts the replicas with room reserved here.
	reservations map[*reservation]int64
}

// cordoned is the taint that Kubernetes sets on an unschedulable node.
var cordoned = corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}

// open reports whether the node accepts pods, apart from its taints.
func (n *node) open() bool { return n.seen && n.Ready && !n.Unschedulable }

// admits reports whether the replica may run on the node, regardless of free resources.
func (n *node) admits(r *Requirement) bool {
	return n.seen && n.Ready && r.toleratesTaints(n) && r.selects(n)
}

// toleratesTaints reports whether the replica tolerates all taints of the node.
func (r *Requirement) toleratesTaints(n *node) bool {
	return (!n.Unschedulable || Tolerates(r.tolerations, cordoned)) &&
		!slices.ContainsFunc(n.Taints, func(t corev1.Taint) bool { return !Tolerates(r.tolerations, t) })
}

// selects reports whether the replica's node selector and affinity match the node.
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

// fitCount returns how many more of these replicas fit on the node.
func (n *node) fitCount(r *Requirement) int64 {
	if !n.admits(r) {
		return 0
	}
	k, _ := n.fit(r)
	return max(0, k)
}

// left returns the free amount of a resource or host port.
func (n *node) left(name corev1.ResourceName) int64 {
	if strings.HasPrefix(string(name), portPrefix) {
		return n.free[name] + 1
	}
	return n.free[name]
}
