package klusterlet

import (
	"math"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "github.com/argosy-io/argosy/api/ocm/cluster/v1"
)

const (
	// Intervals is the number of lease intervals without a renewal after which a klusterlet is silent.
	Intervals = 5
	// defaultInterval is the interval at which a klusterlet renews its Lease if its ManagedCluster has none.
	defaultInterval = 60 * time.Second
)

// grace is the time without a renewal after which the klusterlet of a cluster is silent.
func grace(mc *clusterv1.ManagedCluster) time.Duration {
	interval := time.Duration(mc.Spec.LeaseDurationSeconds) * time.Second
	if interval <= 0 {
		interval = defaultInterval
	}
	return Intervals * min(interval, math.MaxInt64/Intervals)
}

// Silent reports whether a klusterlet has stopped renewing its Lease. Otherwise, next is the time until it is silent
// without another renewal. since is when the hub saw the last renewal, by its own clock, and at the earliest when it
// began to lead: klusterlets cannot renew while the hub is down. A cluster without a Lease, nil, is silent at once if
// it is being deleted.
func Silent(mc *clusterv1.ManagedCluster, lease *coordinationv1.Lease, since,
	now time.Time) (silent bool, next time.Duration) {
	if lease == nil && mc.DeletionTimestamp != nil {
		return true, 0
	}
	next = max(0, since.Add(grace(mc)).Sub(now))
	return next == 0, next
}

// renewal returns the time at which a Lease was renewed; ok is false for none.
func renewal(lease *coordinationv1.Lease) (at time.Time, ok bool) {
	if lease == nil || lease.Spec.RenewTime == nil {
		return time.Time{}, false
	}
	return lease.Spec.RenewTime.Time, true
}

// LeaseOf returns the Lease of a cluster that was accepted now. Its klusterlet can update it, and not create it.
func LeaseOf(cluster string, now time.Time) *coordinationv1.Lease {
	holder, renewed := clusterv1.LeaseName, metav1.NewMicroTime(now)
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: clusterv1.LeaseName,
			Labels: map[string]string{clusterv1.ClusterNameLabel: cluster}},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &renewed},
	}
}

// Unavailability returns the condition ManagedClusterConditionAvailable of a cluster whose klusterlet is silent. The
// klusterlet replaces it when it renews its Lease again.
func Unavailability(now time.Time) metav1.Condition {
	return newCondition(clusterv1.ClusterAvailable, metav1.ConditionUnknown, clusterv1.ReasonLeaseStopped,
		"Registration agent stopped updating its lease.", now)
}

// Clock returns the condition ManagedClusterConditionClockSynced of a cluster whose Lease was renewed now. Its
// klusterlet wrote the time of the renewal. At any later time, a silent klusterlet would look like one with another
// time.
func Clock(mc *clusterv1.ManagedCluster, lease *coordinationv1.Lease, now time.Time) metav1.Condition {
	renewed, ok := renewal(lease)
	if ok && mc.Annotations[clusterv1.SkipClockAnnotation] != "true" && now.Sub(renewed).Abs() >= grace(mc) {
		return newCondition(clusterv1.ClockSynced, metav1.ConditionFalse, clusterv1.ReasonClockOutOfSync,
			"The clock of hub and agent is out of sync. This may cause the Unknown status and affect agent functionalities.", now)
	}
	return newCondition(clusterv1.ClockSynced, metav1.ConditionTrue, clusterv1.ReasonClockSynced,
		"The clock of the managed cluster is synced with the hub.", now)
}

// Taints returns the taints that a ManagedCluster should have: those of users in their order, and the one of the hub
// that follows from the condition ManagedClusterConditionAvailable. The taints of a cluster that is being deleted stay.
func Taints(mc *clusterv1.ManagedCluster, now time.Time) []clusterv1.Taint {
	if mc.DeletionTimestamp != nil {
		return mc.Spec.Taints
	}
	var key string
	switch available := meta.FindStatusCondition(mc.Status.Conditions, clusterv1.ClusterAvailable); {
	case available == nil || available.Status == metav1.ConditionUnknown:
		key = clusterv1.TaintUnreachable
	case available.Status == metav1.ConditionFalse:
		key = clusterv1.TaintUnavailable
	}
	var taints []clusterv1.Taint
	missing := key != ""
	for _, t := range mc.Spec.Taints {
		if isHubTaint(t.Key) && t.Effect == clusterv1.NoSelect {
			if t.Key != key || !missing {
				continue
			}
			missing = false
		}
		taints = append(taints, t)
	}
	if missing {
		taints = append(taints, clusterv1.Taint{Key: key, Effect: clusterv1.NoSelect,
			TimeAdded: metav1.NewTime(now).Rfc3339Copy()})
	}
	return taints
}
