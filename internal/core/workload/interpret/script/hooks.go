package script

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// Script is one script of a customization.
type Script struct {
	Operation configv1alpha1.InterpreterOperation
	// Field is its place under spec.customizations, such as replicaResource.
	Field  string
	Source string
}

// Scripts returns the scripts in rules, in order of operations. Rules with paths have none.
func Scripts(rules configv1alpha1.CustomizationRules) []Script {
	var all []Script
	for _, o := range Operations {
		if rule := o.Rule(&rules); rule != nil && rule.LuaScript != "" {
			all = append(all, Script{Operation: o.Operation, Field: o.Field, Source: rule.LuaScript})
		}
	}
	return all
}

// Hooks returns the operations with scripts in rules. name is the customization's, for messages. schema is that of the
// kind in the customization's version, nil if unknown.
//
// The hooks are never nil. A script that does not compile makes only its own operation fail with the *Error. err joins
// these errors; see Errors.
func Hooks(name string, rules configv1alpha1.CustomizationRules, schema *Schema) (*interpret.Hooks, error) {
	h := &interpret.Hooks{}
	var faults []error
	for _, s := range Scripts(rules) {
		p, err := Compile(name, s.Operation, s.Source, schema)
		if err != nil {
			faults = append(faults, err)
		}
		hook(h, s.Operation, func(ctx context.Context, in Inputs) (*Outputs, error) {
			if err != nil {
				return nil, err
			}
			return p.Evaluate(ctx, in)
		})
	}
	return h, errors.Join(faults...)
}

// hook implements an operation with evaluate.
func hook(h *interpret.Hooks, operation configv1alpha1.InterpreterOperation,
	evaluate func(context.Context, Inputs) (*Outputs, error)) {
	object := func(ctx context.Context, in Inputs) (*unstructured.Unstructured, error) {
		out, err := evaluate(ctx, in)
		if err != nil {
			return nil, err
		}
		return out.Object, nil
	}
	switch operation {
	case configv1alpha1.InterpreterOperationInterpretReplica:
		h.Replicas = func(ctx context.Context, obj *unstructured.Unstructured) (int32, *workv1alpha2.ReplicaRequirements,
			error) {
			out, err := evaluate(ctx, Inputs{Object: obj})
			if err != nil {
				return 0, nil, err
			}
			return out.Replicas, out.Requirements, nil
		}
	case configv1alpha1.InterpreterOperationInterpretComponent:
		h.Components = func(ctx context.Context, obj *unstructured.Unstructured) ([]workv1alpha2.Component, error) {
			out, err := evaluate(ctx, Inputs{Object: obj})
			if err != nil {
				return nil, err
			}
			return out.Components, nil
		}
	case configv1alpha1.InterpreterOperationReviseReplica:
		h.Revise = func(ctx context.Context, obj *unstructured.Unstructured, replicas int32) (*unstructured.Unstructured,
			error) {
			return object(ctx, Inputs{Object: obj, Replicas: replicas})
		}
	case configv1alpha1.InterpreterOperationRetain:
		h.Retain = func(ctx context.Context, desired, observed *unstructured.Unstructured) (*unstructured.Unstructured,
			error) {
			return object(ctx, Inputs{Object: desired, Observed: observed})
		}
	case configv1alpha1.InterpreterOperationAggregateStatus:
		h.Aggregate = func(ctx context.Context, template *unstructured.Unstructured,
			items []workv1alpha2.AggregatedStatusItem) (*unstructured.Unstructured, error) {
			return object(ctx, Inputs{Object: template, Items: items})
		}
	case configv1alpha1.InterpreterOperationInterpretStatus:
		h.Reflect = func(ctx context.Context, observed *unstructured.Unstructured) (map[string]any, error) {
			out, err := evaluate(ctx, Inputs{Observed: observed})
			if err != nil {
				return nil, err
			}
			return out.Status, nil
		}
	case configv1alpha1.InterpreterOperationInterpretHealth:
		h.Health = func(ctx context.Context, observed *unstructured.Unstructured) (interpret.Health, error) {
			out, err := evaluate(ctx, Inputs{Observed: observed})
			if err != nil {
				return interpret.Unknown, err
			}
			return out.Health, nil
		}
	case configv1alpha1.InterpreterOperationInterpretDependency:
		h.Dependencies = func(ctx context.Context, obj *unstructured.Unstructured) ([]configv1alpha1.DependentObjectReference,
			error) {
			out, err := evaluate(ctx, Inputs{Object: obj})
			if err != nil {
				return nil, err
			}
			return out.Dependencies, nil
		}
	}
}
