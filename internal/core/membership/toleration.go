package membership

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/capacity"
)

// TolerationDefaults are the seconds for which a policy tolerates a cluster that is not ready, or unreachable, unless
// it says so itself.
type TolerationDefaults struct {
	NotReady    int64 `json:"notReadySeconds"`
	Unreachable int64 `json:"unreachableSeconds"`
}

// DefaultTolerations are those of a hub whose configuration does not say otherwise.
var DefaultTolerations = TolerationDefaults{NotReady: 300, Unreachable: 300}

// WithDefaults returns tolerations that also tolerate the NoExecute taints not-ready and unreachable, each for its
// default time. A taint that is tolerated already, for whatever time, gets no default. The given slice is not changed.
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

// OnlyDelaysFailover reports whether a toleration is for a NoExecute taint that follows from the condition Ready. The
// NoSchedule taint beside it decides on placements, so such a toleration never changes one.
func OnlyDelaysFailover(t corev1.Toleration) bool {
	return t.Effect == corev1.TaintEffectNoExecute &&
		(t.Key == clusterv1alpha1.TaintNotReady || t.Key == clusterv1alpha1.TaintUnreachable)
}

// ToleratedUntil returns the NoExecute taint that is tolerated for the shortest time, and when that time ends:
// tolerationSeconds after the taint's timeAdded, and at timeAdded itself if nothing tolerates it. limited is false if
// there is no NoExecute taint, or each is tolerated for ever. Of several tolerations for one taint the longest counts.
// A taint without timeAdded counts from now, until the cluster controller sets it. Add the defaults to the tolerations
// before.
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

// maxTolerationSeconds keeps a time.Duration from overflowing.
const maxTolerationSeconds = int64(1 << 33)

// longestToleration returns how long one of the tolerations tolerates the taint; ever means without end.
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
