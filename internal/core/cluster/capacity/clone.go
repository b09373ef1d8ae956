package capacity

import (
	"maps"
	"slices"
)

// Clone returns a copy that placements can be tried on. Pods count in it, but cannot change.
func (m *ClusterState) Clone() *ClusterState {
	m.settle()
	c := NewClusterState()
	c.nodeCount, c.sequence, c.tracking = m.nodeCount, m.sequence, true
	for _, n := range m.nodes {
		copied := *n
		copied.free, copied.requested, copied.reservations = maps.Clone(n.free), nil, map[*reservation]int64{}
		c.nodes = append(c.nodes, &copied)
		c.byName[n.Name] = &copied
	}
	for key, w := range m.workloads {
		copied := *w
		copied.at = onNodes(c, w.at)
		c.workloads[key] = &copied
	}
	for _, p := range m.pods {
		if p.node != nil && !m.tracking {
			c.workloads[p.workload.Workload].track(c.byName[p.node.Name], 1)
		}
	}
	reserve := func(h *reservation) *reservation {
		copied := *h
		copied.at = onNodes(c, h.at)
		for n, k := range copied.at {
			n.reservations[&copied] = k
		}
		if was, unplaced := m.unplaced[h]; unplaced {
			c.unplaced[&copied] = was
		}
		if m.spreading[h] {
			c.spreading[&copied] = true
		}
		return &copied
	}
	for key, h := range m.queued {
		c.queued[key] = reserve(h)
	}
	for key, a := range m.assumptions {
		copied := *a
		copied.reservations = make([]*reservation, len(a.reservations))
		for i, h := range a.reservations {
			copied.reservations[i] = reserve(h)
		}
		c.assumptions[key] = &copied
	}
	for namespace, quotas := range m.quotas {
		c.quotas[namespace] = slices.Clone(quotas)
	}
	return c
}

// onNodes returns the numbers for the nodes of another state.
func onNodes(c *ClusterState, at map[*node]int64) map[*node]int64 {
	out := make(map[*node]int64, len(at))
	for n, k := range at {
		out[c.byName[n.Name]] = k
	}
	return out
}
