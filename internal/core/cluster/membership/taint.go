package membership

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
)

// IsReadinessTaint reports whether the hub manages the taint according to the condition Ready, so that users cannot
// change it.
func IsReadinessTaint(t corev1.Taint) bool {
	return (t.Key == clusterv1alpha1.TaintNotReady || t.Key == clusterv1alpha1.TaintUnreachable) &&
		(t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute)
}

// IsLossTaint reports whether the hub sets the taint on clusters that are not ready, so that workloads and traffic
// leave them.
func IsLossTaint(t corev1.Taint) bool {
	return t.Effect == corev1.TaintEffectNoExecute && IsReadinessTaint(t)
}

// Taints returns the cluster's taints updated for the condition Ready, and whether they changed. False means not-ready
// and Unknown means unreachable, each with NoSchedule and NoExecute. The time of the NoExecute taint is the start of
// the outage; it stays when unreachable becomes not-ready. Other taints are not changed.
func Taints(taints []corev1.Taint, ready *metav1.Condition, now time.Time) ([]corev1.Taint, bool) {
	if ready == nil {
		return taints, false
	}
	var key string
	switch ready.Status {
	case metav1.ConditionFalse:
		key = clusterv1alpha1.TaintNotReady
	case metav1.ConditionUnknown:
		key = clusterv1alpha1.TaintUnreachable
	}
	missing := map[corev1.TaintEffect]bool{corev1.TaintEffectNoSchedule: key != "", corev1.TaintEffectNoExecute: key != ""}
	since := metav1.NewTime(now).Rfc3339Copy()
	var want []corev1.Taint
	changed := false
	for _, t := range taints {
		if IsReadinessTaint(t) {
			if t.Effect == corev1.TaintEffectNoExecute && !t.TimeAdded.IsZero() && t.TimeAdded.Time.Before(since.Time) {
				since = *t.TimeAdded
			}
			if t.Key != key {
				changed = true
				continue
			}
			missing[t.Effect] = false
		}
		want = append(want, t)
	}
	for _, effect := range []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute} {
		if missing[effect] {
			want = append(want, corev1.Taint{Key: key, Effect: effect})
			changed = true
		}
	}
	for i := range want {
		if t := &want[i]; IsReadinessTaint(*t) && t.Effect == corev1.TaintEffectNoExecute && t.TimeAdded.IsZero() {
			t.TimeAdded, changed = &since, true
		}
	}
	return want, changed
}
