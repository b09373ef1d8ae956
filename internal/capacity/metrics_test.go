package capacity_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/capacity"
	"github.com/argosy-io/argosy/test/kit/controllertest"
)

// metrics returns the metrics of a fleet, as "argosy_cluster_free m1 cpu 4".
func (w *measured) metrics() string {
	var out []string
	ch := make(chan prometheus.Metric, 100)
	w.fleet.Collect(ch)
	close(ch)
	for m := range ch {
		var d dto.Metric
		if err := m.Write(&d); err != nil {
			w.t.Fatal(err)
		}
		name, _, _ := strings.Cut(strings.TrimPrefix(m.Desc().String(), `Desc{fqName: "`), `"`)
		for _, l := range d.Label {
			name += " " + l.GetValue()
		}
		out = append(out, fmt.Sprintf("%s %v", name, d.Gauge.GetValue()))
	}
	slices.Sort(out)
	return strings.Join(out, "; ")
}

func TestMetricsOfFreeCapacityAndReservations(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := measure(t, map[string][]string{"m1": {"4", "2"}, "none": nil})
		w.pod("m1", "web", "web-x-1", "n0", "1500m")
		w.fleet.Assume(wants("api", 2, "1"), []workv1alpha2.TargetCluster{{Name: "m1", Replicas: 2}})
		const want = "argosy_cluster_expected_pods m1 2; argosy_cluster_free m1 cpu 2.5; argosy_cluster_free m1 memory 0; argosy_cluster_free m1 pods 217"
		w.Eventually("the metrics tell of m1", func() string {
			if got := w.metrics(); got != want {
				return fmt.Sprintf("%s, want %s", got, want)
			}
			return ""
		})
		capacity.Export(w.fleet)
		all, err := metrics.Registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(all, func(f *dto.MetricFamily) bool { return f.GetName() == "argosy_cluster_free" }) {
			t.Error("the registry does not have them")
		}
	})
}
