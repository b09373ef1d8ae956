package cluster

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/cluster/credential"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
)

const clusterLabel = "member_cluster"

func gauge(name, help string) *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, []string{clusterLabel})
}

var (
	readyState = gauge("cluster_ready_state", "State of the cluster (1 if ready, 0 otherwise).")
	nodeNumber = gauge("cluster_node_number", "Number of nodes in the cluster.")
	readyNodes = gauge("cluster_ready_node_number", "Number of ready nodes in the cluster.")

	cpuAllocatable    = gauge("cluster_cpu_allocatable_number", "Number of allocatable CPUs in the cluster.")
	cpuAllocated      = gauge("cluster_cpu_allocated_number", "Number of allocated CPUs in the cluster.")
	memoryAllocatable = gauge("cluster_memory_allocatable_bytes", "Allocatable memory of the cluster in bytes.")
	memoryAllocated   = gauge("cluster_memory_allocated_bytes", "Allocated memory of the cluster in bytes.")
	podAllocatable    = gauge("cluster_pod_allocatable_number", "Number of allocatable pods in the cluster.")
	podAllocated      = gauge("cluster_pod_allocated_number", "Number of allocated pods in the cluster.")

	syncDuration = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "cluster_sync_status_duration_seconds",
		Help:    "Duration of one collection of the cluster status.",
		Buckets: prometheus.ExponentialBuckets(0.005, 2, 12),
	}, []string{clusterLabel})

	tokenFailed = gauge("argosy_member_token_rotation_failed",
		"1 while a token of the hub for the cluster is due for renewal and could not be replaced.")
	tokenEnds = prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "argosy_member_token_expiration_timestamp_seconds",
		Help: "Expiration time of the hub's token for a service account of the cluster."}, []string{clusterLabel, "account"})
)

var gauges = []*prometheus.GaugeVec{
	readyState, nodeNumber, readyNodes, cpuAllocatable, cpuAllocated, memoryAllocatable, memoryAllocated, podAllocatable,
	podAllocated, tokenFailed,
}

func init() {
	for _, g := range gauges {
		metrics.Registry.MustRegister(g)
	}
	metrics.Registry.MustRegister(syncDuration, tokenEnds)
}

// observe exports a status as metrics.
func observe(cluster string, status *clusterv1alpha1.ClusterStatus, took time.Duration) {
	ready := 0.0
	if membership.IsReady(&clusterv1alpha1.Cluster{Status: *status}) {
		ready = 1
	}
	readyState.WithLabelValues(cluster).Set(ready)
	syncDuration.WithLabelValues(cluster).Observe(took.Seconds())
	if n := status.NodeSummary; n != nil {
		nodeNumber.WithLabelValues(cluster).Set(float64(n.TotalNum))
		readyNodes.WithLabelValues(cluster).Set(float64(n.ReadyNum))
	}
	if r := status.ResourceSummary; r != nil {
		cpuAllocatable.WithLabelValues(cluster).Set(r.Allocatable.Cpu().AsApproximateFloat64())
		cpuAllocated.WithLabelValues(cluster).Set(r.Allocated.Cpu().AsApproximateFloat64())
		memoryAllocatable.WithLabelValues(cluster).Set(r.Allocatable.Memory().AsApproximateFloat64())
		memoryAllocated.WithLabelValues(cluster).Set(r.Allocated.Memory().AsApproximateFloat64())
		podAllocatable.WithLabelValues(cluster).Set(pods(r.Allocatable))
		podAllocated.WithLabelValues(cluster).Set(pods(r.Allocated))
	}
}

// observeToken exports the expiry of a token.
func observeToken(cluster string, t credential.Token) {
	if !t.Endless() {
		tokenEnds.WithLabelValues(cluster, t.Account).Set(float64(t.Expires.Unix()))
	}
}

func pods(l corev1.ResourceList) float64 { return l.Pods().AsApproximateFloat64() }

func forgetMetrics(cluster string) {
	for _, g := range gauges {
		g.DeleteLabelValues(cluster)
	}
	syncDuration.DeleteLabelValues(cluster)
	tokenEnds.DeletePartialMatch(prometheus.Labels{clusterLabel: cluster})
}
