package execute

import (
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/member"
)

// conflictError means that the object in the member is not the Work's, and the hub does not change it.
type conflictError struct{ action execute.Action }

func (e *conflictError) Error() string { return e.action.Reason }

// hubError is an error of the hub's own, such as a Secret that it cannot read: the member was not asked.
type hubError struct{ error }

func (e *hubError) Unwrap() error { return e.error }

// failureOf returns the reason and the message of the condition Failure for an error.
//
// A lack of rights and a denial by built-in admission have the same code, reason and details. Only a webhook that
// denies a request gives no details.
func failureOf(err error) (reason, message string) {
	if reason, cause, silent := member.Silence(err); silent {
		return reason, cause
	}
	var conflict *conflictError
	var status apierrors.APIStatus
	answered := errors.As(err, &status)
	switch {
	case errors.As(err, new(*hubError)):
		reason = workv1alpha1.ReasonNotSent
	case errors.As(err, new(*awayError)), errors.Is(err, member.ErrNotOwner):
		reason = workv1alpha1.ReasonClusterNotReady
	case errors.As(err, &conflict) && conflict.action.Unmanaged:
		reason = workv1alpha1.ReasonObjectUnmanaged
	case conflict != nil:
		reason = workv1alpha1.ReasonObjectOfAnother
	case errors.Is(err, member.ErrKindNotServed):
		reason = workv1alpha1.ReasonKindNotServed
	case errors.As(err, new(*refusal)):
		reason = workv1alpha1.ReasonRejected
	case answered && commit.NamespaceMissing(err):
		reason = workv1alpha1.ReasonNamespaceMissing
	case apierrors.IsUnauthorized(err):
		reason = workv1alpha1.ReasonUnauthorized
	case apierrors.IsForbidden(err) && status.Status().Details != nil:
		reason = workv1alpha1.ReasonForbidden
	case answered && isTransient(status.Status().Code):
		reason = workv1alpha1.ReasonServerError
	case answered:
		reason = workv1alpha1.ReasonRejected
	default:
		reason = workv1alpha1.ReasonNotSent
	}
	return reason, err.Error()
}

// isTransient reports whether the same request may succeed later: the server or a webhook is overloaded or broken, or
// the object was changed meanwhile.
func isTransient(code int32) bool {
	return code == http.StatusConflict || code == http.StatusTooManyRequests || code >= http.StatusInternalServerError
}
