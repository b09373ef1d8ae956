package execute

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clocktesting "k8s.io/utils/clock/testing"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/test/kit/controllertest"
)

// A rollout that stands still becomes unhealthy at its deadline, also over a restart of the hub; that costs one write,
// and nothing does before.
func TestStalledRolloutIsUnhealthyAtItsDeadline(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		clock := clocktesting.NewFakePassiveClock(time.Unix(1_800_000_000, 0))
		w := newQuietWorld(t, clock, controllertest.Deployment)
		w.m1.SeparateStatus(controllertest.Deployment)
		u := manifest(controllertest.Deployment, "shop", "1")
		_ = unstructured.SetNestedField(u.Object, int64(5), "spec", "replicas")
		_ = unstructured.SetNestedField(u.Object, int64(60), "spec", "progressDeadlineSeconds")
		work := w.work(u)
		w.Quiet()

		status := func(ready int64) string {
			obj := w.m1.Object(controllertest.Deployment, "shop", "c")
			obj.Object["status"] = map[string]any{"observedGeneration": obj.GetGeneration(), "replicas": int64(5),
				"updatedReplicas": int64(5),
				"readyReplicas":   ready, "availableReplicas": ready}
			return w.m1.Put(obj).GetResourceVersion()
		}
		// look has the Work looked at after a while, and says how it is then, when it is looked at again, and how many writes
		// that took.
		look := func(after time.Duration, health workv1alpha1.ResourceHealth, again time.Duration, writes int) {
			t.Helper()
			clock.SetTime(clock.Now().Add(after))
			out := w.look(work)
			got := w.Quiet()
			if w.HasObject(work); execute.HealthOf(work) != health || out.after != again || len(got) != writes {
				t.Errorf("it is %s, looked at again after %s, with the writes %v; want %s, %s and %d writes",
					execute.HealthOf(work),
					out.after, got, health, again, writes)
			}
		}
		// seen waits until the member's watch has shown so many pods.
		seen := func(ready int64) {
			t.Helper()
			version := status(ready)
			m, err := w.members.Get("m1")
			if err != nil {
				t.Fatal(err)
			}
			w.Eventually("the watch shows it", func() string {
				obj, synced := m.Cached(controllertest.Deployment.GroupVersionKind.GroupVersion().WithResource("deployments"),
					"shop", "c")
				if !synced || obj == nil {
					return "not listed yet"
				}
				if obj.GetResourceVersion() != version {
					return "not shown yet"
				}
				return ""
			})
		}
		const unknown, unhealthy = workv1alpha1.ResourceUnknown, workv1alpha1.ResourceUnhealthy
		look(0, unknown, time.Minute, 1)
		seen(0)
		look(10*time.Second, unknown, time.Minute, 1) // that there is a status is progress
		look(20*time.Second, unknown, 40*time.Second, 0)
		seen(1)
		look(30*time.Second, unknown, time.Minute, 1) // a counter is, and is written anyway
		look(50*time.Second, unknown, 10*time.Second, 0)

		// The hub starts again.
		w.r = w.newReconciler(w, clock)
		look(0, unknown, 10*time.Second, 0)
		look(10*time.Second, unhealthy, 0, 1)
		look(time.Hour, unhealthy, 0, 0)
		if c := meta.FindStatusCondition(work.Status.Conditions, workv1alpha1.WorkProgressing); c == nil ||
			c.Status != metav1.ConditionFalse || c.Reason != interpret.ReasonDeadlineExceeded {
			t.Errorf("why is not said: %+v", c)
		}
		seen(2)
		look(0, unknown, time.Minute, 1)
		seen(5)
		look(0, workv1alpha1.ResourceHealthy, 0, 1)
		if len(work.Status.Conditions) != 2 {
			t.Errorf("of what is healthy more is said than that it is applied: %+v", work.Status.Conditions)
		}
		look(time.Hour, workv1alpha1.ResourceHealthy, 0, 0)
	})
}

// OpenKruise also reports a failure after an ordinary conflict, which it retries at once. Rollouts must not stop then.
func TestFailureCountsOnceItPersists(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		start := time.Unix(1_800_000_000, 0)
		for message, want := range map[string]workv1alpha1.ResourceHealth{
			`Operation cannot be fulfilled on pods "c-1": the object has been modified; please apply your changes to the latest version and try again`: workv1alpha1.ResourceUnknown,
			"admission webhook denied the request": workv1alpha1.ResourceUnhealthy,
		} {
			clock := clocktesting.NewFakePassiveClock(start)
			w := newQuietWorld(t, clock, controllertest.CloneSet)
			w.m1.SeparateStatus(controllertest.CloneSet)
			u := manifest(controllertest.CloneSet, "shop", "1")
			_ = unstructured.SetNestedField(u.Object, int64(3), "spec", "replicas")
			work := w.work(u)
			w.look(work)
			obj := w.m1.Object(controllertest.CloneSet, "shop", "c")
			obj.Object["status"] = map[string]any{"observedGeneration": obj.GetGeneration(), "replicas": int64(3),
				"updatedReplicas": int64(1), "conditions": []any{
					map[string]any{"type": "FailedUpdate", "status": "True", "message": message,
						"lastTransitionTime": start.UTC().Format(time.RFC3339)}}}
			w.m1.Put(obj)
			w.Eventually("the failure is seen, and not believed", func() string {
				w.look(work)
				if w.HasObject(work); len(work.Status.ManifestStatuses) != 1 || work.Status.ManifestStatuses[0].Status == nil ||
					!strings.Contains(string(work.Status.ManifestStatuses[0].Status.Raw), "FailedUpdate") {
					return "not seen yet"
				}
				return ""
			})
			if execute.HealthOf(work) != workv1alpha1.ResourceUnknown {
				t.Errorf("at once it is %s, for %q", execute.HealthOf(work), message)
			}
			clock.SetTime(start.Add(interpret.FailureSettle + time.Second))
			w.look(work)
			if w.HasObject(work); execute.HealthOf(work) != want {
				t.Errorf("after a while it is %s, want %s, for %q", execute.HealthOf(work), want, message)
			}
		}
	})
}
