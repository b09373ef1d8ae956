package capacity

import "github.com/prometheus/client_golang/prometheus"

// Sweep gives up what was waited for too long, without the wait between two looks.
func (f *Fleet) Sweep() { f.sweep() }

// Collect tells the metrics of this fleet, whichever the process tells of.
func (f *Fleet) Collect(to chan<- prometheus.Metric) { f.collect(to) }

// Tell has the process tell of this fleet.
func Tell(f *Fleet) { measured.Store(f) }
