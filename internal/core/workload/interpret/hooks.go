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
