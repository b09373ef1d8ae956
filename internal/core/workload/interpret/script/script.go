// Package script implements the interpreter's operations with Lua. It compiles each script once, runs each call in its
// own sandbox with limits, and converts objects without loss.
package script

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
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

// Inputs are the arguments of an operation. Unused ones are ignored. None is modified.
type Inputs struct {
	// Object is the template, or the desired object for Retain.
	Object *unstructured.Unstructured
	// Observed is the member's object, for Retain, InterpretStatus and InterpretHealth.
	Observed *unstructured.Unstructured
	// Replicas is the desired number for ReviseReplica.
	Replicas int32
	// Items are the members' statuses for AggregateStatus.
	Items []workv1alpha2.AggregatedStatusItem
}

// Outputs are the results of an operation. Others are zero. They share no memory with the inputs, except that Object is
// the input itself if the script did not change it.
type Outputs struct {
	// Replicas and Requirements are for InterpretReplica. Requirements is nil if the script returned none.
	Replicas     int32
	Requirements *workv1alpha2.ReplicaRequirements
	// Components are for InterpretComponent, sorted by name.
	Components []workv1alpha2.Component
	// Object is for ReviseReplica, Retain and AggregateStatus.
	Object *unstructured.Unstructured
	// Status is for InterpretStatus, and for AggregateStatus what the script set; nil if there is none.
	Status map[string]any
	// Health is for InterpretHealth.
	Health interpret.Health
	// Dependencies are for InterpretDependency, sorted and unique.
	Dependencies []configv1alpha1.DependentObjectReference

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
