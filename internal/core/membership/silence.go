package membership

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
)

// The texts that errors and conditions use for a member that does not answer. Code that needs the reason reads the
// condition Failure of the Work.
const (
	Unreachable = "cluster is not reachable"
	// NoAnswer is the cause where a request was sent and nothing came back.
	NoAnswer = "no answer in time"
)

// Outage is a time in which a cluster is not ready, so that what it reported before is stale.
type Outage struct {
	Since metav1.Time
	// Reason is that of the condition Ready.
	Reason string
}

// OutageOf is the outage of a cluster now; nil while there is none. A cluster that is not there has none: that it is
// missing says nothing of what runs in it.
func OutageOf(c *clusterv1alpha1.Cluster) *Outage {
	if c == nil || !Silent(c) {
		return nil
	}
	ready := Readiness(c)
	return &Outage{Since: ready.LastTransitionTime, Reason: ready.Reason}
}

// String is "has not been ready since 2026-01-01T12:00:00Z (ClusterNotReachable)", the same for as long as the outage
// lasts, so that saying it costs one write.
func (o *Outage) String() string {
	return "has not been ready since " + o.Since.UTC().Format(time.RFC3339) + " (" + o.Reason + ")"
}
