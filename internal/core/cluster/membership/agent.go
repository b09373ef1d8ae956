package membership

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
)

// NameLimit is the maximum length of the name of a cluster. It leaves space for names that are derived from it.
const NameLimit = 48

const (
	// AgentLeaseDuration is the duration of the Lease that the agent of a cluster in Pull mode renews on the hub.
	AgentLeaseDuration = 40 * time.Second
	// AgentRenewPeriod is the interval between two renewals.
	AgentRenewPeriod = AgentLeaseDuration / 4
	// agentLeaseMax bounds the duration of a Lease of its own that an agent may choose.
	agentLeaseMax = time.Hour
	// agentStart limits the time until the first report of the agent of a new cluster.
	agentStart = 60 * time.Second
)

// Pulls reports whether an agent acts in the cluster instead of the hub.
func Pulls(c *clusterv1alpha1.Cluster) bool { return c.Spec.SyncMode == clusterv1alpha1.Pull }

// AgentReadiness returns the condition Ready of a cluster in Pull mode if its agent is silent; nil if the condition
// stays. unchanged is the time for which the hub has seen no renewal of the Lease, by its own clock, and duration the
// duration in the Lease; zero without one. recheck is the time until an agent without another renewal is silent; zero
// for never.
func AgentReadiness(c *clusterv1alpha1.Cluster, unchanged, duration time.Duration,
	now time.Time) (ready *metav1.Condition, recheck time.Duration) {
	current := Readiness(c)
	limit := max(AgentLeaseDuration, min(duration, agentLeaseMax))
	silent := metav1.Condition{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionUnknown,
		Reason: clusterv1alpha1.ReasonClusterStatusUnknown,
		Message: "the agent of the cluster has stopped reporting: check that the agent runs in the cluster " +
			"and reaches the hub, and read its log"}
	if current == nil || current.Reason == clusterv1alpha1.ReasonClusterStatusNeverUpdated {
		limit, silent.Reason = agentStart, clusterv1alpha1.ReasonClusterStatusNeverUpdated
		silent.Message = "the agent of the cluster has never reported: check that the agent runs in the cluster " +
			"and reaches the hub, and read its log"
	}
	if left := limit - unchanged; left > 0 {
		return nil, left
	}
	if current != nil && current.Status == silent.Status && current.Reason == silent.Reason {
		return nil, 0
	}
	silent = withTransitionTime(current, silent, now)
	return &silent, 0
}
