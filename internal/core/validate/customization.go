package validate

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
)

// operation is one member of CustomizationRules, if it is set.
type operation struct {
	name      string // of the member
	operation configv1alpha1.InterpreterOperation
	rule      *configv1alpha1.OperationRule
	// paths say that fields are listed, which stands in place of one jsonPath.
	paths []list
	// byPath says that the operation is no more than a field, so that it needs no script.
	byPath bool
}

type list struct {
	name  string
	paths []string
}

func operations(r *configv1alpha1.CustomizationRules) []operation {
	var all []operation
	add := func(o operation) {
		if o.rule != nil {
			all = append(all, o)
		}
	}
	if rule := r.Retention; rule != nil {
		add(operation{"retention", configv1alpha1.InterpreterOperationRetain, &rule.OperationRule, []list{{"jsonPaths", rule.JSONPaths}}, true})
	}
	add(operation{"replicaResource", configv1alpha1.InterpreterOperationInterpretReplica, r.ReplicaResource, nil, true})
	add(operation{"componentResource", configv1alpha1.InterpreterOperationInterpretComponent, r.ComponentResource, nil, false})
	add(operation{"replicaRevision", configv1alpha1.InterpreterOperationReviseReplica, r.ReplicaRevision, nil, true})
	add(operation{"statusReflection", configv1alpha1.InterpreterOperationInterpretStatus, r.StatusReflection, nil, true})
	if rule := r.StatusAggregation; rule != nil {
		o := operation{name: "statusAggregation", operation: configv1alpha1.InterpreterOperationAggregateStatus, rule: &rule.OperationRule, byPath: true}
		if p := rule.JSONPaths; p != nil {
			o.paths = []list{{"jsonPaths.sum", p.Sum}, {"jsonPaths.max", p.Max}, {"jsonPaths.last", p.Last}}
		}
		add(o)
	}
	if rule := r.HealthInterpretation; rule != nil {
		add(operation{"healthInterpretation", configv1alpha1.InterpreterOperationInterpretHealth, &rule.OperationRule, nil, true})
	}
	add(operation{"dependencyInterpretation", configv1alpha1.InterpreterOperationInterpretDependency, r.DependencyInterpretation, nil, false})
	return all
}

// Customization validates the scripts and paths of a customization, and that no other one answers the same questions about its kind.
// others may hold an earlier state of c itself.
func Customization(c *configv1alpha1.ResourceInterpreterCustomization, others []*configv1alpha1.ResourceInterpreterCustomization) field.ErrorList {
	path := field.NewPath("spec", "customizations")
	rules := &c.Spec.Customizations
	var errs field.ErrorList
	for _, o := range operations(rules) {
		errs = append(errs, operationRule(o, path.Child(o.name))...)
	}
	if h := rules.HealthInterpretation; h != nil && (h.Expected != "") != (h.JSONPath != "") {
		errs = append(errs, field.Required(path.Child("healthInterpretation"), "jsonPath and expected belong together"))
	}
	for _, other := range others {
		if other.Name == c.Name || other.Spec.Target != c.Spec.Target {
			continue
		}
		taken := map[configv1alpha1.InterpreterOperation]bool{}
		for _, o := range operations(&other.Spec.Customizations) {
			taken[o.operation] = true
		}
		for _, o := range operations(rules) {
			// Dependencies of several customizations are joined.
			if taken[o.operation] && o.operation != configv1alpha1.InterpreterOperationInterpretDependency {
				errs = append(errs, field.Forbidden(path.Child(o.name), fmt.Sprintf(
					"conflicting with InterpreterOperation(%s) of existing ResourceInterpreterCustomization(%s)", o.operation, other.Name)))
			}
		}
	}
	return errs
}

func operationRule(o operation, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	listed := 0
	for _, l := range o.paths {
		listed += len(l.paths)
		for i, p := range l.paths {
			if err := jsonPath(p); err != nil {
				errs = append(errs, field.Invalid(path.Child(l.name).Index(i), p, err.Error()))
			}
		}
	}
	byPath := o.rule.JSONPath != "" || listed > 0
	switch {
	case o.rule.LuaScript != "" && byPath:
		errs = append(errs, field.Forbidden(path, "luaScript and jsonPath cannot be set at the same time"))
	case o.rule.JSONPath != "" && listed > 0:
		errs = append(errs, field.Forbidden(path, "jsonPath and jsonPaths cannot be set at the same time"))
	case o.rule.LuaScript == "" && !byPath, byPath && !o.byPath:
		errs = append(errs, field.Required(path.Child("luaScript"), ""))
	}
	if o.rule.JSONPath != "" {
		if err := jsonPath(o.rule.JSONPath); err != nil {
			errs = append(errs, field.Invalid(path.Child("jsonPath"), o.rule.JSONPath, err.Error()))
		}
	}
	if o.rule.LuaScript != "" {
		if err := compiles(o.rule.LuaScript); err != nil {
			errs = append(errs, field.Invalid(path.Child("luaScript"), field.OmitValueType{}, fmt.Sprintf("%s: %v", o.name, err)))
		}
	}
	return errs
}
