package server

import (
	"net/http"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
	"k8s.io/component-base/metrics/legacyregistry"
	controllermetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
)

// metricsHandler serves all metrics of the process: the registries of Kubernetes and controller-runtime, and the
// default one, which etcd uses. own is the registry of this hub, because tests run several hubs in one process.
func metricsHandler(own prometheus.Gatherer) http.Handler {
	return promhttp.HandlerFor(merged{legacyregistry.DefaultGatherer, controllermetrics.Registry,
		prometheus.DefaultGatherer, own},
		promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError})
}

// merged gathers from several registries that know nothing of each other. What two of them measure of the same thing
// (the process, the Go runtime) counts once: the first one's.
type merged []prometheus.Gatherer

// Gather implements prometheus.Gatherer.
func (m merged) Gather() ([]*dto.MetricFamily, error) {
	var all []*dto.MetricFamily
	byName := map[string]*dto.MetricFamily{}
	var failed error
	for _, registry := range m {
		families, err := registry.Gather()
		if err != nil && failed == nil {
			failed = err // serve what was gathered
		}
		for _, family := range families {
			first, seen := byName[family.GetName()]
			if !seen {
				byName[family.GetName()] = family
				all = append(all, family)
				continue
			}
			if first.GetType() == family.GetType() {
				first.Metric = append(first.Metric, missing(first.Metric, family.Metric)...)
			}
		}
	}
	slices.SortFunc(all, func(a, b *dto.MetricFamily) int { return strings.Compare(a.GetName(), b.GetName()) })
	return all, failed
}

// missing returns the metrics in more with labels that no metric in have has.
func missing(have, more []*dto.Metric) []*dto.Metric {
	known := map[string]bool{}
	for _, m := range have {
		known[labels(m)] = true
	}
	return slices.DeleteFunc(slices.Clone(more), func(m *dto.Metric) bool { return known[labels(m)] })
}

func labels(m *dto.Metric) string {
	var b strings.Builder
	for _, l := range m.Label { // sorted by name in every registry
		b.WriteString(l.GetName() + "\x00" + l.GetValue() + "\x00")
	}
	return b.String()
}
