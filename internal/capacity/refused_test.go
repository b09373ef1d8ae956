package capacity_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
	"github.com/argosy-io/argosy/test/kit/controllertest"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

// Controllers of several kinds report only by events that they cannot create pods. They are read if pods are missing.
func TestRefusalsAreReadWherePodsAreMissing(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := measure(t, map[string][]string{"m1": {"8"}, "m2": {"8"}})
		for _, s := range w.servers {
			s.Serve(membertest.Kind{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Event"}, Plural: "events",
				Namespaced: true})
		}
		record := func(cluster, kind, name, reason, message string, ago time.Duration) {
			t.Helper()
			at := w.clock.Now().Add(-ago)
			w.servers[cluster].Put(&corev1.Event{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Event"},
				ObjectMeta:     metav1.ObjectMeta{Namespace: "default", Name: strings.ToLower(kind+name+reason) + ago.String()},
				InvolvedObject: corev1.ObjectReference{Kind: kind, Namespace: "default", Name: name}, Type: "Warning",
				Reason: reason, Message: message, LastTimestamp: metav1.NewTime(at)})
		}
		record("m1", "StatefulSet", "db", "FailedCreate", "an older reason", time.Hour)
		record("m1", "StatefulSet", "db", "FailedCreate", "exceeded quota: tenant", time.Minute)
		record("m1", "StatefulSet", "db", "FailedAttach", "another reason", time.Second)
		record("m1", "StatefulSet", "past", "FailedCreate", "over for long", 30*time.Minute)
		record("m1", "StatefulSet", "other", "FailedCreate", "of another object", time.Second)
		record("m1", "DaemonSet", "agent", "FailedCreate", "violates PodSecurity", time.Minute)
		record("m1", "Job", "backup", "FailedCreate", "no PriorityClass", time.Minute)
		record("m1", "Job", "nightly-1", "FailedCreate", "serviceaccount not found", time.Minute)

		for name, c := range map[string]struct {
			version, kind, name, status string
			health                      workv1alpha1.ResourceHealth
			want                        string
			asks                        int
		}{
			"a StatefulSet": {"apps/v1", "StatefulSet", "db", `{"replicas":1}`, "Unknown",
				"m1 3 of 4 pods: FailedCreate: exceeded quota: tenant", 2},
			"an unhealthy one": {"apps/v1", "StatefulSet", "db", `{"replicas":3}`, "Unhealthy",
				"m1 1 of 4 pods: FailedCreate: exceeded quota: tenant", 2},
			"one that lacks no pod":   {"apps/v1", "StatefulSet", "db", `{"replicas":4}`, "Unknown", "", 0},
			"a healthy one":           {"apps/v1", "StatefulSet", "db", `{"replicas":1}`, "Healthy", "", 0},
			"one without such events": {"apps/v1", "StatefulSet", "cache", `{"replicas":1}`, "Unknown", "", 2},
			"one whose event is old":  {"apps/v1", "StatefulSet", "past", `{"replicas":1}`, "Unknown", "", 2},
			"a DaemonSet": {"apps/v1", "DaemonSet", "agent", `{"desiredNumberScheduled":3,"currentNumberScheduled":1}`,
				"Unknown", "m1 2 of 4 pods: FailedCreate: violates PodSecurity", 2},
			"a Job": {"batch/v1", "Job", "backup", `{}`, "Unknown", "m1 4 of 4 pods: FailedCreate: no PriorityClass", 2},
			"a condition that has the reason": {"apps/v1", "Deployment", "web",
				`{"replicas":1,"conditions":[{"type":"ReplicaFailure","status":"True","message":"no"}]}`, "Unknown", "", 0},
			"no workload": {"v1", "ConfigMap", "db", `{}`, "Unknown", "", 0},
		} {
			b := &workv1alpha2.ResourceBinding{}
			b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: c.version, Kind: c.kind, Namespace: "default",
				Name: c.name}
			for _, m := range []string{"m1", "m2", "gone"} {
				b.Spec.Clusters = append(b.Spec.Clusters, workv1alpha2.TargetCluster{Name: m, Replicas: 4})
				b.Status.AggregatedStatus = append(b.Status.AggregatedStatus, workv1alpha2.AggregatedStatusItem{ClusterName: m,
					Applied: true, Health: c.health, Status: &runtime.RawExtension{Raw: []byte(c.status)}})
			}
			asked := func() (n int) {
				for _, s := range w.servers {
					for _, r := range s.Requests("GET ") {
						if strings.Contains(r, "/events") {
							n++
						}
					}
				}
				return n
			}
			before := asked()
			var lines []string
			for _, of := range w.fleet.AddRefusals(t.Context(), b, nil) {
				lines = append(lines, of.Cluster+" "+strings.Join(of.Lines(), ", "))
			}
			if got := strings.Join(lines, "; "); got != c.want {
				t.Errorf("%s: got %q, want %q", name, got, c.want)
			}
			if n := asked() - before; n != c.asks {
				t.Errorf("%s: members were asked %d times, want %d", name, n, c.asks)
			}
		}
	})
}

// A member that does not answer, or is not ready, must not delay or hide the reasons of others.
func TestSilentMembersDoNotHideRefusals(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		all := []string{"m1", "m2", "m3", "m4", "m5"}
		placed := func(name string) *workv1alpha2.ResourceBinding {
			b := wants(name, 4, "1")
			b.Spec.Resource.APIVersion, b.Spec.Resource.Kind = "batch/v1", "CronJob"
			for _, m := range all {
				b.Spec.Clusters = append(b.Spec.Clusters, workv1alpha2.TargetCluster{Name: m, Replicas: 4})
				b.Status.AggregatedStatus = append(b.Status.AggregatedStatus, workv1alpha2.AggregatedStatusItem{ClusterName: m,
					Applied: true, Health: "Unknown", Status: &runtime.RawExtension{Raw: []byte(`{"replicas":1}`)}})
			}
			return b
		}
		web, other := placed("web"), placed("web-api")
		nodes := map[string][]string{}
		for _, m := range all {
			nodes[m] = []string{"8"}
		}
		w := measure(t, nodes, placed("web"), placed("web-api"))
		for m, s := range w.servers {
			s.Serve(membertest.Kind{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Event"}, Plural: "events",
				Namespaced: true})
			for _, of := range []string{"web-28", "web-api-29"} {
				s.Put(&corev1.Event{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Event"},
					ObjectMeta:     metav1.ObjectMeta{Namespace: "default", Name: of},
					InvolvedObject: corev1.ObjectReference{Kind: "Job", Namespace: "default", Name: of}, Type: "Warning",
					Reason: "FailedCreate", Message: "no quota for " + of, LastTimestamp: metav1.NewTime(w.clock.Now())})
			}
			if m < "m4" {
				s.Behave(func(_ http.ResponseWriter, r *http.Request) bool {
					if strings.HasSuffix(r.URL.Path, "/events") {
						<-r.Context().Done()
						return true
					}
					return false
				})
			}
		}
		w.ClusterStatus("m5", func(status *clusterv1alpha1.ClusterStatus) {
			meta.SetStatusCondition(&status.Conditions, metav1.Condition{Type: clusterv1alpha1.ClusterConditionReady,
				Status: metav1.ConditionFalse, Reason: "ClusterNotReachable"})
		})
		if !membertest.Becomes(func() bool { return membership.KnownNotReady(w.fleet.Snapshot().Cluster("m5")) }) {
			t.Fatal("m5 stays ready")
		}
		for _, b := range []*workv1alpha2.ResourceBinding{web, other} {
			began := time.Now()
			var lines []string
			for _, of := range w.fleet.AddRefusals(t.Context(), b, nil) {
				lines = append(lines, of.Name+" in "+of.Cluster+" "+of.Troubles[0].Message)
			}
			of := map[string]string{"web": "web-28", "web-api": "web-api-29"}[b.Spec.Resource.Name]
			want := b.Spec.Resource.Name + " in m4 no quota for " + of
			if got := strings.Join(lines, "; "); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
			if took := time.Since(began); took > 4*time.Second {
				t.Errorf("it took %s", took)
			}
		}
		for _, r := range w.servers["m5"].Requests("GET ") {
			if strings.Contains(r, "/events") {
				t.Errorf("the member that is not ready was asked %s", r)
			}
		}
	})
}
