package script

import (
	"context"
	"errors"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
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

// Hooks returns the operations with scripts in rules. name is the customization's, for messages.
// schema is that of the kind in the customization's version, nil if unknown.
//
// A script that does not compile makes only its own operation fail with the *Error. err joins these errors; see Errors.
func Hooks(name string, rules configv1alpha1.CustomizationRules, schema *Schema) (interpret.Operations, error) {
	all := interpret.Operations{}
	var faults []error
	for _, s := range Scripts(rules) {
		p, err := Compile(name, s.Operation, s.Source, schema)
		if err != nil {
			faults = append(faults, err)
		}
		all[s.Operation] = func(ctx context.Context, in interpret.Inputs) (interpret.Outputs, error) {
			if err != nil {
				return interpret.Outputs{}, err
			}
			out, err := p.Evaluate(ctx, in)
			if err != nil {
				return interpret.Outputs{}, err
			}
			if listen, ok := ctx.Value(listener{}).(func(*Program, *Outputs)); ok {
				listen(p, out)
			}
			return out.Outputs, nil
		}
	}
	return all, errors.Join(faults...)
}

type listener struct{}

// WithListener returns a context with which hooks pass the results of scripts to listen, also what they print.
func WithListener(ctx context.Context, listen func(*Program, *Outputs)) context.Context {
	return context.WithValue(ctx, listener{}, listen)
}
