package quota

import (
	"context"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/admission/quota"
)

const (
	// usedFrom is the share of a limit from which it has a series.
	usedFrom = 0.8
	// usedMost is the maximum number of series: those of the limits that are used most.
	usedMost = 100
)

var usedDesc = prometheus.NewDesc("argosy_quota_used_ratio",
	"Used share of a limit of a FederatedResourceQuota, from 0.8 on, for the 100 most used limits.",
	[]string{"namespace", "name", "resource", "member_cluster"}, nil)

// followed is the reader of the quotas for the metrics of this process.
var followed atomic.Pointer[client.Reader]

func init() { metrics.Registry.MustRegister(prometheus.CollectorFunc(measureUsage)) }

// measureUsage computes the metric on scrape.
func measureUsage(to chan<- prometheus.Metric) {
	from := followed.Load()
	if from == nil {
		return
	}
	var all policyv1alpha1.FederatedResourceQuotaList
	if err := (*from).List(context.Background(), &all, client.UnsafeDisableDeepCopy); err != nil {
		// This happens during startup and shutdown. There is nothing to report then.
		ctrl.Log.WithName("quota").V(2).Info("cannot measure the usage of quotas", "error", err.Error())
		return
	}
	for _, u := range quota.MostUsed(all.Items, usedFrom, usedMost) {
		to <- prometheus.MustNewConstMetric(usedDesc, prometheus.GaugeValue, u.Ratio, u.Namespace, u.Name,
			string(u.Resource), u.Cluster)
	}
}
