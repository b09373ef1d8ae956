package script

import (
	"errors"
	"fmt"
	"strings"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
)

// Reason is what kind of fault a script has.
type Reason string

// The reasons.
const (
	// Syntax: the script is no Lua, or is too long.
	Syntax Reason = "Syntax"
	// NoFunction: the script defines no function that could answer the operation.
	NoFunction Reason = "NoFunction"
	// Runtime: a line failed, such as one that reads a field of nil, or error() was called.
	Runtime Reason = "Runtime"
	// BadResult: the function returned something else than the operation needs.
	BadResult Reason = "BadResult"
	// BadInput: what the script was to be given is no JSON.
	BadInput Reason = "BadInput"
	// DeadlineExceeded: the script took longer than Deadline.
	DeadlineExceeded Reason = "DeadlineExceeded"
	// MemoryExceeded: the script held more than MemoryLimit.
	MemoryExceeded Reason = "MemoryExceeded"
	// TooDeep: functions called each other deeper than DepthLimit.
	TooDeep Reason = "TooDeep"
	// Canceled: the caller's context ended; no fault of the script.
	Canceled Reason = "Canceled"
)

// Error is what went wrong with one script, for the one who wrote it.
type Error struct {
	// Customization is the name of the customization that the script is of.
	Customization string
	// Operation that the script answers.
	Operation configv1alpha1.InterpreterOperation
	// Line in the script, from 1; 0 when it is no single one.
	Line int
	// Reason is for programs, Message for people: what was found, what was expected, what to do.
	Reason  Reason
	Message string
	// Cause is the error of the context for Canceled; else nil.
	Cause error
}

// Error names the customization, the operation, the line and what is wrong.
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

// Unwrap gives the cause, so that a canceled context is known by errors.Is.
func (e *Error) Unwrap() error { return e.Cause }

// Errors are all faults of scripts in err, in order: of one that was returned by a hook and wrapped since, or of those
// that Hooks joined.
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
