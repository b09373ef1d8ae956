package interpret

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

// Inputs are the arguments of an operation. Unused ones are ignored. None is modified.
type Inputs struct {
	// Object is what the operation is about: the template, the desired object for Retain, or the member's object for
	// InterpretStatus and InterpretHealth.
	Object *unstructured.Unstructured
	// Observed is the member's object for Retain.
	Observed *unstructured.Unstructured
	// Replicas is the desired number for ReviseReplica.
	Replicas int32
	// Items are the members' statuses for AggregateStatus.
	Items []workv1alpha2.AggregatedStatusItem
}

// Outputs are the results of an operation. Others are zero.
type Outputs struct {
	// Replicas and Requirements are for InterpretReplica. Requirements may be nil.
	Replicas     int32
	Requirements *workv1alpha2.ReplicaRequirements
	// Components are for InterpretComponent, sorted by name.
	Components []workv1alpha2.Component
	// Object is for ReviseReplica, Retain and AggregateStatus. It is the input itself if nothing changed.
	Object *unstructured.Unstructured
	// Status is for InterpretStatus; nil if there is none.
	Status map[string]any
	// Health is for InterpretHealth.
	Health Health
	// Dependencies are for InterpretDependency, sorted and unique.
	Dependencies []configv1alpha1.DependentObjectReference
}

// Evaluate runs an operation.
type Evaluate func(context.Context, Inputs) (Outputs, error)

// Implements reports whether the hooks implement an operation; nil implements none.
func (h *Hooks) Implements(operation configv1alpha1.InterpreterOperation) bool {
	return h.Evaluate(operation) != nil
}

// Evaluate returns an operation in the form that all operations have; nil if the hooks do not implement it.
func (h *Hooks) Evaluate(operation configv1alpha1.InterpreterOperation) Evaluate {
	switch {
	case h == nil:
	case operation == configv1alpha1.InterpreterOperationInterpretReplica && h.Replicas != nil:
		return func(ctx context.Context, in Inputs) (out Outputs, err error) {
			out.Replicas, out.Requirements, err = h.Replicas(ctx, in.Object)
			return out, err
		}
	case operation == configv1alpha1.InterpreterOperationInterpretComponent && h.Components != nil:
		return func(ctx context.Context, in Inputs) (out Outputs, err error) {
			out.Components, err = h.Components(ctx, in.Object)
			return out, err
		}
	case operation == configv1alpha1.InterpreterOperationReviseReplica && h.Revise != nil:
		return func(ctx context.Context, in Inputs) (out Outputs, err error) {
			out.Object, err = h.Revise(ctx, in.Object, in.Replicas)
			return out, err
		}
	case operation == configv1alpha1.InterpreterOperationRetain && h.Retain != nil:
		return func(ctx context.Context, in Inputs) (out Outputs, err error) {
			out.Object, err = h.Retain(ctx, in.Object, in.Observed)
			return out, err
		}
	case operation == configv1alpha1.InterpreterOperationInterpretStatus && h.Reflect != nil:
		return func(ctx context.Context, in Inputs) (out Outputs, err error) {
			out.Status, err = h.Reflect(ctx, in.Object)
			return out, err
		}
	case operation == configv1alpha1.InterpreterOperationAggregateStatus && h.Aggregate != nil:
		return func(ctx context.Context, in Inputs) (out Outputs, err error) {
			out.Object, err = h.Aggregate(ctx, in.Object, in.Items)
			return out, err
		}
	case operation == configv1alpha1.InterpreterOperationInterpretHealth && h.Health != nil:
		return func(ctx context.Context, in Inputs) (out Outputs, err error) {
			out.Health, err = h.Health(ctx, in.Object)
			return out, err
		}
	case operation == configv1alpha1.InterpreterOperationInterpretDependency && h.Dependencies != nil:
		return func(ctx context.Context, in Inputs) (out Outputs, err error) {
			out.Dependencies, err = h.Dependencies(ctx, in.Object)
			return out, err
		}
	}
	return nil
}

// HooksBy returns the hooks of the operations for which by does not return nil; nil if there are none.
func HooksBy(by func(configv1alpha1.InterpreterOperation) Evaluate) *Hooks {
	h, some := &Hooks{}, false
	of := func(operation configv1alpha1.InterpreterOperation) (evaluate Evaluate, ok bool) {
		evaluate = by(operation)
		some = some || evaluate != nil
		return evaluate, evaluate != nil
	}
	if evaluate, ok := of(configv1alpha1.InterpreterOperationInterpretReplica); ok {
		h.Replicas = func(ctx context.Context, obj *unstructured.Unstructured) (int32, *workv1alpha2.ReplicaRequirements,
			error) {
			out, err := evaluate(ctx, Inputs{Object: obj})
			return out.Replicas, out.Requirements, err
		}
	}
	if evaluate, ok := of(configv1alpha1.InterpreterOperationInterpretComponent); ok {
		h.Components = func(ctx context.Context, obj *unstructured.Unstructured) ([]workv1alpha2.Component, error) {
			out, err := evaluate(ctx, Inputs{Object: obj})
			return out.Components, err
		}
	}
	if evaluate, ok := of(configv1alpha1.InterpreterOperationReviseReplica); ok {
		h.Revise = func(ctx context.Context, obj *unstructured.Unstructured, n int32) (*unstructured.Unstructured, error) {
			out, err := evaluate(ctx, Inputs{Object: obj, Replicas: n})
			return out.Object, err
		}
	}
	if evaluate, ok := of(configv1alpha1.InterpreterOperationRetain); ok {
		h.Retain = func(ctx context.Context, desired, observed *unstructured.Unstructured) (*unstructured.Unstructured,
			error) {
			out, err := evaluate(ctx, Inputs{Object: desired, Observed: observed})
			return out.Object, err
		}
	}
	if evaluate, ok := of(configv1alpha1.InterpreterOperationInterpretStatus); ok {
		h.Reflect = func(ctx context.Context, observed *unstructured.Unstructured) (map[string]any, error) {
			out, err := evaluate(ctx, Inputs{Object: observed})
			return out.Status, err
		}
	}
	if evaluate, ok := of(configv1alpha1.InterpreterOperationAggregateStatus); ok {
		h.Aggregate = func(ctx context.Context, template *unstructured.Unstructured,
			items []workv1alpha2.AggregatedStatusItem) (*unstructured.Unstructured, error) {
			out, err := evaluate(ctx, Inputs{Object: template, Items: items})
			return out.Object, err
		}
	}
	if evaluate, ok := of(configv1alpha1.InterpreterOperationInterpretHealth); ok {
		h.Health = func(ctx context.Context, observed *unstructured.Unstructured) (Health, error) {
			out, err := evaluate(ctx, Inputs{Object: observed})
			if err != nil {
				return Unknown, err
			}
			return out.Health, nil
		}
	}
	if evaluate, ok := of(configv1alpha1.InterpreterOperationInterpretDependency); ok {
		h.Dependencies = func(ctx context.Context,
			obj *unstructured.Unstructured) ([]configv1alpha1.DependentObjectReference, error) {
			out, err := evaluate(ctx, Inputs{Object: obj})
			return out.Dependencies, err
		}
	}
	if !some {
		return nil
	}
	return h
}

// Around returns hooks that pass each call to around, with its operation, and return the error of around. If around
// does not call, the results are zero, and the health is Unknown.
func (h *Hooks) Around(around func(operation configv1alpha1.InterpreterOperation, call func() error) error) *Hooks {
	return HooksBy(func(operation configv1alpha1.InterpreterOperation) Evaluate {
		evaluate := h.Evaluate(operation)
		if evaluate == nil {
			return nil
		}
		return func(ctx context.Context, in Inputs) (out Outputs, err error) {
			err = around(operation, func() (err error) { out, err = evaluate(ctx, in); return err })
			return out, err
		}
	})
}
