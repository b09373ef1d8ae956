package script

import (
	"errors"
	"fmt"
	"strings"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
)

// Reason is the kind of a fault.
type Reason string

// The reasons.
const (
	// Syntax: the script is not valid Lua or too long.
	Syntax Reason = "Syntax"
	// NoFunction: the script has no function for the operation.
	NoFunction Reason = "NoFunction"
	// Runtime: a line failed, for example by indexing nil, or error() was called.
	Runtime Reason = "Runtime"
	// BadResult: the function returned an unsuitable value.
	BadResult Reason = "BadResult"
	// BadInput: the input of the script is not valid JSON.
	BadInput Reason = "BadInput"
	// DeadlineExceeded: the script ran longer than Deadline.
	DeadlineExceeded Reason = "DeadlineExceeded"
	// MemoryExceeded: the script used more than MemoryLimit.
	MemoryExceeded Reason = "MemoryExceeded"
	// TooDeep: more than DepthLimit nested calls.
	TooDeep Reason = "TooDeep"
	// Canceled: the caller's context ended; not a fault of the script.
	Canceled Reason = "Canceled"
)

// Error is a fault of a script, described for its author.
type Error struct {
	// Customization is the name of the script's customization.
	Customization string
	// Operation of the script.
	Operation configv1alpha1.InterpreterOperation
	// Line in the script, from 1; 0 if unknown.
	Line int
	// Reason is for programs. Message is for users: what happened, what was expected, what to do.
	Reason  Reason
	Message string
	// Cause is the context's error for Canceled; otherwise nil.
	Cause error
}

// Error returns customization, operation, line and message.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "customization %q, %s", e.Customization, e.Operation)
	if e.Line > 0 {
		fmt.Fprintf(&b, ", line %d", e.Line)
	}
	b.WriteString(": ")
	b.WriteString(e.Message)
	return b.String()
}

// Unwrap returns the cause, so that errors.Is finds a canceled context.
func (e *Error) Unwrap() error { return e.Cause }

// Errors returns all script errors in err, wrapped or joined, in order.
func Errors(err error) []*Error {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []*Error
		for _, e := range joined.Unwrap() {
			all = append(all, Errors(e)...)
		}
		return all
	}
	if e, ok := err.(*Error); ok {
		return []*Error{e}
	}
	return Errors(errors.Unwrap(err))
}
