package membership

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
)

func TestLossAndSilenceAreTwoQuestions(t *testing.T) {
	at := metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	taint := func(key string, effect corev1.TaintEffect, added *metav1.Time) []corev1.Taint {
		return []corev1.Taint{{Key: key, Effect: effect, TimeAdded: added}}
	}
	gone := taint(clusterv1alpha1.TaintNotReady, corev1.TaintEffectNoExecute, &at)
	for name, c := range map[string]struct {
		status                metav1.ConditionStatus // empty: no condition
		reason                string
		taints                []corev1.Taint
		ready, silent, isLost bool
	}{
		"it is ready":                   {"True", "ClusterReady", nil, true, false, false},
		"it is new":                     {"", "", nil, false, false, false},
		"it has just stopped to answer": {"False", "ClusterNotReachable", nil, false, true, false},
		"it does not answer":            {"False", "ClusterNotReachable", gone, false, true, true},
		"its agent is silent": {"Unknown", "ClusterStatusUnknown",
			taint(clusterv1alpha1.TaintUnreachable, corev1.TaintEffectNoExecute, &at), false, true, true},
		"it answers again, and its taint is about to be removed": {"True", "ClusterReady", gone, true, false, false},
		"the taint has no time yet": {"False", "ClusterNotReachable",
			taint(clusterv1alpha1.TaintNotReady, corev1.TaintEffectNoExecute, nil), false, true, false},
		"only new workloads are kept out": {"False", "ClusterNotReachable",
			taint(clusterv1alpha1.TaintNotReady, corev1.TaintEffectNoSchedule, nil), false, true, false},
		"another hub owns it":                     {"False", "HeldByAnotherHub", gone, false, true, false},
		"its credentials were deleted on the hub": {"False", "StatusCollectionFailed", gone, false, true, false},
		"a user drains it": {"True", "ClusterReady",
			taint("maintenance", corev1.TaintEffectNoExecute, &at), true, false, false},
	} {
		cluster := &clusterv1alpha1.Cluster{Spec: clusterv1alpha1.ClusterSpec{Taints: c.taints}}
		if c.status != "" {
			cluster.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: c.status,
				Reason: c.reason}}
		}
		since, isLost := LostSince(cluster)
		if IsReady(cluster) != c.ready || KnownNotReady(cluster) != c.silent || (OutageOf(cluster) != nil) != c.silent ||
			isLost != c.isLost || isLost != since.Equal(at.Time) {
			t.Errorf("%s: ready: %t, silent: %t, lost: %t since %v", name, IsReady(cluster), KnownNotReady(cluster), isLost,
				since)
		}
	}
	if _, isLost := LostSince(nil); isLost || !KnownNotReady(nil) || OutageOf(nil) != nil {
		t.Error("a missing cluster reports nothing, has no outage and is not lost")
	}
}
