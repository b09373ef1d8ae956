package autoscale

import (
	"context"
	"slices"
	"sync"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"

	autoscalingv1alpha1 "github.com/argosy-io/argosy/api/autoscaling/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/adjust/autoscale"
)

// read reads pods and metrics of a workload from all its clusters in parallel. The result includes clusters that do not
// answer.
func (r *reconciler) read(ctx context.Context, f *autoscalingv1alpha1.FederatedHPA,
	spec *workv1alpha2.ResourceBindingSpec, selector string) []autoscale.Cluster {
	left := leaving(spec)
	targets := slices.Clone(spec.Clusters)
	for _, cluster := range left {
		if !workv1alpha2.HasTarget(targets, cluster) {
			targets = append(targets, workv1alpha2.TargetCluster{Name: cluster})
		}
	}
	out := make([]autoscale.Cluster, len(targets))
	var asking sync.WaitGroup
	for i, t := range targets {
		asking.Go(func() { out[i] = r.readCluster(ctx, f, t, selector) })
	}
	asking.Wait()
	for i := range out {
		out[i].Left = slices.Contains(left, out[i].Name)
	}
	return out
}

// leaving returns the clusters that the workload is leaving, except those where the user keeps it (suppressDeletion).
func leaving(spec *workv1alpha2.ResourceBindingSpec) (clusters []string) {
	for _, t := range spec.GracefulEvictionTasks {
		if t.SuppressDeletion == nil || !*t.SuppressDeletion {
			clusters = append(clusters, t.FromCluster)
		}
	}
	return clusters
}

// metricsTimeout limits the time for all metrics of one cluster, because the others wait for it.
const metricsTimeout = 10 * time.Second

func (r *reconciler) readCluster(ctx context.Context, f *autoscalingv1alpha1.FederatedHPA, t workv1alpha2.TargetCluster,
	selector string) autoscale.Cluster {
	c := autoscale.Cluster{Name: t.Name, Replicas: t.Replicas, Readings: make([]autoscale.Reading, len(f.Spec.Metrics))}
	m, err := r.Members.Get(t.Name)
	if err != nil {
		c.Unknown = err.Error()
		return c
	}
	if c.Pods, err = m.Pods(ctx, f.Namespace, selector); err != nil {
		c.Unknown = err.Error()
		return c
	}
	ctx, cancel := context.WithTimeout(ctx, metricsTimeout)
	defer cancel()
	// Read the usage once for all metrics that need it.
	usage := sync.OnceValues(func() ([]autoscale.Usage, error) { return m.Usage(ctx, f.Namespace, selector) })
	for i, metric := range f.Spec.Metrics {
		switch { // Decide reports a metric without the source of its type
		case metric.Type == autoscalingv2.ResourceMetricSourceType,
			metric.Type == autoscalingv2.ContainerResourceMetricSourceType:
			var all []autoscale.Usage
			if all, err = usage(); err == nil {
				c.Readings[i] = autoscale.Read(metric, all)
			}
		case metric.Type == autoscalingv2.PodsMetricSourceType && metric.Pods != nil:
			c.Readings[i], err = m.PodMetric(ctx, f.Namespace, selector, metric.Pods.Metric)
		case metric.Type == autoscalingv2.ObjectMetricSourceType && metric.Object != nil:
			c.Readings[i], err = m.ObjectMetric(ctx, f.Namespace, metric.Object.DescribedObject, metric.Object.Metric)
		}
		if err != nil {
			c.Readings[i] = autoscale.Reading{Unknown: err.Error()}
			err = nil
		}
	}
	return c
}
