package release

import (
	"context"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/release"
)

var waitingDesc = prometheus.NewDesc("argosy_releases_waiting",
	"Number of releases that wait for a person, by the severity, by who must act, and by reason.",
	[]string{"severity", "actor", "reason"}, nil)

// followed is the reader of the releases for the metrics of this process.
var followed atomic.Pointer[client.Reader]

func init() { metrics.Registry.MustRegister(prometheus.CollectorFunc(countWaiting)) }

// countWaiting computes the metric on scrape.
func countWaiting(to chan<- prometheus.Metric) {
	from := followed.Load()
	if from == nil {
		return
	}
	var all releasev1alpha1.ReleaseList
	if err := (*from).List(context.Background(), &all, client.UnsafeDisableDeepCopy); err != nil {
		// This happens during startup and shutdown. There is nothing to report then.
		ctrl.Log.WithName("release").V(2).Info("cannot count the releases that wait", "error", err.Error())
		return
	}
	for labels, n := range demands(all.Items) {
		to <- prometheus.MustNewConstMetric(waitingDesc, prometheus.GaugeValue, float64(n), labels[:]...)
	}
}

// demands counts the releases that wait for a person by severity, actor and reason.
func demands(all []releasev1alpha1.Release) map[[3]string]int {
	counts := map[[3]string]int{}
	for i := range all {
		if d := release.DemandOf(&all[i]); d.Actor != release.NoActor {
			counts[[3]string{string(d.Severity), string(d.Actor), d.Reason}]++
		}
	}
	return counts
}
