package failover

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/membership"
	"github.com/argosy-io/argosy/internal/core/schedule"
)

// brakeWindow is the time within which clusters count as lost at about the same time.
const brakeWindow = 5 * time.Minute

// Both span several probes, so that clusters that are lost or recover together are seen together.
const (
	// lossDelay is how long a cluster is lost before workloads leave it, whatever they tolerate.
	lossDelay = 30 * time.Second
	// resumeAfter is how long paused clusters stay paused after a cluster became ready.
	resumeAfter = 2 * time.Minute
)

// brake returns the lost clusters that are not evicted, with the reason for people. If more than a share of the fleet,
// and at least two clusters, were lost within one window and are still lost, the network of the hub is the likely
// cause. When so many become ready that the share is no longer exceeded, the others stay paused until resume, because
// they may become ready too. resume is zero if no cluster waits for it.
func brake(s schedule.Snapshot, share float64, now time.Time) (paused map[string]string, resume time.Time) {
	type loss struct {
		cluster string
		at      time.Time
	}
	var losses []loss
	var ready time.Time // when the last cluster became ready
	for _, name := range s.Names() {
		c := s.Cluster(name)
		if at, ok := lostSince(c); ok {
			losses = append(losses, loss{name, at})
		}
		if r := membership.Readiness(c); membership.IsReady(c) && r.LastTransitionTime.After(ready) {
			ready = r.LastTransitionTime.Time
		}
	}
	slices.SortStableFunc(losses, func(a, b loss) int { return a.at.Compare(b.at) })
	paused = map[string]string{}
	for i := range losses {
		group := losses[i:]
		if end := slices.IndexFunc(group, func(l loss) bool { return l.at.Sub(losses[i].at) > brakeWindow }); end >= 0 {
			group = group[:end]
		}
		if len(group) < 2 || float64(len(group)) <= share*float64(s.Len()) {
			continue
		}
		for _, l := range group {
			paused[l.cluster] = fmt.Sprintf(
				"%d of %d clusters were lost within %s, so the network of the hub may be the cause: nothing is evicted from them. "+
					"Check that the hub reaches its clusters. If the clusters are lost indeed, add a NoExecute taint of your own to those that should be evicted.", len(group), s.Len(), brakeWindow)
		}
	}
	for _, l := range losses {
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
