package failover

import (
	"time"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/membership"
	"github.com/argosy-io/argosy/internal/core/schedule"
)

// Lost returns the clusters that traffic should leave, and when that changes without an event; zero is never.
//
// It decides by what evictions go by: the condition Ready, the NoExecute taint with its time, and the brake.
// Tolerations do not count: as in Kubernetes, the endpoints of a lost node are withdrawn at once and its pods are
// evicted later.
func Lost(o Options, clusters []*clusterv1alpha1.Cluster, now time.Time) (lost map[string]bool, next time.Time) {
	lost = map[string]bool{}
	if o.Off {
		return lost, next
	}
	wake := func(at time.Time) {
		if !at.IsZero() && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	var braked map[string]string
	for _, c := range clusters {
		at, tainted := lostSince(c)
		if !tainted || membership.IsReady(c) {
			continue
		}
		if earliest := at.Add(lossDelay); earliest.After(now) {
			wake(earliest)
			continue
		}
		if braked == nil {
			var resume time.Time
			braked, resume = brake(schedule.NewSnapshot(clusters), o.BrakeShare, now)
			wake(resume)
		}
		if _, ok := braked[c.Name]; !ok {
			lost[c.Name] = true
		}
	}
	return lost, next
}

// lostSince returns the time of the loss taint of a cluster; ok is false without one that has a time.
func lostSince(c *clusterv1alpha1.Cluster) (at time.Time, ok bool) {
	for _, t := range c.Spec.Taints {
		if membership.IsLossTaint(t) && t.TimeAdded != nil && (!ok || t.TimeAdded.Time.Before(at)) {
			at, ok = t.TimeAdded.Time, true
		}
	}
	return at, ok
}
