package capacity

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/argosy-io/argosy/internal/core/cluster/capacity"
)

// The cluster controller exports the metrics that Karmada has too, such as cluster_cpu_allocatable_number. These are
// additional ones of this hub's scheduler.
var (
	freeDesc = prometheus.NewDesc("argosy_cluster_free",
		"Free capacity of schedulable nodes, after their pods and the pods expected there: cores of cpu, bytes of memory, pods.",
		[]string{"member_cluster", "resource"}, nil)
	expectedDesc = prometheus.NewDesc("argosy_cluster_expected_pods",
		"Pods that capacity is reserved for: replicas that were placed and are not observed yet, and pods without a node.",
		[]string{"member_cluster"}, nil)
)

// measured is the fleet whose metrics this process exports.
var measured atomic.Pointer[Fleet]

func init() {
	// Metrics are computed on scrape.
	metrics.Registry.MustRegister(prometheus.CollectorFunc(func(to chan<- prometheus.Metric) {
		if f := measured.Load(); f != nil {
			f.collect(to)
		}
	}))
}

func (f *Fleet) collect(to chan<- prometheus.Metric) {
	for _, cluster := range f.Snapshot().Names() {
		f.state(cluster, func(m *capacity.ClusterState) {
			if !m.HasNodes() {
				return
			}
			free, expected := m.Spare()
			gauge := func(d *prometheus.Desc, value float64, labels ...string) {
				to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, append([]string{cluster}, labels...)...)
			}
			gauge(expectedDesc, float64(expected))
			gauge(freeDesc, float64(free[corev1.ResourceCPU])/1000, "cpu")
			gauge(freeDesc, float64(free[corev1.ResourceMemory]), "memory")
			gauge(freeDesc, float64(free[corev1.ResourcePods]), "pods")
		})
	}
}
