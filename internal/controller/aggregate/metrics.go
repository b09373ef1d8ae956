package aggregate

import (
	"cmp"
	"context"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/scope"
)

var (
	healthDesc = prometheus.NewDesc("argosy_cluster_templates",
		"Number of templates that are propagated to a cluster, by their health there.", []string{"member_cluster", "health"},
		nil)
	failedDesc = prometheus.NewDesc("argosy_cluster_templates_not_applied",
		"Number of templates whose objects could not be applied in a cluster, and are being retried.",
		[]string{"member_cluster"}, nil)
)

// followed is the reader of the bindings for the metrics of this process.
var followed atomic.Pointer[client.Reader]

func init() { metrics.Registry.MustRegister(prometheus.CollectorFunc(countTemplates)) }

// countTemplates computes the metrics on scrape.
func countTemplates(to chan<- prometheus.Metric) {
	from := followed.Load()
	if from == nil {
		return
	}
	all, err := scope.Bindings.List(context.Background(), *from, client.UnsafeDisableDeepCopy)
	if err != nil {
		// This happens during startup and shutdown. There is nothing to report then.
		ctrl.Log.WithName("aggregate").V(2).Info("cannot count the health of templates", "error", err.Error())
		return
	}
	for at, n := range healths(all) {
		to <- prometheus.MustNewConstMetric(healthDesc, prometheus.GaugeValue, float64(n), at.cluster, string(at.health))
	}
	for cluster, n := range notApplied(all) {
		to <- prometheus.MustNewConstMetric(failedDesc, prometheus.GaugeValue, float64(n), cluster)
	}
}

type healthIn struct {
	cluster string
	health  workv1alpha1.ResourceHealth
}

// healths counts bindings by cluster and health. A missing report counts as Unknown.
func healths(all []workv1alpha2.Binding) map[healthIn]int {
	out := map[healthIn]int{}
	for _, b := range all {
		heard := map[string]workv1alpha1.ResourceHealth{}
		for _, item := range b.BindingStatus().AggregatedStatus {
			heard[item.ClusterName] = item.Health
		}
		for _, t := range b.BindingSpec().Clusters {
			out[healthIn{t.Name, cmp.Or(heard[t.Name], workv1alpha1.ResourceUnknown)}]++
		}
	}
	return out
}

// notApplied counts bindings with an object that could not be applied, by cluster. It includes zeros, so that alerts
// end.
func notApplied(all []workv1alpha2.Binding) map[string]int {
	out := map[string]int{}
	for _, b := range all {
		for _, t := range b.BindingSpec().Clusters {
			out[t.Name] += 0
		}
		for _, item := range b.BindingStatus().AggregatedStatus {
			if !item.Applied && item.AppliedMessage != "" {
				out[item.ClusterName]++
			}
		}
	}
	return out
}
