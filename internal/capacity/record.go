package capacity

import "github.com/argosy-io/argosy/internal/core/capacity"

// Record is what room is counted by in a member now, as a simulation goes by it: nodes, their pods, quotas, and what is
// expected there. False where that is not known, and the cluster's summary is all there is.
func (f *Fleet) Record(cluster string) (r capacity.Record, known bool) {
	f.state(cluster, func(m *capacity.ClusterState) {
		if known = m.HasNodes(); known {
			r = m.Record()
		}
	})
	return r, known
}
