package aggregate

import (
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

var healthDesc = prometheus.NewDesc("argosy_cluster_templates",
	"Templates that go to a cluster, by how they are there.", []string{"member_cluster", "health"}, nil)

// followed are the bindings of this process, in memory, that the metrics are about.
var followed atomic.Pointer[client.Reader]

func init() { metrics.Registry.MustRegister(prometheus.CollectorFunc(countTemplates)) }

// countTemplates counts when somebody asks.
func countTemplates(to chan<- prometheus.Metric) {
	from := followed.Load()
	if from == nil {
		return
	}
	all, err := scope.Bindings.List(context.Background(), *from, client.UnsafeDisableDeepCopy)
	if err != nil {
		// As while the hub starts or stops: there is nothing to tell then.
		ctrl.Log.WithName("aggregate").V(2).Info("the health of templates is not counted", "error", err.Error())
		return
	}
	for at, n := range healths(all) {
		to <- prometheus.MustNewConstMetric(healthDesc, prometheus.GaugeValue, float64(n), at.cluster, string(at.health))
	}
}

type healthIn struct {
	cluster string
	health  workv1alpha1.ResourceHealth
}

// healths are how many bindings are so in a cluster. What has been heard nothing of is Unknown.
func healths(all []workv1alpha2.Binding) map[healthIn]int {
	out := map[healthIn]int{}
	for _, b := range all {
		heard := map[string]workv1alpha1.ResourceHealth{}
		for _, item := range b.BindingStatus().AggregatedStatus {
			heard[item.ClusterName] = item.Health
		}
		for _, t := range b.BindingSpec().Clusters {
			health := heard[t.Name]
			if health == "" {
				health = workv1alpha1.ResourceUnknown
			}
			out[healthIn{t.Name, health}]++
		}
	}
	return out
}
