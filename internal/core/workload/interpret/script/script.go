// Package script implements the interpreter's operations with Lua. It compiles each script once, runs each call in its
// own sandbox with limits, and converts objects without loss.
package script

import (
	"time"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// Limits of a call.
const (
	// Deadline is the maximum duration of a call.
	Deadline = time.Second
	// MemoryLimit is the approximate maximum memory of a call in bytes. The process may use half as much in addition.
	MemoryLimit = 64 << 20
	// DepthLimit is the maximum number of nested calls.
	DepthLimit = 200
	// SizeLimit is the maximum size of a script in bytes. It limits the cost of compiling: the compiler recurses as deep
	// as the script nests and is quadratic in the length of chains. The worst script takes about a second, the timeout of
	// a request.
	SizeLimit = 64 << 10
)

// Program is a script that was compiled for one operation of one customization. It is immutable and safe for concurrent
// use.
type Program struct {
	customization string
	operation     configv1alpha1.InterpreterOperation
	compiled      *compiled
	schema        *Schema
	bounds        bounds
}

// Outputs are the results of an operation. They share no memory with the inputs, except that Object is the input itself
// if the script did not change it. For AggregateStatus, Status is what the script set.
type Outputs struct {
	interpret.Outputs

	// Printed are the first hundred lines that the script printed.
	Printed []string
	// Warnings are about accepted deviations from the contract.
	Warnings []string
}

// Compile compiles a script for an operation; equal scripts are compiled once. customization is for messages. The error
// is an *Error with Syntax or NoFunction.
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

// Customization returns the name of the script's customization.
func (p *Program) Customization() string { return p.customization }
