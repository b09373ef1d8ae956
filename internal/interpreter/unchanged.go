package interpreter

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/webhook"
)

// EventChangedNothing: an interpreter webhook returned no patch where one was needed. The message has the effect.
//
//reference:event Warning on template
const EventChangedNothing = "InterpreterChangedNothing"

// answered identifies a call that returned no patch.
type answered struct {
	hook      string
	operation configv1alpha1.InterpreterOperation
	uid       types.UID
}

// unchanged records an event on the template if an empty patch leaves it wrong. An empty patch is also a valid answer:
// a member may have no status or already the right number of replicas.
func (i *Interpreter) unchanged(ctx context.Context, u webhook.Unchanged) {
	if i.options.Events == nil {
		return
	}
	text := ""
	switch u.Operation {
	case configv1alpha1.InterpreterOperationReviseReplica:
		if n, _, workload, err := i.Replicas(ctx, u.Object); err == nil && workload && n != u.Replicas {
			// The text omits the share, which differs per cluster, so that the event is recorded once.
			text = fmt.Sprintf("every cluster gets all %d replicas instead of its share: set the replicas of the object to request.replicas in the patch", n)
		}
	case configv1alpha1.InterpreterOperationAggregateStatus:
		reported := 0
		for _, item := range u.Items {
			if item.Status != nil {
				reported++
			}
		}
		if status, _ := u.Object.Object["status"].(map[string]any); len(status) == 0 && reported > 0 {
			text = fmt.Sprintf("the status stays empty although %d of %d clusters reported one: set /status from request.aggregatedStatus in the patch", reported, len(u.Items))
		}
	}
	if text == "" {
		return
	}
	if i.recorded.IsNew(answered{u.Hook.String(), u.Operation, u.Object.GetUID()}, text) {
		i.options.Events.Eventf(u.Object, corev1.EventTypeWarning, EventChangedNothing,
			"Interpreter webhook %s returned no patch for %s, so %s", u.Hook, u.Operation, text)
	}
}
