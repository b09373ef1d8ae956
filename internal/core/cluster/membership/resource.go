package membership

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/cluster/capacity"
)

// Resources counts nodes, and sums up allocatable resources of schedulable nodes, requests of pods on them, and
// requests of pods without a node. Other nodes count in neither sum, so allocatable minus allocated is free.
func Resources(m *capacity.ClusterState, models []clusterv1alpha1.ResourceModel) (*clusterv1alpha1.NodeSummary,
	*clusterv1alpha1.ResourceSummary) {
	count := &clusterv1alpha1.NodeSummary{}
	s := &clusterv1alpha1.ResourceSummary{
		Allocatable: corev1.ResourceList{},
		Allocated:   corev1.ResourceList{},
		Allocating:  m.PendingRequests().List(),
	}
	grades := slices.SortedFunc(slices.Values(models), func(a, b clusterv1alpha1.ResourceModel) int {
		return cmp.Compare(a.Grade, b.Grade)
	})
	for _, g := range grades {
		s.AllocatableModelings = append(s.AllocatableModelings, clusterv1alpha1.AllocatableModeling{Grade: g.Grade})
	}
	m.Nodes(func(n *capacity.Node, requested capacity.Amounts) {
		count.TotalNum++
		if n.Ready {
			count.ReadyNum++
		}
		if !n.Ready || n.Unschedulable {
			return
		}
		add(s.Allocatable, n.Allocatable)
		add(s.Allocated, requested)
		free := func(name corev1.ResourceName) int64 { return n.Allocatable[name] - requested[name] }
		// A node without a free pod slot takes no pod.
		if len(grades) > 0 && free(corev1.ResourcePods) > 0 {
			s.AllocatableModelings[grade(grades, free)].Count++
		}
	})
	return count, s
}

// add adds amounts to quantities, which do not overflow.
func add(sum corev1.ResourceList, more capacity.Amounts) {
	for name, q := range more.List() {
		q.Add(sum[name])
		sum[name] = q
	}
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

// grade returns the index of the highest grade that the free resources reach for all resources of the model. grades is
// sorted and not empty.
func grade(grades []clusterv1alpha1.ResourceModel, free func(corev1.ResourceName) int64) int {
	lowest := len(grades) - 1
	for _, first := range grades[0].Ranges {
		reached, q := 0, capacity.Quantity(first.Name, free(first.Name))
		for i, g := range grades {
			for _, r := range g.Ranges {
				if r.Name == first.Name && q.Cmp(r.Min) >= 0 {
					reached = i
				}
			}
		}
		lowest = min(lowest, reached)
	}
	return lowest
}
