package capacity

import "github.com/argosy-io/argosy/internal/core/cluster/capacity"

// Record returns the state of a member for simulations: nodes, pods, quotas and reservations. known is false if only
// the cluster's summary is available.
func (f *Fleet) Record(cluster string) (r capacity.Record, known bool) {
	f.state(cluster, func(m *capacity.ClusterState) {
		if known = m.HasNodes(); known {
			r = m.Record()
		}
	})
	return r, known
}
