package membership

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
)

func TestSilentAgentsMakeTheirClustersUnknown(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	ready := func(status metav1.ConditionStatus, reason string) []metav1.Condition {
		return []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: status, Reason: reason}}
	}
	up, lease := ready("True", "ClusterReady"), 40*time.Second
	for story, tc := range map[string]struct {
		conditions []metav1.Condition
		unchanged  time.Duration
		duration   time.Duration
		want       string // reason; empty if the condition stays
		recheck    time.Duration
	}{
		"it reported just now":              {up, 10 * time.Second, lease, "", 30 * time.Second},
		"it is silent":                      {up, lease, lease, "ClusterStatusUnknown", 0},
		"it deleted its Lease":              {up, lease, 0, "ClusterStatusUnknown", 0},
		"its Lease is long":                 {up, time.Minute, 5 * time.Minute, "", 4 * time.Minute},
		"its Lease is too long":             {up, time.Hour, 24 * time.Hour, "ClusterStatusUnknown", 0},
		"it is silent, and was not ready":   {ready("False", "ClusterNotReady"), time.Hour, 0, "ClusterStatusUnknown", 0},
		"its silence is known":              {ready("Unknown", "ClusterStatusUnknown"), time.Hour, 0, "", 0},
		"it is new":                         {nil, 50 * time.Second, 0, "", 10 * time.Second},
		"it never reported":                 {nil, time.Minute, 0, "ClusterStatusNeverUpdated", 0},
		"that it never reported is known":   {ready("Unknown", "ClusterStatusNeverUpdated"), time.Hour, 0, "", 0},
		"it renews, and its status is late": {ready("Unknown", "ClusterStatusUnknown"), time.Second, 0, "", 39 * time.Second},
	} {
		got, recheck := AgentReadiness(&clusterv1alpha1.Cluster{Status: clusterv1alpha1.ClusterStatus{
			Conditions: tc.conditions}}, tc.unchanged, tc.duration, now)
		reason := ""
		if got != nil {
			reason = got.Reason
			if got.Status != metav1.ConditionUnknown || !got.LastTransitionTime.Time.Equal(now) {
				t.Errorf("%s: %+v", story, got)
			}
		}
		if reason != tc.want || recheck != tc.recheck {
			t.Errorf("%s: reason %q after %v, want %q after %v", story, reason, recheck, tc.want, tc.recheck)
		}
	}
}
