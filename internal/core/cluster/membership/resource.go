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

// Node has the properties of a node that affect the summary.
type Node struct {
	Name        string
	Ready       bool
	Schedulable bool
	Allocatable corev1.ResourceList
}

// Load is the sum of pod requests per node, including one pod slot per pod. The empty key is for pods without a node.
// It contains no zeros.
type Load map[string]corev1.ResourceList

// add stores neither zeros nor quantities that share memory with the argument.
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

// Nodes counts nodes and ready nodes.
func Nodes(nodes []Node) *clusterv1alpha1.NodeSummary {
	s := &clusterv1alpha1.NodeSummary{TotalNum: int32(len(nodes))}
	for _, n := range nodes {
		if n.Ready {
			s.ReadyNum++
		}
	}
	return s
}

// Resources sums up allocatable resources of schedulable nodes, requests of pods on them, and requests of pods without
// a node. Other nodes count in neither sum, so allocatable minus allocated is free.
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
		// A node without a free pod slot takes no pod. Continue with the other nodes.
		if len(grades) == 0 || !positive(free[corev1.ResourcePods]) {
			continue
		}
		s.AllocatableModelings[grade(grades, free)].Count++
	}
	return s
}

// maxResourceNames and maxResourceNameBytes limit the resource names in a summary, because it is part of a status.
// Whoever may create pods in a member can name any number.
const maxResourceNames, maxResourceNameBytes = 1000, 64 << 10

// Crowded returns why the resources exceed these limits, or empty.
func Crowded(s *clusterv1alpha1.ResourceSummary) string {
	if n := max(len(s.Allocatable), len(s.Allocated), len(s.Allocating)); n > maxResourceNames {
		return fmt.Sprintf("its nodes and pods have %d resource names, but the limit is %d; check what adds so many there", n,
			maxResourceNames)
	}
	for _, list := range []corev1.ResourceList{s.Allocatable, s.Allocated, s.Allocating} {
		n := 0
		for name := range list {
			n += Written(string(name))
		}
		if n > maxResourceNameBytes {
			return fmt.Sprintf("the resource names of its nodes and pods have %d bytes, but the limit is %d; check what adds them there", n, maxResourceNameBytes)
		}
	}
	return ""
}

// Written returns the maximum size of a text in JSON. A special character may take six bytes.
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

// less returns have minus taken. It may be negative on an overcommitted node.
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

// grade returns the index of the highest grade that the free resources reach for all resources of the model. grades is
// sorted and not empty.
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
