package failover

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// Reasons of events that Karmada does not have.
const (
	// eventPreserveState: the state that a policy preserves cannot be read from the status of the old copy.
	//
	//reference:event Warning on binding and template
	eventPreserveState = "PreserveStateFailed"
	// eventNotNeeded: a workload for which EvictWorkloadFromClusterFailed was recorded no longer has to leave the cluster.
	//
	//reference:event Normal on binding and template
	eventNotNeeded = "EvictionNotNeeded"
	// eventResumed: workloads may leave the cluster again.
	//
	//reference:event Normal on Cluster
	eventResumed = "FailoverResumed"
)

var (
	evicted = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "argosy_evictions_total", Help: "Number of evictions of workloads from clusters, by reason and result.",
	}, []string{"reason", "result"})
	duration = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "argosy_failover_duration_seconds",
		Help:    "Time from the taint of a cluster, or the failure of an application, until the replacement was healthy.",
		Buckets: []float64{30, 60, 120, 300, 330, 360, 420, 600, 900, 1800, 3600},
	})
	waiting = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "argosy_failover_waiting", Help: "Number of workloads that should leave a cluster, or have left it, and wait, by reason.",
	}, []string{"reason"})
	pausedClusters = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "argosy_failover_paused_clusters",
		Help: "Number of lost clusters from which nothing is evicted, because too many were lost at the same time.",
	})
)

func init() { metrics.Registry.MustRegister(evicted, duration, waiting, pausedClusters) }
