package interpret

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

// Implements reports whether the hooks implement an operation; nil implements none.
func (h *Hooks) Implements(operation configv1alpha1.InterpreterOperation) bool {
	if h == nil {
		return false
	}
	switch operation {
	case configv1alpha1.InterpreterOperationInterpretReplica:
		return h.Replicas != nil
	case configv1alpha1.InterpreterOperationInterpretComponent:
		return h.Components != nil
	case configv1alpha1.InterpreterOperationReviseReplica:
		return h.Revise != nil
	case configv1alpha1.InterpreterOperationRetain:
		return h.Retain != nil
	case configv1alpha1.InterpreterOperationInterpretStatus:
		return h.Reflect != nil
	case configv1alpha1.InterpreterOperationAggregateStatus:
		return h.Aggregate != nil
	case configv1alpha1.InterpreterOperationInterpretHealth:
		return h.Health != nil
	case configv1alpha1.InterpreterOperationInterpretDependency:
		return h.Dependencies != nil
	}
	return false
}

// Around returns hooks that pass each call to around, with its operation, and return the error of around. If around
// does not call, the results are zero, and the health is Unknown.
func (h *Hooks) Around(around func(operation configv1alpha1.InterpreterOperation, call func() error) error) *Hooks {
	out := &Hooks{}
	if h.Replicas != nil {
		out.Replicas = func(ctx context.Context, obj *unstructured.Unstructured) (n int32,
			req *workv1alpha2.ReplicaRequirements, err error) {
			err = around(configv1alpha1.InterpreterOperationInterpretReplica,
				func() (err error) { n, req, err = h.Replicas(ctx, obj); return err })
			return n, req, err
		}
	}
	if h.Components != nil {
		out.Components = func(ctx context.Context, obj *unstructured.Unstructured) (all []workv1alpha2.Component, err error) {
			err = around(configv1alpha1.InterpreterOperationInterpretComponent,
				func() (err error) { all, err = h.Components(ctx, obj); return err })
			return all, err
		}
	}
	if h.Revise != nil {
		out.Revise = func(ctx context.Context, obj *unstructured.Unstructured, n int32) (revised *unstructured.Unstructured,
			err error) {
			err = around(configv1alpha1.InterpreterOperationReviseReplica,
				func() (err error) { revised, err = h.Revise(ctx, obj, n); return err })
			return revised, err
		}
	}
	if h.Retain != nil {
		out.Retain = func(ctx context.Context, desired,
			observed *unstructured.Unstructured) (retained *unstructured.Unstructured, err error) {
			err = around(configv1alpha1.InterpreterOperationRetain,
				func() (err error) { retained, err = h.Retain(ctx, desired, observed); return err })
			return retained, err
		}
	}
	if h.Reflect != nil {
		out.Reflect = func(ctx context.Context, observed *unstructured.Unstructured) (status map[string]any, err error) {
			err = around(configv1alpha1.InterpreterOperationInterpretStatus,
				func() (err error) { status, err = h.Reflect(ctx, observed); return err })
			return status, err
		}
	}
	if h.Aggregate != nil {
		out.Aggregate = func(ctx context.Context, template *unstructured.Unstructured,
			items []workv1alpha2.AggregatedStatusItem) (aggregated *unstructured.Unstructured, err error) {
			err = around(configv1alpha1.InterpreterOperationAggregateStatus,
				func() (err error) { aggregated, err = h.Aggregate(ctx, template, items); return err })
			return aggregated, err
		}
	}
	if h.Health != nil {
		out.Health = func(ctx context.Context, observed *unstructured.Unstructured) (health Health, err error) {
			health = Unknown
			err = around(configv1alpha1.InterpreterOperationInterpretHealth,
				func() (err error) { health, err = h.Health(ctx, observed); return err })
			return health, err
		}
	}
	if h.Dependencies != nil {
		out.Dependencies = func(ctx context.Context,
			obj *unstructured.Unstructured) (all []configv1alpha1.DependentObjectReference, err error) {
			err = around(configv1alpha1.InterpreterOperationInterpretDependency,
				func() (err error) { all, err = h.Dependencies(ctx, obj); return err })
			return all, err
		}
	}
	return out
}
