package failover

import (
	"slices"
	"time"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
	"github.com/argosy-io/argosy/internal/core/schedule"
)

// Losses are the clusters that are lost.
type Losses struct {
	// Lost are the clusters that traffic should leave.
	Lost map[string]bool
	// Undecided are the clusters whose traffic should stay as it is for now.
	Undecided map[string]bool
	// Next is when that changes without an event; zero is never.
	Next time.Time
}

// Lost decides which clusters traffic should leave. A cluster is undecided before settled, because conditions may be
// out of date, and while it may become ready together with others.
//
// It uses what evictions use: membership.LostSince and the limit of lost clusters.
// Tolerations do not count: as in Kubernetes, the endpoints of a lost node are withdrawn at once and its pods are
// evicted later.
func Lost(o Options, clusters []*clusterv1alpha1.Cluster, settled, now time.Time) Losses {
	out := Losses{Lost: map[string]bool{}, Undecided: map[string]bool{}}
	if o.Off || !slices.ContainsFunc(clusters, func(c *clusterv1alpha1.Cluster) bool {
		_, lost := membership.LostSince(c)
		return lost
	}) {
		return out
	}
	wake := func(at time.Time) {
		if out.Next.IsZero() || at.Before(out.Next) {
			out.Next = at
		}
	}
	s := schedule.NewSnapshot(clusters)
	all := losses(s)
	paused := lostTogether(all, o.BrakeShare, s.Len())
	for _, l := range all {
		if settled.After(now) {
			out.Undecided[l.cluster] = true
			wake(settled)
		} else if earliest := l.at.Add(lossDelay); earliest.After(now) {
			wake(earliest)
		} else if paused[l.cluster] != "" {
			continue
		} else if until := recovery(s, l, all, o.BrakeShare); until.After(now) {
			out.Undecided[l.cluster] = true
			wake(until)
		} else {
			out.Lost[l.cluster] = true
		}
	}
	return out
}
