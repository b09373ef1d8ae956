package capacity

import "github.com/prometheus/client_golang/prometheus"

// Sweep drops expired reservations at once.
func (f *Fleet) Sweep() { f.sweep() }

// Collect returns the metrics of this fleet.
func (f *Fleet) Collect(to chan<- prometheus.Metric) { f.collect(to) }

// Export has the process tell of this fleet.
func Export(f *Fleet) { measured.Store(f) }
