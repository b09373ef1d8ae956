package membership

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
)

// Node is what counts of a node.
type Node struct {
	Name        string
	Ready       bool
	Schedulable bool
	Allocatable corev1.ResourceList
}

// Load sums what pods ask for, one slot for a pod included, per node; the empty node stands for the pods that have
// none. It never holds a zero.
type Load map[string]corev1.ResourceList

// add never stores a zero, nor a quantity that shares memory with the addend.
func add(sum, more corev1.ResourceList) {
	for name, q := range more {
		if q.IsZero() {
			continue
		}
		total := sum[name].DeepCopy()
		total.Add(q)
		sum[name] = total
	}
}

// Nodes counts nodes.
func Nodes(nodes []Node) *clusterv1alpha1.NodeSummary {
	s := &clusterv1alpha1.NodeSummary{TotalNum: int32(len(nodes))}
	for _, n := range nodes {
		if n.Ready {
			s.ReadyNum++
		}
	}
	return s
}

// Resources sums what the nodes that take pods have, what the pods on them have taken, and what pods without a node
// wait for. What sits on other nodes is in neither sum, so that allocatable less allocated is what is free.
func Resources(nodes []Node, load Load, models []clusterv1alpha1.ResourceModel) *clusterv1alpha1.ResourceSummary {
	s := &clusterv1alpha1.ResourceSummary{
		Allocatable: corev1.ResourceList{},
		Allocated:   corev1.ResourceList{},
		Allocating:  corev1.ResourceList{},
	}
	grades := slices.SortedFunc(slices.Values(models), func(a, b clusterv1alpha1.ResourceModel) int {
		return cmp.Compare(a.Grade, b.Grade)
	})
	for _, g := range grades {
		s.AllocatableModelings = append(s.AllocatableModelings, clusterv1alpha1.AllocatableModeling{Grade: g.Grade})
	}
	add(s.Allocating, load[""])
	for _, n := range nodes {
		if !n.Ready || !n.Schedulable {
			continue
		}
		add(s.Allocatable, n.Allocatable)
		add(s.Allocated, load[n.Name])
		free := less(n.Allocatable, load[n.Name])
		// A node without a slot takes no pod; it must not hide the nodes after it.
		if len(grades) == 0 || !positive(free[corev1.ResourcePods]) {
			continue
		}
		s.AllocatableModelings[grade(grades, free)].Count++
	}
	return s
}

// resourceNames and resourceNameBytes are the most names of resources that a summary takes, and what they have in all:
// it is part of a status, which a store must take.
const resourceNames, resourceNameBytes = 1000, 64 << 10

// Crowded says why the resources of a cluster are more than a summary takes; empty if they are not.
func Crowded(s *clusterv1alpha1.ResourceSummary) string {
	if n := max(len(s.Allocatable), len(s.Allocated), len(s.Allocating)); n > resourceNames {
		return fmt.Sprintf("its nodes and pods have %d resource names, but the limit is %d; check what adds so many there", n,
			resourceNames)
	}
	for _, list := range []corev1.ResourceList{s.Allocatable, s.Allocated, s.Allocating} {
		n := 0
		for name := range list {
			n += Written(string(name))
		}
		if n > resourceNameBytes {
			return fmt.Sprintf("the resource names of its nodes and pods have %d bytes, but the limit is %d; check what adds them there", n, resourceNameBytes)
		}
	}
	return ""
}

// Written is how many bytes a text takes in JSON at most: what is no plain letter may take six.
func Written(text string) int {
	const escaped = len(`\u0000`)
	n := len(text)
	for i := range len(text) {
		if c := text[i]; c < ' ' || c >= 0x7f || strings.IndexByte(`"\<>&`, c) >= 0 {
			n += escaped - 1
		}
	}
	return n
}

// less is what is left of have after taken; it may be negative where a node is overcommitted.
func less(have, taken corev1.ResourceList) corev1.ResourceList {
	free := have.DeepCopy()
	for name, q := range taken {
		left := free[name]
		left.Sub(q)
		free[name] = left
	}
	return free
}

func positive(q resource.Quantity) bool { return q.Sign() > 0 }

// grade is the index of the highest grade that the free resources reach in each resource of the model.
// grades is not empty and ascends.
func grade(grades []clusterv1alpha1.ResourceModel, free corev1.ResourceList) int {
	lowest := len(grades) - 1
	for _, first := range grades[0].Ranges {
		reached := 0
		for i, g := range grades {
			for _, r := range g.Ranges {
				if q := free[first.Name]; r.Name == first.Name && q.Cmp(r.Min) >= 0 {
					reached = i
				}
			}
		}
		lowest = min(lowest, reached)
	}
	return lowest
}
