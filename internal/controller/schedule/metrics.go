package schedule

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/argosy-io/argosy/internal/core/schedule"
)

// The metrics have the names and labels of Karmada's scheduler, so that its dashboards and alerts work.
var (
	attempts = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "karmada_scheduler_schedule_attempts_total",
		Help: "Number of scheduling attempts for bindings. error means that the binding could not be scheduled, or the result could not be written.",
	}, []string{"result", "schedule_type"})
	durations = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "karmada_scheduler_e2e_scheduling_duration_seconds",
		Help:    "Duration of a scheduling attempt, including the estimators' responses and the write of the placement.",
		Buckets: prometheus.ExponentialBuckets(0.001, 2, 15),
	}, []string{"result", "schedule_type"})
	pendingDesc = prometheus.NewDesc("scheduler_pending_bindings",
		"Number of pending bindings: active are waiting to be scheduled, unschedulable for capacity or a cluster change.",
		[]string{"queue"}, nil)
)

const (
	success, failed            = "success", "error"
	reconciling, scaling       = "ReconcileSchedule", "ScaleSchedule"
	queueActive, queueUnplaced = "active", "unschedulable"
)

func init() {
	for _, result := range []string{success, failed} {
		for _, kind := range []string{reconciling, scaling} {
			attempts.WithLabelValues(result, kind) // exports 0 before the first run
		}
	}
	metrics.Registry.MustRegister(attempts, durations, prometheus.CollectorFunc(countWaiting))
}

// observe counts a run.
func observe(reason schedule.Reason, failure error, took time.Duration) {
	result, kind := success, reconciling
	if failure != nil && !schedule.RunEnded(failure) {
		result = failed
	}
	if reason == schedule.ReplicasChanged {
		kind = scaling
	}
	attempts.WithLabelValues(result, kind).Inc()
	durations.WithLabelValues(result, kind).Observe(took.Seconds())
}

// measured is the scheduler of this process, which the metrics describe.
var measured atomic.Pointer[reconciler]

// countWaiting counts the waiting bindings when the metrics are collected.
func countWaiting(to chan<- prometheus.Metric) {
	r := measured.Load()
	if r == nil {
		return
	}
	gauge := func(queue string, n int) {
		to <- prometheus.MustNewConstMetric(pendingDesc, prometheus.GaugeValue, float64(n), queue)
	}
	gauge(queueUnplaced, len(r.index.failed()))
	if depth := r.depth.Load(); depth != nil {
		gauge(queueActive, (*depth)())
	}
}
