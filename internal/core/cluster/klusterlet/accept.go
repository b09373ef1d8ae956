package klusterlet

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "github.com/argosy-io/argosy/api/ocm/cluster/v1"
	"github.com/argosy-io/argosy/internal/core/object/text"
)

// Messages of the condition HubAcceptedManagedCluster. Tools know them.
const (
	MessageAccepted = "Accepted by hub cluster admin"
	MessageDenied   = "Denied by hub cluster admin"
)

// Acceptance returns the condition HubAcceptedManagedCluster after the permissions of a klusterlet were written. failed
// is why they were not, nil if they were.
func Acceptance(mc *clusterv1.ManagedCluster, failed error, now time.Time) metav1.Condition {
	status, reason, message := metav1.ConditionTrue, clusterv1.ReasonAccepted, MessageAccepted
	switch {
	case failed != nil:
		status, reason, message = metav1.ConditionFalse, clusterv1.ReasonError, failed.Error()
	case !mc.Spec.HubAcceptsClient:
		status, reason, message = metav1.ConditionFalse, clusterv1.ReasonDenied, MessageDenied
	}
	return newCondition(clusterv1.HubAccepted, status, reason, message, now)
}

// newCondition returns a condition that changed now. Callers keep the time of one with the same status.
func newCondition(kind string, status metav1.ConditionStatus, reason, message string, now time.Time) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: text.Message(message),
		LastTransitionTime: metav1.NewTime(now).Rfc3339Copy()}
}
