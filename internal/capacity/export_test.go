package capacity

import (
	"github.com/prometheus/client_golang/prometheus"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/cluster/capacity"
)

// Sweep drops expired reservations at once.
func (f *Fleet) Sweep() { f.sweep() }

// Collect returns the metrics of this fleet.
func (f *Fleet) Collect(to chan<- prometheus.Metric) { f.collect(to) }

// Export has the process tell of this fleet.
func Export(f *Fleet) { measured.Store(f) }

// Candidates returns those of the given templates in a cluster that may have created a workload.
func Candidates(all []workv1alpha2.ObjectReference, of capacity.Workload) []workv1alpha2.ObjectReference {
	known := templates{}
	for _, t := range all {
		at := place{"m1", t.Namespace, t.Name}
		known[at] = append(known[at], t)
	}
	return known.candidates("m1", of)
}
