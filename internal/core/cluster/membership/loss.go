package membership

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
)

// LostSince decides that a cluster is lost, so that traffic and workloads leave it: the hub has set a NoExecute taint
// for its condition Ready, the condition is still not true, and its workloads may have stopped. since is the time of
// the taint. A cluster is not lost if another hub owns it, or if this hub cannot read its status, for example because
// the Secret with its credentials was deleted.
//
// KnownNotReady, IsReady and OutageOf answer the other question: whether the hub gets current reports.
func LostSince(c *clusterv1alpha1.Cluster) (since time.Time, lost bool) {
	if c == nil || IsReady(c) || ManagedByAnother(c) || statusUnread(c) {
		return since, false
	}
	for _, t := range c.Spec.Taints {
		if IsLossTaint(t) && t.TimeAdded != nil && (!lost || t.TimeAdded.Time.Before(since)) {
			since, lost = t.TimeAdded.Time, true
		}
	}
	return since, lost
}

// statusUnread reports whether this hub cannot read the status of a cluster, for a reason on the hub.
func statusUnread(c *clusterv1alpha1.Cluster) bool {
	ready := Readiness(c)
	return ready != nil && ready.Status == metav1.ConditionFalse &&
		ready.Reason == clusterv1alpha1.ReasonStatusCollectionFailed
}
