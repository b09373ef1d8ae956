package schedule

import (
	"fmt"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/internal/scope"
	"github.com/argosy-io/argosy/test/kit/controllertest"
)

// scraped returns the numbers of the registry that begin so, by name and labels' values; of histograms how often.
func scraped(t *testing.T, prefix string) map[string]float64 {
	t.Helper()
	all, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range all {
		if !strings.HasPrefix(f.GetName(), prefix) {
			continue
		}
		for _, m := range f.Metric {
			name := f.GetName()
			for _, l := range m.Label {
				name += " " + l.GetValue()
			}
			switch f.GetType() {
			case dto.MetricType_COUNTER:
				out[name] = m.Counter.GetValue()
			case dto.MetricType_GAUGE:
				out[name] = m.Gauge.GetValue()
			case dto.MetricType_HISTOGRAM:
				out[name] = float64(m.Histogram.GetSampleCount())
			}
		}
	}
	return out
}

// Not parallel, as the registry is that of the process.
func TestMetricsCountRunsAndWaitingBindings(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := &world{Hub: controllertest.New(t), t: t, clock: clocktesting.NewFakePassiveClock(time.Unix(1_800_000_000, 0))}
		w.binding = scope.Bindings.New("")
		w.binding.SetName("b")
		w.binding.SetLabels(map[string]string{policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel: "some-id"})
		w.binding.BindingSpec().Resource.APIVersion, w.binding.BindingSpec().Resource.Kind,
			w.binding.BindingSpec().Resource.Name = "rbac.authorization.k8s.io/v1", "ClusterRole", "b"
		w.binding.BindingSpec().Placement = &policyv1alpha1.Placement{}
		w.run()
		before := scraped(t, "karmada_scheduler_")
		more := func(name string) float64 { return scraped(t, "karmada_scheduler_")[name] - before[name] }
		w.Make(w.binding)
		w.condition("0/0 clusters are available")
		w.Eventually("one waits", func() string {
			if got := scraped(t, "scheduler_"); got["scheduler_pending_bindings unschedulable"] != 1 ||
				got["scheduler_pending_bindings active"] != 0 {
				return fmt.Sprint(got)
			}
			return ""
		})
		if n := more("karmada_scheduler_schedule_attempts_total error ReconcileSchedule"); n < 1 {
			t.Errorf("%v runs failed, want one at least", n)
		}
		if n := more("karmada_scheduler_schedule_attempts_total success ReconcileSchedule"); n != 0 {
			t.Errorf("%v runs succeeded, want none", n)
		}
		w.Join("m1", controllertest.ClusterRole)
		w.scheduled("m1")
		w.Eventually("none waits", func() string {
			if got := scraped(t, "scheduler_"); got["scheduler_pending_bindings unschedulable"] != 0 {
				return fmt.Sprint(got)
			}
			return ""
		})
		for _, name := range []string{"karmada_scheduler_schedule_attempts_total",
			"karmada_scheduler_e2e_scheduling_duration_seconds"} {
			if n := more(name + " success ReconcileSchedule"); n < 1 || n > 2 {
				t.Errorf("%s counts %v runs that succeeded, want the one, or its confirmation as well", name, n)
			}
		}
	})
}
