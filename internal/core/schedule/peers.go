package schedule

import (
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

// Peers are the clusters that other workloads of a binding's affinity groups are in.
type Peers struct {
	// together are the clusters of which the binding must use one; it must not use those in apart.
	together, apart map[string]bool
}

// Grouped reports whether where other workloads are matters to the binding.
func Grouped(b workv1alpha2.Binding) bool {
	g := b.BindingSpec().WorkloadAffinityGroups
	return g != nil && (g.AffinityGroup != "" || g.AntiAffinityGroup != "")
}

// ArePeers reports whether two bindings share an affinity or an anti-affinity group. A group is within one namespace.
func ArePeers(a, b workv1alpha2.Binding) (together, apart bool) {
	if !Grouped(a) || !Grouped(b) || a.GetNamespace() != b.GetNamespace() || a.GetName() == b.GetName() {
		return false, false
	}
	x, y := a.BindingSpec().WorkloadAffinityGroups, b.BindingSpec().WorkloadAffinityGroups
	return x.AffinityGroup != "" && x.AffinityGroup == y.AffinityGroup,
		x.AntiAffinityGroup != "" && x.AntiAffinityGroup == y.AntiAffinityGroup
}

// PeersOf finds the binding's peers among all; the binding itself may be among them. What is being deleted is none.
func PeersOf(b workv1alpha2.Binding, all []workv1alpha2.Binding) Peers {
	p := Peers{together: map[string]bool{}, apart: map[string]bool{}}
	for _, other := range all {
		together, apart := ArePeers(b, other)
		if !together && !apart || other.GetDeletionTimestamp() != nil {
			continue
		}
		for _, t := range other.BindingSpec().Clusters {
			if together {
				p.together[t.Name] = true
			}
			if apart {
				p.apart[t.Name] = true
			}
		}
	}
	return p
}

// Among returns the same fleet with a binding's peers in it: for Due and runs of that binding only.
func (s Snapshot) Among(p Peers) Snapshot {
	s.peers = p
	return s
}

// workloadAffinity accepts any cluster for the first workload of a group. A placed workload stays, even if others
// moved.
func workloadAffinity(q *question, m *member, target bool) Cause {
	if !target && len(q.peers.together) > 0 && !q.peers.together[m.cluster.Name] {
		return because(ReasonTogether)
	}
	return Cause{}
}

// workloadAntiAffinity also lets a placed workload stay.
func workloadAntiAffinity(q *question, m *member, target bool) Cause {
	if !target && q.peers.apart[m.cluster.Name] {
		return because(ReasonApart)
	}
	return Cause{}
}
