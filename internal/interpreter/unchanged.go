package interpreter

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/interpret/webhook"
)

// EventChangedNothing: an interpreter webhook returned no patch where one was needed. The message has the effect.
//
//reference:event Warning on template
const EventChangedNothing = "InterpreterChangedNothing"

// answered is a question that was answered without a change.
type answered struct {
	hook      string
	operation configv1alpha1.InterpreterOperation
	uid       types.UID
}

// unchanged tells the template of an answer without a patch where one was due. That a member owns nothing, and that
// replicas and status are what they should be, is said without one, too.
func (i *Interpreter) unchanged(ctx context.Context, u webhook.Unchanged) {
	if i.options.Events == nil {
		return
	}
	text := ""
	switch u.Operation {
	case configv1alpha1.InterpreterOperationReviseReplica:
		if n, _, workload, err := i.Replicas(ctx, u.Object); err == nil && workload && n != u.Replicas {
			// Without the share, which is another one in each cluster: what is told twice in the same words is told once.
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
	if i.told.News(answered{u.Hook.String(), u.Operation, u.Object.GetUID()}, text) {
		i.options.Events.Eventf(u.Object, corev1.EventTypeWarning, EventChangedNothing,
			"Interpreter webhook %s returned no patch for %s, so %s", u.Hook, u.Operation, text)
	}
}
