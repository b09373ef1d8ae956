package membership

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestSeenExplainsTheProblem(t *testing.T) {
	for name, tc := range map[string]struct {
		probe  Probe
		status metav1.ConditionStatus
		reason string
		texts  []string
	}{
		"a healthy member": {Probe{Code: 200, Body: "ok"}, metav1.ConditionTrue, "ClusterReady",
			[]string{"ready to accept workloads"}},
		"no answer": {Probe{Err: "dial tcp 10.0.0.1:6443: connection refused"}, metav1.ConditionFalse,
			"ClusterNotReachable", []string{"cluster is not reachable", "connection refused", "spec.apiEndpoint"}},
		"a member that is slow": {Probe{Err: "no answer in time", Slow: true}, metav1.ConditionFalse,
			"ClusterNotReachable", []string{"cluster is not responding: no answer in time", "overloaded", "spec.apiEndpoint"}},
		"refused credentials": {Probe{Code: 401}, metav1.ConditionFalse, "ClusterNotReady",
			[]string{"401 Unauthorized", "spec.secretRef"}},
		"credentials without rights": {Probe{Code: 403}, metav1.ConditionFalse, "ClusterNotReady",
			[]string{"403 Forbidden", "join it again"}},
		"a member that starts": {Probe{Code: 500,
			Body: "[+]ping ok\n[-]etcd failed: reason withheld\n[-]poststarthook/x failed: not finished\nreadyz check failed"},
			metav1.ConditionFalse, "ClusterNotReady", []string{"responded without ok (500)", "etcd failed", "poststarthook/x"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := Seen(tc.probe)
			if got.Type != "Ready" || got.Status != tc.status || got.Reason != tc.reason {
				t.Errorf("got %s=%s (%s), want Ready=%s (%s)", got.Type, got.Status, got.Reason, tc.status, tc.reason)
			}
			for _, text := range tc.texts {
				if !strings.Contains(got.Message, text) {
					t.Errorf("message %q does not contain %q", got.Message, text)
				}
			}
			if strings.Contains(got.Message, "ping") {
				t.Errorf("message %q names a check that passed", got.Message)
			}
		})
	}
}

// TestReadyFollowsOnlyLastingAnswers plays answers against the condition they should leave, second by second.
func TestReadyFollowsOnlyLastingAnswers(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	up, down := Seen(Probe{Code: 200}), Seen(Probe{Err: "refused"})
	refused := Seen(Probe{Code: 401})
	type step struct {
		at      int // seconds
		seen    metav1.Condition
		status  metav1.ConditionStatus
		reason  string
		recheck int // seconds
		began   int // seconds of the last transition
	}
	for name, steps := range map[string][]step{
		"the first answer holds at once": {
			{0, up, "True", "ClusterReady", 0, 0},
		},
		"a first failure holds at once too": {
			{0, down, "False", "ClusterNotReachable", 0, 0},
		},
		"a failure counts when it lasted": {
			{0, up, "True", "ClusterReady", 0, 0},
			{10, down, "True", "ClusterReady", 30, 0},
			{20, down, "True", "ClusterReady", 20, 0},
			{40, down, "False", "ClusterNotReachable", 0, 40},
			{50, down, "False", "ClusterNotReachable", 0, 40},
		},
		"a short failure leaves no trace, and the next one starts anew": {
			{0, up, "True", "ClusterReady", 0, 0},
			{10, down, "True", "ClusterReady", 30, 0},
			{30, up, "True", "ClusterReady", 0, 0},
			{45, down, "True", "ClusterReady", 30, 0},
		},
		"recovery counts when it lasted": {
			{0, down, "False", "ClusterNotReachable", 0, 0},
			{10, up, "False", "ClusterNotReachable", 20, 0},
			{30, up, "True", "ClusterReady", 0, 30},
		},
		"a member that another hub holds is not ready at once, and ready at once when it is ours again": {
			{0, up, "True", "ClusterReady", 0, 0},
			{10, NotOwner("b"), "False", "HeldByAnotherHub", 0, 10},
			{20, up, "True", "ClusterReady", 0, 20},
		},
		"another trouble shows at once, and the transition stays where it was": {
			{0, down, "False", "ClusterNotReachable", 0, 0},
			{10, refused, "False", "ClusterNotReady", 0, 0},
		},
	} {
		t.Run(name, func(t *testing.T) {
			thresholds := Thresholds{Success: 20 * time.Second, Failure: 30 * time.Second}
			var current *metav1.Condition
			var streak Streak
			for _, s := range steps {
				now := start.Add(time.Duration(s.at) * time.Second)
				streak = streak.Next(s.seen.Status, now)
				got, recheck := Ready(current, s.seen, streak, thresholds, now)
				if got.Status != s.status || got.Reason != s.reason {
					t.Fatalf("after %d s: Ready=%s (%s), want %s (%s)", s.at, got.Status, got.Reason, s.status, s.reason)
				}
				if want := time.Duration(s.recheck) * time.Second; recheck != want {
					t.Errorf("after %d s: look again in %v, want %v", s.at, recheck, want)
				}
				if want := start.Add(time.Duration(s.began) * time.Second); !got.LastTransitionTime.Time.Equal(want) {
					t.Errorf("after %d s: last transition %v, want %v", s.at, got.LastTransitionTime, want)
				}
				current = &got
			}
		})
	}
}
