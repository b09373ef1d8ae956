package interpret

import (
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/object/text"
)

// ReasonFault: no interpreter could answer the operation that the condition is named after, such as InterpretHealth,
// InterpretStatus or Retain. The message has the error. A binding has such conditions too, such as AggregateStatus.
//
//reference:reason name of the operation of Work
const ReasonFault = "InterpreterFailed"

// Error is a failed operation on an object.
type Error struct {
	Operation configv1alpha1.InterpreterOperation
	// About is the action and the object.
	About string
	Cause error
}

func (e *Error) Error() string { return e.About + ": " + e.Cause.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// FaultOf returns the Error in err if it is of one of these operations; otherwise nil.
func FaultOf(err error, of ...configv1alpha1.InterpreterOperation) *Error {
	var e *Error
	if errors.As(err, &e) && slices.Contains(of, e.Operation) {
		return e
	}
	return nil
}

// SetFault sets or removes the condition of a failed operation, whose type is the name of the operation and whose
// status is False. fault is nil if the operation succeeded or was not called. now is the time of a new condition.
func SetFault(conditions *[]metav1.Condition, operation configv1alpha1.InterpreterOperation, fault error,
	now metav1.Time) (changed bool) {
	if fault == nil {
		return meta.RemoveStatusCondition(conditions, string(operation))
	}
	return meta.SetStatusCondition(conditions, metav1.Condition{Type: string(operation), Status: metav1.ConditionFalse,
		Reason:  ReasonFault,
		Message: text.Cut(fault.Error(), messageLimit), LastTransitionTime: now})
}

// messageLimit is the maximum size of an error in a condition in bytes. A webhook or a script chooses its error, and a
// large one would make the binding too large for etcd.
const messageLimit = 4 << 10
