package membership

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/cluster/capacity"
)

// TolerationDefaults are the default toleration seconds of a policy for clusters that are not ready or unreachable.
type TolerationDefaults struct {
	NotReady    int64 `json:"notReadySeconds"`
	Unreachable int64 `json:"unreachableSeconds"`
}

// DefaultTolerations are the built-in defaults.
var DefaultTolerations = TolerationDefaults{NotReady: 300, Unreachable: 300}

// WithDefaults adds tolerations for the NoExecute taints not-ready and unreachable, unless they are tolerated already.
// It does not modify its argument.
func (d TolerationDefaults) WithDefaults(tolerations []corev1.Toleration) []corev1.Toleration {
	all := slices.Clip(tolerations)
	for _, of := range []struct {
		key     string
		seconds int64
	}{{clusterv1alpha1.TaintNotReady, d.NotReady}, {clusterv1alpha1.TaintUnreachable, d.Unreachable}} {
		if !capacity.Tolerates(tolerations, corev1.Taint{Key: of.key, Effect: corev1.TaintEffectNoExecute}) {
			all = append(all, corev1.Toleration{Key: of.key, Operator: corev1.TolerationOpExists,
				Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &of.seconds})
		}
	}
	return all
}

// OnlyDelaysFailover reports whether a toleration is for a NoExecute readiness taint. It never changes a placement,
// because the NoSchedule taint decides that.
func OnlyDelaysFailover(t corev1.Toleration) bool {
	return t.Effect == corev1.TaintEffectNoExecute &&
		(t.Key == clusterv1alpha1.TaintNotReady || t.Key == clusterv1alpha1.TaintUnreachable)
}

// ToleratedUntil returns the NoExecute taint whose toleration ends first, and that time: timeAdded plus
// tolerationSeconds, or timeAdded without a toleration. limited is false if no NoExecute taint has an end. The longest
// toleration of a taint counts. Without timeAdded the time starts now. Call WithDefaults on the tolerations before.
func ToleratedUntil(taints []corev1.Taint, tolerations []corev1.Toleration,
	now time.Time) (first corev1.Taint, until time.Time, limited bool) {
	for _, t := range taints {
		if t.Effect != corev1.TaintEffectNoExecute {
			continue
		}
		long, ever := longestToleration(t, tolerations)
		if ever {
			continue
		}
		end := now.Add(long)
		if !t.TimeAdded.IsZero() {
			end = t.TimeAdded.Add(long)
		}
		if !limited || end.Before(until) {
			first, until, limited = t, end, true
		}
	}
	return first, until, limited
}

// maxTolerationSeconds prevents an overflow of time.Duration.
const maxTolerationSeconds = int64(1 << 33)

// longestToleration returns how long the tolerations tolerate the taint. ever is true if there is no end.
func longestToleration(t corev1.Taint, tolerations []corev1.Toleration) (longest time.Duration, ever bool) {
	for i := range tolerations {
		if !capacity.Tolerates(tolerations[i:i+1], t) {
			continue
		}
		seconds := tolerations[i].TolerationSeconds
		if seconds == nil {
			return 0, true
		}
		longest = max(longest, time.Duration(min(*seconds, maxTolerationSeconds))*time.Second)
	}
	return longest, false
}
