package history

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var (
	behind = prometheus.NewGauge(prometheus.GaugeOpts{Name: "argosy_history_behind_events",
		Help: "Number of journal entries of releases that the release history does not have yet."})
	failedWrites = prometheus.NewCounter(prometheus.CounterOpts{Name: "argosy_history_failed_writes_total",
		Help: "Number of attempts to write to the release history that failed. They are repeated until they succeed."})
	size = prometheus.NewGauge(prometheus.GaugeOpts{Name: "argosy_history_database_bytes",
		Help: "Size of the history database, measured every hour."})
)

func init() { metrics.Registry.MustRegister(behind, failedWrites, size) }
