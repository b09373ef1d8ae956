package membership

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
)

// Texts for a member that does not respond. Code that needs the reason reads the condition Failure of the Work.
const (
	Unreachable = "cluster is not reachable"
	// NoAnswer is the cause if a request got no response.
	NoAnswer = "no answer in time"
)

// Outage is a period in which a cluster is not ready, so that its last report is outdated.
type Outage struct {
	Since metav1.Time
	// Reason is the reason of the condition Ready.
	Reason string
}

// OutageOf returns the current outage of a cluster, or nil. A missing cluster has none, because its workloads may still
// run.
func OutageOf(c *clusterv1alpha1.Cluster) *Outage {
	if c == nil || !KnownNotReady(c) {
		return nil
	}
	ready := Readiness(c)
	return &Outage{Since: ready.LastTransitionTime, Reason: ready.Reason}
}

// String is constant during an outage, "has not been ready since 2026-01-01T12:00:00Z (ClusterNotReachable)", so that
// the message is written once.
func (o *Outage) String() string {
	return "has not been ready since " + o.Since.UTC().Format(time.RFC3339) + " (" + o.Reason + ")"
}
