package dispatch

import (
	"context"
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/interpret"
)

// tellRefused keeps the condition WorksWritten of a binding: why there is no Work as it should be, or none at all, for
// as long as trying again changes nothing. What has a condition of its own is left to that. There is none before there
// was such a failure.
func (r *reconciler) tellRefused(ctx context.Context, b workv1alpha2.Binding, errs ...error) error {
	var refused []string
	for _, err := range errs {
		if lasting(err) {
			refused = append(refused, err.Error())
		}
	}
	c := metav1.Condition{Type: workv1alpha2.WorksWritten, Status: metav1.ConditionTrue,
		Reason: workv1alpha2.ReasonWorksWritten, Message: "every cluster's Work is up to date"}
	if len(refused) > 0 {
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, workv1alpha2.ReasonWorksRefused, strings.Join(refused, "\n")
	}
	_, err := r.setCondition(ctx, b, c)
	return err
}

// lasting says whether a failure is neither the server's state of the moment nor told in another condition.
func lasting(err error) bool {
	switch {
	case err == nil, commit.Stale(err), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return false
	case apierrors.IsTooManyRequests(err), apierrors.IsServerTimeout(err), apierrors.IsTimeout(err),
		apierrors.IsServiceUnavailable(err):
		return false
	}
	return lossyOf(err) == nil && interpret.FaultOf(err, configv1alpha1.InterpreterOperationReviseReplica) == nil
}

// setCondition writes a condition of a binding if it changed; that all is well is said only where it was not before.
// The binding returned is the one to go on with.
func (r *reconciler) setCondition(ctx context.Context, b workv1alpha2.Binding,
	c metav1.Condition) (workv1alpha2.Binding, error) {
	if c.Status == metav1.ConditionTrue && meta.FindStatusCondition(b.BindingStatus().Conditions, c.Type) == nil {
		return b, nil
	}
	want := b.DeepCopyObject().(workv1alpha2.Binding)
	meta.SetStatusCondition(&want.BindingStatus().Conditions, c)
	if _, err := commit.Status(ctx, r.client, b, want); err != nil {
		return b, err
	}
	return want, nil
}
