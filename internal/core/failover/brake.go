package failover

import (
	"fmt"
	"slices"
	"time"

	"github.com/argosy-io/argosy/internal/core/schedule"
)

// brakeWindow is the time within which clusters count as lost at about the same time.
const brakeWindow = 5 * time.Minute

// brake are the lost clusters that are not evicted, because more than a share of the fleet, and at least two clusters, were lost
// within one window and are still lost: then the network of the hub is the likely cause. The value is the reason for people.
func brake(s schedule.Snapshot, share float64) map[string]string {
	type loss struct {
		cluster string
		at      time.Time
	}
	var losses []loss
	for _, name := range s.Names() {
		var at time.Time
		for _, t := range s.Cluster(name).Spec.Taints {
			if isLossTaint(t) && t.TimeAdded != nil && (at.IsZero() || t.TimeAdded.Time.Before(at)) {
				at = t.TimeAdded.Time
			}
		}
		if !at.IsZero() {
			losses = append(losses, loss{name, at})
		}
	}
	slices.SortStableFunc(losses, func(a, b loss) int { return a.at.Compare(b.at) })
	paused := map[string]string{}
	for i := range losses {
		group := losses[i:]
		if end := slices.IndexFunc(group, func(l loss) bool { return l.at.Sub(losses[i].at) > brakeWindow }); end >= 0 {
			group = group[:end]
		}
		if len(group) < 2 || float64(len(group)) <= share*float64(s.Len()) {
			continue
		}
		for _, l := range group {
			paused[l.cluster] = fmt.Sprintf("%d of %d clusters were lost within %s, so the network of the hub may be the cause: nothing is evicted from them. "+
				"Check that the hub reaches its clusters. If the clusters are lost indeed, add a NoExecute taint of your own to those that should be evicted.", len(group), s.Len(), brakeWindow)
		}
	}
	return paused
}
