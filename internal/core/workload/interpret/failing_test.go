package interpret_test

import (
	"encoding/json"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// failingSet is a CloneSet of four pods in a rollout, with a condition of its controller that reports a failure.
type failingSet struct {
	t   *testing.T
	u   *unstructured.Unstructured
	now time.Time
	was *metav1.Condition
	// reported is the status of the last look, for the next one; nil to use the clock only.
	reported *runtime.RawExtension
}

// markReported has the set's looks go by what was reported before; so far nothing was.
func (s *failingSet) markReported() { s.reported = &runtime.RawExtension{} }

func newFailingSet(t *testing.T, start time.Time) *failingSet {
	s := &failingSet{t: t, now: start, u: &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "spec": map[string]any{"replicas": int64(4)},
		"status": map[string]any{"replicas": int64(4)}}}}
	return s
}

func (s *failingSet) setFailure(kind, message string, at time.Time) {
	s.set([]any{map[string]any{"type": kind, "status": "True", "message": message,
		"lastTransitionTime": at.Format(time.RFC3339)}}, "status", "conditions")
}

func (s *failingSet) set(v any, path ...string) {
	s.t.Helper()
	if err := unstructured.SetNestedField(s.u.Object, v, path...); err != nil {
		s.t.Fatal(err)
	}
}

func (s *failingSet) look(after time.Duration, progressed bool, want interpret.Health, again time.Duration) {
	s.t.Helper()
	s.now = s.now.Add(after)
	var repeated map[string]bool
	if s.reported != nil {
		raw, err := json.Marshal(s.u.Object["status"])
		if err != nil {
			s.t.Fatal(err)
		}
		is := &runtime.RawExtension{Raw: raw}
		s.reported, repeated = is, interpret.Repeated(s.reported, is)
	}
	health, condition, next := interpret.Overdue(interpret.Progressing, s.u, s.was, progressed, repeated, s.now)
	if health != want || next != again {
		s.t.Errorf("it is %s and looked at again after %s, want %s and %s; %+v", health, next, want, again, condition)
	}
	s.was = condition
}

func TestFailureCountsOnlyIfItLasts(t *testing.T) {
	const second, settle, deadline = time.Second, interpret.FailureSettle, interpret.ProgressDeadline
	const conflict = `Operation cannot be fulfilled on pods "a": the object has been modified; please apply your changes to the latest version and try again`
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for story, report := range map[string]func(*failingSet){
		"a conflict that OpenKruise retries says nothing": func(s *failingSet) {
			s.setFailure("FailedUpdate", conflict, start)
			s.look(0, false, interpret.Progressing, deadline)
			s.look(2*settle, false, interpret.Progressing, deadline-2*settle)
		},
		"an error that is over when its condition goes": func(s *failingSet) {
			s.setFailure("FailedUpdate", "the webhook times out", start)
			s.look(0, false, interpret.Progressing, settle)
			s.set([]any{}, "status", "conditions")
			s.look(second, false, interpret.Progressing, deadline-second)
		},
		"an error after which pods are updated": func(s *failingSet) {
			s.setFailure("FailedUpdate", "the webhook times out", start)
			s.look(0, false, interpret.Progressing, settle)
			s.look(20*second, true, interpret.Progressing, deadline) // its condition was left over
			s.look(settle, false, interpret.Progressing, deadline-settle)
		},
		"an update that is refused": func(s *failingSet) {
			s.look(0, false, interpret.Progressing, deadline)
			s.setFailure("FailedUpdate", "denied by policy", start.Add(60*second))
			s.look(61*second, false, interpret.Progressing, settle-second)
			s.look(settle-second, false, interpret.Degraded, 0)
			if s.was.Reason != "FailedUpdate" || s.was.Message != "FailedUpdate for 30s without progress: denied by policy" {
				t.Errorf("why is not said: %+v", s.was)
			}
			s.look(second, false, interpret.Degraded, 0)
			s.set([]any{}, "status", "conditions") // and then let through
			s.look(second, false, interpret.Progressing, deadline-2*second)
		},
		"an update that is refused to a canary, which has no deadline": func(s *failingSet) {
			s.set(map[string]any{"rollingUpdate": map[string]any{"partition": int64(2)}}, "spec", "updateStrategy")
			s.set(int64(1), "status", "updatedReplicas")
			s.look(0, false, interpret.Progressing, 0)
			s.setFailure("FailedUpdate", "denied by policy", start)
			s.look(0, false, interpret.Progressing, settle)
			s.look(settle, false, interpret.Degraded, 0)
		},
		"pods that a quota forbids, though some of them were made": func(s *failingSet) {
			s.set(int64(2), "status", "replicas")
			s.setFailure("FailedScale", "exceeded quota", start)
			s.look(0, false, interpret.Progressing, settle)
			s.set(int64(3), "status", "replicas")
			s.look(10*second, true, interpret.Progressing, settle)
			s.look(settle, false, interpret.Degraded, 0)
			s.set(int64(4), "status", "replicas") // the quota is raised; the condition is left over
			s.look(second, true, interpret.Progressing, deadline)
		},
		"an update that is refused while its owner has paused it": func(s *failingSet) {
			s.set(map[string]any{"rollingUpdate": map[string]any{"paused": true}}, "spec", "updateStrategy")
			s.setFailure("FailedUpdate", "denied by policy", start)
			s.look(0, false, interpret.Progressing, 0)
		},
		"pods that a quota forbids to one that is paused": func(s *failingSet) {
			s.set(map[string]any{"rollingUpdate": map[string]any{"paused": true}}, "spec", "updateStrategy")
			s.set(int64(2), "status", "replicas")
			s.setFailure("FailedScale", "exceeded quota", start)
			s.look(0, false, interpret.Progressing, settle)
			s.look(settle, false, interpret.Degraded, 0)
		},
		"a conflict of an update, while pods are missing": func(s *failingSet) {
			s.set(int64(3), "status", "replicas")
			s.setFailure("FailedUpdate", conflict, start)
			s.look(0, false, interpret.Progressing, deadline)
			s.look(2*settle, false, interpret.Progressing, deadline-2*settle)
		},
		"a conflict of a set that waits for its first pod to be ready": func(s *failingSet) {
			s.set("StatefulSet", "kind")
			s.set(int64(1), "status", "replicas")
			s.setFailure("FailedCreatePod", conflict, start)
			s.look(0, false, interpret.Progressing, deadline)
			s.look(2*settle, false, interpret.Progressing, deadline-2*settle)
			s.set(int64(1), "status", "readyReplicas") // so that nothing but its controller is waited for
			s.look(second, true, interpret.Progressing, settle)
			s.look(settle, false, interpret.Degraded, 0)
		},
		"pods that a quota forbids to the subsets of a UnitedDeployment, which has no number itself": func(s *failingSet) {
			s.set("UnitedDeployment", "kind")
			s.set(map[string]any{"topology": map[string]any{"subsets": []any{map[string]any{"replicas": int64(2)},
				map[string]any{"replicas": int64(2)}}}}, "spec")
			s.set(int64(3), "status", "replicas")
			s.setFailure("SubsetFailure", "exceeded quota", start.Add(-time.Hour))
			s.look(0, false, interpret.Progressing, settle)
			s.look(settle, false, interpret.Degraded, 0)
		},
		"an update that is refused where the clock is an hour behind, or the news come late": func(s *failingSet) {
			s.markReported()
			s.look(0, false, interpret.Progressing, deadline)
			s.setFailure("FailedUpdate", "denied by policy", start.Add(-time.Hour))
			s.look(second, true, interpret.Progressing, settle)
			s.look(settle-second, false, interpret.Progressing, second)
			s.look(second, false, interpret.Degraded, 0)
		},
		"an update that is refused where the clock is an hour ahead": func(s *failingSet) {
			s.markReported()
			s.setFailure("FailedUpdate", "denied by policy", start.Add(time.Hour))
			s.look(0, false, interpret.Progressing, settle)
			s.look(settle, false, interpret.Degraded, 0)
		},
		"an error that is over, where the clock is an hour ahead": func(s *failingSet) {
			s.markReported()
			s.setFailure("FailedUpdate", "the webhook times out", start.Add(time.Hour))
			s.look(0, false, interpret.Progressing, settle)
			s.look(second, true, interpret.Progressing, deadline)
			s.look(2*settle, false, interpret.Progressing, deadline-2*settle)
		},
		"a canary beside an error that may be over, which has a deadline then": func(s *failingSet) {
			s.markReported()
			s.set(map[string]any{"rollingUpdate": map[string]any{"partition": int64(2)}}, "spec", "updateStrategy")
			s.set(int64(1), "status", "updatedReplicas")
			s.setFailure("FailedUpdate", "denied by policy", start)
			s.look(0, false, interpret.Progressing, settle)
			s.look(second, true, interpret.Progressing, deadline)
			s.look(deadline, false, interpret.Degraded, 0)
		},
		"a condition of a deadline that comes sooner": func(s *failingSet) {
			s.set(int64(10), "spec", "progressDeadlineSeconds")
			s.setFailure("FailedUpdate", "denied by policy", start)
			s.look(0, false, interpret.Progressing, 10*second)
			s.look(10*second, false, interpret.Degraded, 0)
			if s.was.Reason != interpret.ReasonDeadlineExceeded {
				t.Errorf("the reason is %s", s.was.Reason)
			}
		},
	} {
		t.Run(story, func(t *testing.T) { report(newFailingSet(t, start)) })
	}
	for kind, condition := range map[string]string{"StatefulSet": "FailedCreatePod", "UnitedDeployment": "SubsetFailure"} {
		t.Run(kind, func(t *testing.T) {
			s := newFailingSet(t, start)
			s.set(kind, "kind")
			s.set(int64(3), "status", "replicas")
			s.set(int64(3), "status", "readyReplicas")
			s.setFailure(condition, "exceeded quota", start)
			s.look(0, false, interpret.Progressing, settle)
			s.look(settle, false, interpret.Degraded, 0)
		})
	}
}

// A quota that refuses pods makes a workload unhealthy if it lacks replicas, and not if only its next pods are refused.
func TestReplicaFailureCountsIfReplicasAreMissing(t *testing.T) {
	const deadline, settle = interpret.ProgressDeadline, interpret.FailureSettle
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, kind := range [][2]string{{"apps/v1", "Deployment"}, {"argoproj.io/v1alpha1", "Rollout"}} {
		of := func(replicas int64) *failingSet {
			s := newFailingSet(t, start)
			s.u.Object["apiVersion"], s.u.Object["kind"] = kind[0], kind[1]
			s.set(replicas, "status", "replicas")
			s.setFailure("ReplicaFailure", "exceeded quota: tenant", start)
			return s
		}
		lacking := of(2)
		lacking.look(0, false, interpret.Progressing, settle)
		lacking.look(settle, false, interpret.Degraded, 0)
		if lacking.was.Reason != "ReplicaFailure" {
			t.Errorf("%s: the condition is %+v", kind[1], lacking.was)
		}
		lacking.set([]any{}, "status", "conditions")
		lacking.look(time.Second, true, interpret.Progressing, deadline)
		rolling := of(4)
		rolling.look(0, false, interpret.Progressing, deadline)
		rolling.look(2*settle, false, interpret.Progressing, deadline-2*settle)
	}
}

func TestRefusalIsTheSentenceOfTheController(t *testing.T) {
	for _, c := range []struct{ of, kind, want string }{
		{"Deployment.apps", "ReplicaFailure", "no no"}, {"ReplicaSet.apps", "ReplicaFailure", "no no"},
		{"CloneSet.apps.kruise.io", "FailedScale", " no"}, {"StatefulSet.apps.kruise.io", "FailedCreatePod", " no"},
		{"UnitedDeployment.apps.kruise.io", "SubsetFailure", " no"}, {"CloneSet.apps.kruise.io", "FailedUpdate", " "},
		{"CloneSet.apps.kruise.io", "Available", " "}, {"Deployment.apps", "FailedScale", " "},
	} {
		kind, want, of := c.kind, c.want, schema.ParseGroupKind(c.of)
		status := map[string]any{"conditions": []any{map[string]any{"type": kind, "status": "True", "message": "no"}}}
		if got := interpret.Refusal(of, status, false) + " " + interpret.Refusal(of, status, true); got != want {
			t.Errorf("%s: %q, want %q", kind, got, want)
		}
		status["conditions"].([]any)[0].(map[string]any)["status"] = "False"
		if got := interpret.Refusal(of, status, true); got != "" {
			t.Errorf("%s is False: %q", kind, got)
		}
	}
}
