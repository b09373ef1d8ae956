package deschedule

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// Reasons for moves, as label values of the metric.
const (
	noNode        = "NoNode"
	overThreshold = "OverThreshold"
)

var descheduled = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "argosy_descheduled_replicas_total",
	Help: "Number of replicas that were moved out of a cluster because they were unschedulable there or the cluster was overutilized.",
}, []string{"member_cluster", "reason"})

func init() { metrics.Registry.MustRegister(descheduled) }
