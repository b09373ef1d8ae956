package interpret

import (
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/text"
)

// ReasonFault: no interpreter could answer the operation that the condition is named after, such as InterpretHealth,
// InterpretStatus or Retain. The message has the error. A binding has such conditions too, such as AggregateStatus.
//
//reference:reason name of the operation of Work
const ReasonFault = "InterpreterFailed"

// Error says which operation could not be answered, for which object, and why.
type Error struct {
	Operation configv1alpha1.InterpreterOperation
	// About is what was being done to which object.
	About string
	Cause error
}

func (e *Error) Error() string { return e.About + ": " + e.Cause.Error() }

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Cause }

// FaultOf is the fault that err comes from, if it comes from one of these operations; nil if not.
func FaultOf(err error, of ...configv1alpha1.InterpreterOperation) *Error {
	var e *Error
	if errors.As(err, &e) && slices.Contains(of, e.Operation) {
		return e
	}
	return nil
}

// SetFault says in conditions that an operation is not answered, under the operation's own name: False while that is
// so, and nothing when all is well. fault is nil when the operation was answered, or not asked; now dates the condition
// when it is new.
func SetFault(conditions *[]metav1.Condition, operation configv1alpha1.InterpreterOperation, fault error,
	now metav1.Time) (changed bool) {
	if fault == nil {
		return meta.RemoveStatusCondition(conditions, string(operation))
	}
	return meta.SetStatusCondition(conditions, metav1.Condition{Type: string(operation), Status: metav1.ConditionFalse,
		Reason:  ReasonFault,
		Message: text.Cut(fault.Error(), messageLimit), LastTransitionTime: now})
}

// messageLimit is the most bytes of an error that a condition says.
const messageLimit = 4 << 10
