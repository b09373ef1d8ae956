package failover

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
	"github.com/argosy-io/argosy/internal/core/schedule"
)

// lossWindow is the time within which clusters count as lost at about the same time.
const lossWindow = 5 * time.Minute

// Both span several probes, so that clusters that are lost or recover together are seen together.
const (
	// lossDelay is the time from the loss of a cluster until workloads may leave it, whatever they tolerate.
	lossDelay = 30 * time.Second
	// resumeAfter is the time for which paused clusters stay paused after a cluster became ready.
	resumeAfter = 2 * time.Minute
)

// loss is a lost cluster, see membership.LostSince, with the time of its taint.
type loss struct {
	cluster string
	at      time.Time
}

// losses returns the lost clusters, the first lost first.
func losses(s schedule.Snapshot) (all []loss) {
	for _, name := range s.Names() {
		if at, ok := membership.LostSince(s.Cluster(name)); ok {
			all = append(all, loss{name, at})
		}
	}
	slices.SortStableFunc(all, func(a, b loss) int { return a.at.Compare(b.at) })
	return all
}

// tooMany reports whether so many clusters were lost at about the same time that the network of the hub is the likely
// cause: at least two, and more than a share of the fleet.
func tooMany(lost int, share float64, fleet int) bool {
	return lost >= 2 && float64(lost) > share*float64(fleet)
}

// pausedClusters returns the lost clusters that are not evicted, with the reason for people: those of which too many
// were lost within one window and are still lost. When so many become ready that the share is no longer exceeded, the
// others stay paused until resume, because they may become ready too. resume is zero if no cluster waits for it.
func pausedClusters(s schedule.Snapshot, share float64, now time.Time) (paused map[string]string, resume time.Time) {
	var ready time.Time // when the last cluster became ready
	for _, name := range s.Names() {
		if at := readySince(s.Cluster(name)); at.After(ready) {
			ready = at
		}
	}
	lost := losses(s)
	paused = lostTogether(lost, share, s.Len())
	for _, l := range lost {
		conditions := s.Cluster(l.cluster).Status.Conditions
		was := meta.IsStatusConditionTrue(conditions, clusterv1alpha1.ClusterConditionFailoverPaused)
		if paused[l.cluster] == "" && was && ready.Add(resumeAfter).After(now) {
			resume = ready.Add(resumeAfter)
			paused[l.cluster] = fmt.Sprintf("other clusters became ready, so this one may become ready too: "+
				"nothing is evicted from it before %s", resume.UTC().Format(time.RFC3339))
		}
	}
	return paused, resume
}

// lostTogether returns the clusters of which too many were lost within one window, with the reason for people. lost is
// sorted by time.
func lostTogether(lost []loss, share float64, fleet int) map[string]string {
	paused, largest := map[string]string{}, map[string]int{}
	for i := range lost {
		group := lost[i:]
		if end := slices.IndexFunc(group, func(l loss) bool { return l.at.Sub(lost[i].at) > lossWindow }); end >= 0 {
			group = group[:end]
		}
		if !tooMany(len(group), share, fleet) {
			continue
		}
		for _, l := range group {
			if largest[l.cluster] >= len(group) {
				continue // a group that begins earlier has more
			}
			largest[l.cluster] = len(group)
			paused[l.cluster] = fmt.Sprintf(
				"%d of %d clusters were lost within %s, so the network of the hub may be the cause: nothing is evicted from them. "+
					"Check that the hub reaches its clusters. If they are really lost, add another NoExecute taint to the clusters that should be evicted.", len(group), fleet, lossWindow)
		}
	}
	return paused
}

// recovery returns until when a lost cluster may become ready with others; zero if that is not likely. Clusters that
// became ready after it was lost count as lost together with it, because their taints are gone. It reads no condition
// FailoverPaused: only clusters that workloads would leave have it.
func recovery(s schedule.Snapshot, l loss, lost []loss, share float64) (until time.Time) {
	together := 0
	for _, other := range lost {
		if l.at.Sub(other.at).Abs() <= lossWindow {
			together++
		}
	}
	for _, name := range s.Names() {
		c := s.Cluster(name)
		at := readySince(c)
		if !at.After(l.at) {
			continue
		}
		together++
		if at.Add(resumeAfter).After(until) {
			until = at.Add(resumeAfter)
		}
	}
	if !tooMany(together, share, s.Len()) {
		return time.Time{}
	}
	return until
}

// readySince returns when a cluster became ready; zero if it is not.
func readySince(c *clusterv1alpha1.Cluster) time.Time {
	if !membership.IsReady(c) {
		return time.Time{}
	}
	return membership.Readiness(c).LastTransitionTime.Time
}

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
