package aggregate

import (
	"cmp"
	"context"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/aggregate"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/script"
	"github.com/argosy-io/argosy/internal/scope"
)

var (
	healthDesc = prometheus.NewDesc("argosy_cluster_templates",
		"Number of templates that are propagated to a cluster, by their health there.", []string{"member_cluster", "health"},
		nil)
	failedDesc = prometheus.NewDesc("argosy_cluster_templates_not_applied",
		"Number of templates whose objects could not be applied in a cluster, and are being retried.",
		[]string{"member_cluster"}, nil)
	unhealthyDesc = prometheus.NewDesc("argosy_cluster_templates_unhealthy",
		"Number of templates that have been unhealthy in a cluster without interruption for at least this long.",
		[]string{"member_cluster", "lasting"}, nil)
	unreadDesc = prometheus.NewDesc("argosy_templates_not_interpreted",
		"Number of templates for which an interpreter operation fails, in the hub or in a cluster.",
		[]string{"operation"}, nil)
)

// lasting are the values of the label of unhealthyDesc. A template that has been unhealthy for an hour counts in "15m"
// too.
var lasting = map[string]time.Duration{"15m": 15 * time.Minute, "1h": time.Hour, "1d": 24 * time.Hour}

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
	now := time.Now()
	for label, long := range lasting {
		for cluster, n := range unhealthy(all, now.Add(-long)) {
			to <- prometheus.MustNewConstMetric(unhealthyDesc, prometheus.GaugeValue, float64(n), cluster, label)
		}
	}
	for operation, n := range notInterpreted(all) {
		to <- prometheus.MustNewConstMetric(unreadDesc, prometheus.GaugeValue, float64(n), string(operation))
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

// unhealthy counts bindings that have been unhealthy since this time or longer, by cluster. It includes zeros, so that
// alerts end. A cluster that a binding leaves does not count, nor does a run that has ended.
func unhealthy(all []workv1alpha2.Binding, since time.Time) map[string]int {
	out := map[string]int{}
	for _, b := range all {
		ill := map[string]bool{}
		kind := schema.FromAPIVersionAndKind(b.BindingSpec().Resource.APIVersion, b.BindingSpec().Resource.Kind).GroupKind()
		for _, item := range b.BindingStatus().AggregatedStatus {
			ill[item.ClusterName] = item.Health == workv1alpha1.ResourceUnhealthy && item.UnhealthySince != nil &&
				!item.UnhealthySince.After(since) && !aggregate.Final(kind, item.Status)
		}
		for _, t := range b.BindingSpec().Clusters {
			out[t.Name] += 0
			if ill[t.Name] {
				out[t.Name]++
			}
		}
	}
	return out
}

// notInterpreted counts bindings with the condition of a failed operation, by operation. It includes zeros. Works of
// agents report such failures too.
func notInterpreted(all []workv1alpha2.Binding) map[configv1alpha1.InterpreterOperation]int {
	out := map[configv1alpha1.InterpreterOperation]int{}
	for _, o := range script.Operations {
		out[o.Operation] = 0
	}
	for _, b := range all {
		for operation := range out {
			c := meta.FindStatusCondition(b.BindingStatus().Conditions, string(operation))
			if c != nil && c.Status == metav1.ConditionFalse && c.Reason == interpret.ReasonFault {
				out[operation]++
			}
		}
	}
	return out
}
