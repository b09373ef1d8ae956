package member_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/argosy-io/argosy/internal/member"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

// serving answers at exact addresses, with their selectors.
func serving(s *membertest.Server, answers map[string]string) {
	s.Behave(func(w http.ResponseWriter, r *http.Request) bool {
		answer, ok := answers[r.URL.RequestURI()]
		if ok {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, answer)
		}
		return ok
	})
}

func TestPodUsageMatchesMetricsServer(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		s := membertest.NewInMemory(t)
		_, m, _ := joined(t, s, member.Options{})
		if _, err := m.Usage(t.Context(), "shop", "app=web"); !errors.Is(err, member.ErrNoMetrics) ||
			!strings.Contains(err.Error(), "install metrics-server there") {
			t.Errorf("without metrics-server: %v", err)
		}
		serving(s, map[string]string{"/apis/metrics.k8s.io/v1beta1/namespaces/shop/pods?labelSelector=app%3Dweb": `{"items": [{"metadata": {"name": "web-0"}, "timestamp": "2027-01-11T08:00:00Z",
		"window": "30s", "containers": [{"name": "app", "usage": {"cpu": "120m", "memory": "1Mi"}}, {"name": "proxy", "usage": {"cpu": "10m"}}]}]}`})
		got, err := m.Usage(t.Context(), "shop", "app=web")
		if err != nil || len(got) != 1 || got[0].Pod != "web-0" || got[0].Window.Seconds() != 30 ||
			got[0].At.UTC().Hour() != 8 {
			t.Fatalf("%+v, %v", got, err)
		}
		if cpu := got[0].Containers["app"][corev1.ResourceCPU]; cpu.MilliValue() != 120 || len(got[0].Containers) != 2 {
			t.Errorf("containers use %+v", got[0].Containers)
		}
		s.Down(true)
		if _, err := m.Usage(t.Context(), "shop", "app=web"); err == nil || errors.Is(err, member.ErrNoMetrics) {
			t.Errorf("a member that is down: %v", err)
		}
		if _, err := m.Pods(t.Context(), "shop", "app=web"); err == nil {
			t.Error("a member that is down has pods")
		}
	})
}

func TestCustomMetricsUseTheServedVersion(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		s := membertest.NewInMemory(t, membertest.Kind{GroupVersionKind: schema.GroupVersionKind{Group: "networking.k8s.io",
			Version: "v1", Kind: "Ingress"}, Plural: "ingresses", Namespaced: true})
		_, m, _ := joined(t, s, member.Options{})
		requests := autoscalingv2.MetricIdentifier{Name: "requests",
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"verb": "GET"}}}
		if _, err := m.PodMetric(t.Context(), "shop", "app=web", requests); !errors.Is(err, member.ErrNoMetrics) ||
			!strings.Contains(err.Error(), "install a metrics adapter") {
			t.Errorf("without an adapter: %v", err)
		}
		for _, version := range []string{"v1beta1", "v1beta2"} {
			s.Serve(membertest.Kind{GroupVersionKind: schema.GroupVersionKind{Group: "custom.metrics.k8s.io", Version: version,
				Kind: "MetricValueList"}, Plural: "values", Namespaced: true})
		}
		const base = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/shop/"
		serving(s, map[string]string{
			base + "pods/%2A/requests?labelSelector=app%3Dweb&metricLabelSelector=verb%3DGET": `{"items": [{"describedObject": {"kind": "Pod", "name": "web-0"}, "timestamp": "2027-01-11T08:00:00Z", "windowSeconds": 90, "value": "1500m"}]}`,
			base + "pods/*/requests?labelSelector=app%3Dweb&metricLabelSelector=verb%3DGET":   `{"items": [{"describedObject": {"kind": "Pod", "name": "web-0"}, "timestamp": "2027-01-11T08:00:00Z", "windowSeconds": 90, "value": "1500m"}]}`,
			base + "ingresses.networking.k8s.io/web/hits":                                     `{"items": [{"describedObject": {"kind": "Ingress", "name": "web"}, "value": "40"}]}`,
		})
		got, err := m.PodMetric(t.Context(), "shop", "app=web", requests)
		if err != nil || got.Pods["web-0"].Milli != 1500 || got.Pods["web-0"].Window.Seconds() != 90 {
			t.Errorf("%+v, %v", got, err)
		}
		ingress := autoscalingv2.CrossVersionObjectReference{APIVersion: "networking.k8s.io/v1", Kind: "Ingress", Name: "web"}
		if got, err = m.ObjectMetric(t.Context(), "shop", ingress,
			autoscalingv2.MetricIdentifier{Name: "hits"}); err != nil || got.Object != 40_000 {
			t.Errorf("%+v, %v", got, err)
		}
		if got, err = m.ObjectMetric(t.Context(), "shop", ingress,
			autoscalingv2.MetricIdentifier{Name: "misses"}); err != nil ||
			got.Absent != "there is no Ingress web in namespace shop" {
			t.Errorf("a metric of an object that is not there: %+v, %v", got, err)
		}
		s.Put(&unstructured.Unstructured{Object: map[string]any{"apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
			"metadata": map[string]any{"namespace": "shop", "name": "web"}}})
		if _, err = m.ObjectMetric(t.Context(), "shop", ingress,
			autoscalingv2.MetricIdentifier{Name: "misses"}); err == nil || !strings.Contains(err.Error(), "read metric misses") {
			t.Errorf("a metric that nobody has: %v", err)
		}
		ingress.Kind = "Gateway"
		if _, err = m.ObjectMetric(t.Context(), "shop", ingress,
			autoscalingv2.MetricIdentifier{Name: "hits"}); !errors.Is(err, member.ErrKindNotServed) {
			t.Errorf("a kind that nobody serves: %v", err)
		}
	})
}

func TestObjectMetricsAreThoseOfTheNamespaceAlone(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		s := membertest.NewInMemory(t)
		s.Serve(membertest.Kind{GroupVersionKind: schema.GroupVersionKind{Group: "custom.metrics.k8s.io", Version: "v1beta1",
			Kind: "MetricValueList"}, Plural: "values", Namespaced: true})
		_, m, _ := joined(t, s, member.Options{})
		const api = "/apis/custom.metrics.k8s.io/v1beta1/"
		serving(s, map[string]string{
			api + "namespaces/shop/metrics/hits":                 `{"items": [{"value": "7"}]}`,
			api + "namespaces/shop/nodes/n1/hits%20per%20second": `{"items": [{"value": "8"}]}`,
			// What others have.
			api + "namespaces/bank/metrics/hits":     `{"items": [{"value": "100"}]}`,
			api + "namespaces/bank/hits":             `{"items": [{"value": "100"}]}`,
			api + "nodes/n1/hits%20per%20second":     `{"items": [{"value": "100"}]}`,
			"/api/v1/namespaces/bank/secrets":        `{"items": [{"value": "100"}]}`,
			api + "nodes/n1/hits%2520per%2520second": `{"items": [{"value": "100"}]}`,
		})
		for _, c := range []struct {
			kind, name, metric string
			want               int64
			err                string
		}{
			{"Namespace", "shop", "hits", 7000, ""},
			{"Namespace", "bank", "hits", 7000, ""},
			{"Node", "n1", "hits per second", 8000, ""},
			{"Node", "..", "../../bank/metrics/hits", 0, `the name ".." is not valid`},
			{"Namespace", "shop", "../../bank/metrics/hits", 0, "is not valid: may not contain '/'"},
			{"Namespace", "shop", "..", 0, "is not valid: may not be '..'"},
			{"Namespace", "shop", "", 0, "it is empty"},
		} {
			got, err := m.ObjectMetric(t.Context(), "shop",
				autoscalingv2.CrossVersionObjectReference{APIVersion: "v1", Kind: c.kind, Name: c.name},
				autoscalingv2.MetricIdentifier{Name: c.metric})
			if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) ||
				got.Object != c.want {
				t.Errorf("metric %s of %s %s: %d, %v, want %d, %q", c.metric, c.kind, c.name, got.Object, err, c.want, c.err)
			}
		}
	})
}

func TestHangingMetricsDoNotMakeAMemberSilent(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		s := membertest.NewInMemory(t)
		now := clocktesting.NewFakePassiveClock(time.Now())
		members, m, _ := joined(t, s, member.Options{Timeout: time.Second, Clock: now})
		var back atomic.Int32
		members.OnAnswer(func(string) { back.Add(1) })
		var hangs atomic.Bool
		hangs.Store(true)
		s.Behave(func(_ http.ResponseWriter, r *http.Request) bool {
			if hangs.Load() && strings.HasPrefix(r.URL.Path, "/apis/metrics.k8s.io/") {
				<-r.Context().Done()
				return true
			}
			return false
		})
		asked := func() int { return len(s.Requests("GET /apis/metrics.k8s.io/")) }
		for range 3 {
			if _, err := m.Usage(t.Context(), "shop", "app=web"); err == nil || member.Unreachable(err) ||
				!strings.Contains(err.Error(), "read metrics.k8s.io: no answer in time") {
				t.Fatalf("metrics that hang: %v", err)
			}
			if _, err := m.Pods(t.Context(), "shop", "app=web"); err != nil {
				t.Fatalf("its metrics hang, and of the member it is said: %v", err)
			}
		}
		if n := asked(); n != 1 {
			t.Errorf("what hangs is asked %d times, want once", n)
		}
		hangs.Store(false)
		now.SetTime(now.Now().Add(time.Minute))
		for range 2 {
			if _, err := m.Usage(t.Context(), "shop", "app=web"); !errors.Is(err, member.ErrNoMetrics) {
				t.Errorf("metrics that answer again: %v", err)
			}
		}
		if n := asked(); n != 3 || back.Load() != 0 {
			t.Errorf("asked %d times, want 3; the member is said to be back %d times", n, back.Load())
		}
		s.Down(true)
		if _, err := m.Usage(t.Context(), "shop", "app=web"); err == nil {
			t.Error("a member that is down has metrics")
		}
	})
}
