package member_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/argosy-io/argosy/internal/member"
	"github.com/argosy-io/argosy/internal/member/membertest"
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

func TestWhatPodsUseIsReadAsMetricsServerSaysIt(t *testing.T) {
	s := membertest.New(t)
	_, m, _ := joined(t, s, member.Options{})
	if _, err := m.Usage(t.Context(), "shop", "app=web"); !errors.Is(err, member.ErrNoMetrics) || !strings.Contains(err.Error(), "install metrics-server there") {
		t.Errorf("without metrics-server: %v", err)
	}
	serving(s, map[string]string{"/apis/metrics.k8s.io/v1beta1/namespaces/shop/pods?labelSelector=app%3Dweb": `{"items": [{"metadata": {"name": "web-0"}, "timestamp": "2027-01-11T08:00:00Z",
		"window": "30s", "containers": [{"name": "app", "usage": {"cpu": "120m", "memory": "1Mi"}}, {"name": "proxy", "usage": {"cpu": "10m"}}]}]}`})
	got, err := m.Usage(t.Context(), "shop", "app=web")
	if err != nil || len(got) != 1 || got[0].Pod != "web-0" || got[0].Window.Seconds() != 30 || got[0].At.UTC().Hour() != 8 {
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
}

func TestCustomMetricsAreReadInTheVersionThatIsServed(t *testing.T) {
	s := membertest.New(t, membertest.Kind{GroupVersionKind: schema.GroupVersionKind{Group: "networking.k8s.io", Version: "v1", Kind: "Ingress"}, Plural: "ingresses", Namespaced: true})
	_, m, _ := joined(t, s, member.Options{})
	requests := autoscalingv2.MetricIdentifier{Name: "requests", Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"verb": "GET"}}}
	if _, err := m.PodMetric(t.Context(), "shop", "app=web", requests); !errors.Is(err, member.ErrNoMetrics) || !strings.Contains(err.Error(), "install an adapter") {
		t.Errorf("without an adapter: %v", err)
	}
	for _, version := range []string{"v1beta1", "v1beta2"} {
		s.Serve(membertest.Kind{GroupVersionKind: schema.GroupVersionKind{Group: "custom.metrics.k8s.io", Version: version, Kind: "MetricValueList"}, Plural: "values", Namespaced: true})
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
	if got, err = m.ObjectMetric(t.Context(), "shop", ingress, autoscalingv2.MetricIdentifier{Name: "hits"}); err != nil || got.Object != 40_000 {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err = m.ObjectMetric(t.Context(), "shop", ingress, autoscalingv2.MetricIdentifier{Name: "misses"}); err == nil || !strings.Contains(err.Error(), "read metric misses") {
		t.Errorf("a metric that nobody has: %v", err)
	}
	ingress.Kind = "Gateway"
	if _, err = m.ObjectMetric(t.Context(), "shop", ingress, autoscalingv2.MetricIdentifier{Name: "hits"}); !errors.Is(err, member.ErrKindNotServed) {
		t.Errorf("a kind that nobody serves: %v", err)
	}
}
