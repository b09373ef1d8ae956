// Package script answers the interpreter's operations with Lua: it compiles scripts once, runs each call in a sandbox
// of its own within bounds, and converts objects without loss. Whose scripts apply to which object is decided by the
// tiers above.
package script

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/interpret"
)

// What a call of a script is bounded by.
const (
	// Deadline is how long a call may take.
	Deadline = time.Second
	// MemoryLimit is how much a call may hold at a time, in bytes, about: what the process holds for it may be half as
	// much again.
	MemoryLimit = 64 << 20
	// DepthLimit is how many calls may be under way in one another.
	DepthLimit = 200
	// SizeLimit is how long a script may be, in bytes. It bounds what compiling costs, in time and in stack: the compiler
	// recurses as deep as a script nests, and takes the square of a chain's length. The worst script of that size takes
	// about the second that a request may take; others milliseconds.
	SizeLimit = 64 << 10
)

// Program is a script that was compiled for one operation of one customization. It is never changed, and may be called
// by many at once.
type Program struct {
	customization string
	operation     configv1alpha1.InterpreterOperation
	compiled      *compiled
	schema        *Schema
	bounds        bounds
}

// Function is a function that a script defines for all to see.
type Function struct {
	Name   string
	Params []string
	// Line where it is defined, from 1.
	Line int
}

// Inputs are the arguments of an operation; those that it does not take are ignored. None is changed.
type Inputs struct {
	// Object is the template, or the desired object of Retain.
	Object *unstructured.Unstructured
	// Observed is the member's object: of Retain, InterpretStatus and InterpretHealth.
	Observed *unstructured.Unstructured
	// Replicas are the desired ones of ReviseReplica.
	Replicas int32
	// Items are the members' statuses for AggregateStatus.
	Items []workv1alpha2.AggregatedStatusItem
}

// Outputs are the results of an operation; those that it does not have are zero. They share no memory with the inputs,
// except that Object is the input itself where the script left it alone.
type Outputs struct {
	// Replicas and Requirements are of InterpretReplica; Requirements is nil when the script gave none.
	Replicas     int32
	Requirements *workv1alpha2.ReplicaRequirements
	// Components are of InterpretComponent, sorted by name.
	Components []workv1alpha2.Component
	// Object is of ReviseReplica, Retain and AggregateStatus.
	Object *unstructured.Unstructured
	// Status is of InterpretStatus, and of AggregateStatus what the script said of it; nil when there is none.
	Status map[string]any
	// Health is of InterpretHealth.
	Health interpret.Health
	// Dependencies are of InterpretDependency, sorted, each once.
	Dependencies []configv1alpha1.DependentObjectReference

	// Printed are the lines that the script printed, the first hundred.
	Printed []string
	// Warnings say what was accepted though it is not as the contract of the operation has it.
	Warnings []string
}

// Compile parses and compiles a script for an operation; scripts of the same content are compiled once.
// customization is only for messages. The error is an *Error: Syntax or NoFunction.
func Compile(customization string, operation configv1alpha1.InterpreterOperation, source string,
	schema *Schema) (*Program, error) {
	p := &Program{customization: customization, operation: operation, schema: schema,
		bounds: bounds{Deadline, MemoryLimit}}
	c, err := compileOnce(source)
	if err != nil {
		return nil, p.fault(err)
	}
	p.compiled = c
	if err := p.answerable(); err != nil {
		return nil, err
	}
	return p, nil
}

// Operation that the program answers.
func (p *Program) Operation() configv1alpha1.InterpreterOperation { return p.operation }

// Functions are the global functions of the script, in the order in which they are defined.
func (p *Program) Functions() []Function { return p.compiled.functions }

// Function is the name of the function that is called, and whether it is the one that the operation's contract names;
// a script that defines a single function may name it as it likes.
func (p *Program) Function() (name string, byContract bool) { return p.function() }

// Evaluate runs the operation once: the hooks do, and whoever tries a script out. The error is an *Error.
// The call takes no longer than Deadline, and ends with ctx.
func (p *Program) Evaluate(ctx context.Context, in Inputs) (*Outputs, error) {
	return p.evaluate(ctx, in)
}
