package autoscale

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	autoscalingv1alpha1 "github.com/argosy-io/argosy/api/autoscaling/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/test/kit/controllertest"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

// schedule returns a CronFederatedHPA for the workload.
func (w *world) schedule(rules ...autoscalingv1alpha1.CronFederatedHPARule) *autoscalingv1alpha1.CronFederatedHPA {
	return &autoscalingv1alpha1.CronFederatedHPA{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "hours"},
		Spec: autoscalingv1alpha1.CronFederatedHPASpec{ScaleTargetRef: w.scaler("web").Spec.ScaleTargetRef, Rules: rules}}
}

func rule(name, schedule string, replicas int32) autoscalingv1alpha1.CronFederatedHPARule {
	zone := "UTC"
	return autoscalingv1alpha1.CronFederatedHPARule{Name: name, Schedule: schedule, TargetReplicas: &replicas,
		TimeZone: &zone}
}

// executed waits for the history, as "morning 1+0 next 08:00": successes and failures.
func (w *world) executed(want string) {
	w.t.Helper()
	w.Eventually("status is "+want, func() string {
		c := w.schedule()
		if !w.HasObject(c) {
			return "it is gone"
		}
		var all []string
		for _, h := range c.Status.ExecutionHistories {
			next := "never"
			if h.NextExecutionTime != nil {
				next = h.NextExecutionTime.UTC().Format("15:04")
			}
			all = append(all, fmt.Sprintf("%s %d+%d next %s", h.RuleName, len(h.SuccessfulExecutions), len(h.FailedExecutions),
				next))
		}
		if got := strings.Join(all, ", "); got != want {
			return "got " + got
		}
		return ""
	})
}

func (w *world) setClock(clock string) {
	t, err := time.ParseInLocation("2006-01-02 15:04", "2027-01-11 "+clock, time.UTC)
	if err != nil {
		w.t.Fatal(err)
	}
	w.clock.SetTime(t)
}

func TestRuleScalesOnceAtItsTime(t *testing.T) {
	for _, kind := range []string{"Deployment", "CloneSet"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			controllertest.Run(t, func(t *testing.T) {
				of := controllertest.Deployment
				if kind == "CloneSet" {
					of = controllertest.CloneSet
				}
				w := newWorld(t, of)
				w.Make(w.schedule(rule("morning", "0 8 * * *", 9), rule("evening", "0 18 * * *", 3)))
				w.executed("morning 0+0 next 08:00, evening 0+0 next 18:00")
				if n := w.replicas(); n != 4 {
					t.Fatalf("before its time it has %d replicas", n)
				}
				w.setClock("08:00")
				w.becomes(9)
				w.executed("morning 1+0 next 08:00, evening 0+0 next 18:00")
				// What somebody sets afterwards stays.
				w.Quiet()
				w.stop()
				w.setClock("08:30")
				w.run()
				if wrote := w.Quiet(); len(wrote) > 0 {
					t.Errorf("it has been executed, and after a restart it writes %v", wrote)
				}
				// The hub is down at six.
				w.stop()
				w.setClock("19:00")
				w.run()
				w.becomes(3)
				w.executed("morning 1+0 next 08:00, evening 1+0 next 18:00")
			})
		})
	}
}

func TestSuspendedRuleDoesNothing(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t, controllertest.Deployment)
		off := rule("off", "0 8 * * *", 9)
		yes := true
		off.Suspend = &yes
		w.Make(w.schedule(off, rule("on", "1 8 * * *", 5)))
		w.executed("off 0+0 next never, on 0+0 next 08:01")
		w.setClock("08:00")
		w.setClock("08:01")
		w.becomes(5)
		w.executed("off 0+0 next never, on 1+0 next 08:01")
	})
}

func TestFailedRuleIsReportedAndNotRetried(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t, controllertest.Deployment)
		c := w.schedule(rule("morning", "0 8 * * *", 9))
		c.Spec.ScaleTargetRef.Name = "missing"
		w.Make(c)
		w.executed("morning 0+0 next 08:00")
		w.setClock("08:00")
		w.executed("morning 0+1 next 08:00")
		w.HasObject(c)
		const why = "there is no Deployment.apps missing in namespace shop on the hub"
		if got := c.Status.ExecutionHistories[0].FailedExecutions[0].Message; got != why {
			t.Errorf("the message is %q, want %q", got, why)
		}
		w.expectEvent("CronFederatedHPA ScaleFailed: Rule morning of 2027-01-11T08:00:00Z: " + why)
		w.Quiet()
		w.setClock("08:05")
		if wrote := w.Quiet(); len(wrote) > 0 {
			t.Errorf("it writes %v", wrote)
		}
	})
}

func TestTemporaryFailureIsRetriedForAWhile(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t, controllertest.Deployment)
		var broken atomic.Bool
		broken.Store(true)
		tried := make(chan struct{}, 1000)
		w.Hub.Server.Behave(func(rw http.ResponseWriter, r *http.Request) bool {
			if !broken.Load() || r.Method != http.MethodPut || !strings.HasSuffix(r.URL.Path, "/deployments/web") {
				return false
			}
			tried <- struct{}{}
			rw.Header().Set("Content-Type", "application/json")
			rw.WriteHeader(http.StatusInternalServerError)
			_, _ = io.WriteString(rw, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "InternalError", "code": 500, "message": "failed calling webhook: no answer"}`)
			return true
		})
		w.Make(w.schedule(rule("morning", "0 8 * * *", 9), rule("noon", "0 12 * * *", 7)))
		w.executed("morning 0+0 next 08:00, noon 0+0 next 12:00")
		w.setClock("08:00")
		<-tried
		<-tried
		w.executed("morning 0+0 next 08:00, noon 0+0 next 12:00")
		broken.Store(false)
		w.becomes(9)
		w.executed("morning 1+0 next 08:00, noon 0+0 next 12:00")

		// Not for ever; after a start from then on.
		broken.Store(true)
		w.stop()
		w.setClock("13:00")
		w.run()
		<-tried
		<-tried
		w.executed("morning 1+0 next 08:00, noon 0+0 next 12:00")
		w.setClock("13:06")
		w.executed("morning 1+0 next 08:00, noon 0+1 next 12:00")
		w.expectEvent("CronFederatedHPA ScaleFailed: Rule noon of 2027-01-11T12:00:00Z: ")
		if n := w.replicas(); n != 9 {
			t.Errorf("it has %d replicas", n)
		}
	})
}

func TestRuleSetsBoundsOfFederatedHPA(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t, controllertest.Deployment)
		w.Make(w.scaler("web"))
		w.expectConditions("web", "ScalingActive=True")
		c := w.schedule(rule("morning", "0 8 * * *", 0))
		lowest, highest := int32(6), int32(30)
		c.Spec.ScaleTargetRef = autoscalingv2.CrossVersionObjectReference{APIVersion: "autoscaling.karmada.io/v1alpha1",
			Kind: "FederatedHPA", Name: "web"}
		c.Spec.Rules[0].TargetReplicas, c.Spec.Rules[0].TargetMinReplicas, c.Spec.Rules[0].TargetMaxReplicas = nil, &lowest,
			&highest
		w.Make(c)
		w.executed("morning 0+0 next 08:00")
		w.setClock("08:00")
		w.becomes(6)
		w.executed("morning 1+0 next 08:00")
		f := w.scaler("web")
		if w.HasObject(f); *f.Spec.MinReplicas != 6 || f.Spec.MaxReplicas != 30 {
			t.Errorf("the bounds are %d and %d", *f.Spec.MinReplicas, f.Spec.MaxReplicas)
		}
		w.expectEvent("FederatedHPA SuccessfulRescale: New size: 6; reason: there are fewer replicas than minReplicas")
	})
}

func TestRulesRunWhileClusterIsLost(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t, controllertest.Deployment)
		c := w.schedule(rule("morning", "0 8 * * *", 9))
		w.Make(c)
		bounds := w.schedule(rule("noon", "0 12 * * *", 0))
		lowest, highest := int32(10), int32(30)
		bounds.Name, bounds.Spec.ScaleTargetRef = "bounds", autoscalingv2.CrossVersionObjectReference{
			APIVersion: "autoscaling.karmada.io/v1alpha1", Kind: "FederatedHPA", Name: "web"}
		bounds.Spec.Rules[0].TargetReplicas, bounds.Spec.Rules[0].TargetMinReplicas,
			bounds.Spec.Rules[0].TargetMaxReplicas = nil, &lowest, &highest
		w.Make(bounds)
		w.executed("morning 0+0 next 08:00")

		w.members["b"].Down(true)
		w.Ready("b", metav1.ConditionFalse, "ClusterNotReachable")
		w.setClock("08:00")
		w.becomes(9)
		w.executed("morning 1+0 next 08:00")

		// The workload leaves it, and a FederatedHPA gets other bounds.
		w.moves(nil)
		w.Make(w.scaler("web"))
		w.expectConditions("web", "MetricsComplete=False/ClustersUnknown")
		w.setClock("12:00")
		w.becomes(10)
	})
}

// The author of a FederatedHPA chooses the target but may have rights only in this namespace.
func TestTargetIsAlwaysInTheSameNamespace(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t, controllertest.Deployment)
		tools := membertest.Kind{GroupVersionKind: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Tool"},
			Plural: "tools"}
		w.Hub.Server.Serve(tools)
		put := func(kind membertest.Kind, namespace, name string) func() int64 {
			u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"replicas": int64(4)}}}
			u.SetGroupVersionKind(kind.GroupVersionKind)
			u.SetNamespace(namespace)
			u.SetName(name)
			w.Hub.Server.Put(u)
			return func() int64 {
				n, _, _ := unstructured.NestedInt64(w.Hub.Server.Object(kind, namespace, name).Object, "spec", "replicas")
				return n
			}
		}
		vault, tool := put(controllertest.Deployment, "bank", "vault"), put(tools, "", "tool")
		for _, ref := range []autoscalingv2.CrossVersionObjectReference{
			{APIVersion: "apps/v1", Kind: "Deployment", Name: "vault"},
			{APIVersion: "apps/v1", Kind: "Deployment", Name: "../../bank/deployments/vault"},
			{APIVersion: "apps/v1", Kind: "Deployment", Name: "bank/vault"},
			{APIVersion: "example.com/v1", Kind: "Tool", Name: "tool"},
		} {
			c := w.schedule(rule("morning", "0 8 * * *", 9))
			c.Name, c.Spec.ScaleTargetRef = fmt.Sprintf("c%d", len(ref.Name)), ref
			w.Make(c)
			f := w.scaler(fmt.Sprintf("f%d", len(ref.Name)))
			f.Spec.ScaleTargetRef = ref
			w.Make(f)
			w.expectConditions(f.Name, fmt.Sprintf(
				"AbleToScale=False/FailedGetScaleTargetRef: there is no %s %s in namespace shop on the hub",
				match.GroupKind(ref.APIVersion, ref.Kind), ref.Name))
		}
		each := func(what string, ok func(autoscalingv1alpha1.ExecutionHistory) bool) {
			t.Helper()
			for _, name := range []string{"c5", "c28", "c10", "c4"} {
				w.Eventually(name+" "+what, func() string {
					c := w.schedule()
					c.Name = name
					if !w.HasObject(c) || len(c.Status.ExecutionHistories) != 1 || !ok(c.Status.ExecutionHistories[0]) {
						return fmt.Sprintf("%+v, %q", c.Status, w.Events())
					}
					return ""
				})
			}
		}
		each("knows its time", func(h autoscalingv1alpha1.ExecutionHistory) bool { return h.NextExecutionTime != nil })
		w.setClock("09:00") // what may pass is tried again no more
		each("has failed", func(h autoscalingv1alpha1.ExecutionHistory) bool {
			return len(h.FailedExecutions) == 1 && len(h.SuccessfulExecutions) == 0
		})
		if vault() != 4 || tool() != 4 {
			t.Errorf("what is elsewhere was scaled to %d and %d", vault(), tool())
		}
	})
}
