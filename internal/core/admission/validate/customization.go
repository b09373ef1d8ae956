package validate

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/jsonpath"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/script"
)

// operation is one member of CustomizationRules that is set.
type operation struct {
	of script.Operation
	pathUse
	rule *configv1alpha1.OperationRule
	// lists are fields that stand in place of one jsonPath.
	lists []list
}

// pathUse is what an operation can do with a path.
type pathUse struct {
	// judge returns what is wrong with a path for the operation; empty if nothing. It is nil for operations that one path
	// cannot express; then instead has the advice.
	judge   func(jsonpath.Path) string
	instead string
	// kind is the type of the field.
	kind jsonpath.Kind
}

type list struct {
	name  string
	paths []string
	kind  jsonpath.Kind
}

var pathUses = map[configv1alpha1.InterpreterOperation]pathUse{
	configv1alpha1.InterpreterOperationRetain:           {judge: keepable, kind: jsonpath.Anything},
	configv1alpha1.InterpreterOperationInterpretReplica: {judge: anywhere, kind: jsonpath.Whole},
	configv1alpha1.InterpreterOperationInterpretComponent: {
		instead: "components cannot be read from a single field: define function GetComponents(obj) in luaScript"},
	configv1alpha1.InterpreterOperationReviseReplica:   {judge: writable, kind: jsonpath.Whole},
	configv1alpha1.InterpreterOperationInterpretStatus: {judge: ofStatus, kind: jsonpath.Anything},
	configv1alpha1.InterpreterOperationAggregateStatus: {judge: inStatus,
		instead: "specify how the clusters' values are aggregated: list the fields in jsonPaths.sum, jsonPaths.max or jsonPaths.last"},
	configv1alpha1.InterpreterOperationInterpretHealth: {judge: anywhere, kind: jsonpath.Anything},
	configv1alpha1.InterpreterOperationInterpretDependency: {
		instead: "dependencies cannot be read from a single field: define function GetDependencies(desiredObj) in luaScript"},
}

func operations(r *configv1alpha1.CustomizationRules) []operation {
	var all []operation
	for _, o := range script.Operations {
		rule := o.Rule(r)
		if rule == nil {
			continue
		}
		set := operation{of: o, pathUse: pathUses[o.Operation], rule: rule}
		switch p := r.StatusAggregation; {
		case o.Operation == configv1alpha1.InterpreterOperationRetain:
			set.lists = []list{{"jsonPaths", r.Retention.JSONPaths, jsonpath.Anything}}
		case o.Operation == configv1alpha1.InterpreterOperationAggregateStatus && p.JSONPaths != nil:
			set.lists = []list{{"jsonPaths.sum", p.JSONPaths.Sum, jsonpath.Number},
				{"jsonPaths.max", p.JSONPaths.Max, jsonpath.Anything}, {"jsonPaths.last", p.JSONPaths.Last, jsonpath.Anything}}
		}
		all = append(all, set)
	}
	return all
}

// What a field is good for.

func anywhere(jsonpath.Path) string { return "" }

func writable(p jsonpath.Path) string {
	for _, root := range []string{"apiVersion", "kind", "metadata", "status"} {
		if p.Under(root) {
			return fmt.Sprintf("replicas cannot be written to .%s; use the field of the spec that sets them, such as .spec.replicas", root)
		}
	}
	return ""
}

func ofStatus(p jsonpath.Path) string {
	if !p.Under("status") {
		return "must be .status, or a field below it"
	}
	return ""
}

func inStatus(p jsonpath.Path) string {
	if !p.Under("status") || p.Root() {
		return "must be a field of the status, such as .status.readyReplicas"
	}
	return ""
}

func keepable(p jsonpath.Path) string {
	switch {
	case p.Under("status"):
		return "the status is never sent to members, so it is always retained; remove this path"
	case p.Under("apiVersion") || p.Under("kind") || p.Root():
		return "cannot be retained as a whole; use a field of the spec, such as .spec.replicas"
	case p.Under("metadata") && !p.Inside("metadata", "annotations") && !p.Inside("metadata", "labels"):
		return "only labels and annotations can be retained in the metadata, such as .metadata.labels['team']"
	}
	return ""
}

// Customization validates the scripts and paths of a customization, and that no other customization handles the same
// operations of its kind. others may contain an earlier state of c.
func Customization(c *configv1alpha1.ResourceInterpreterCustomization,
	others []*configv1alpha1.ResourceInterpreterCustomization) field.ErrorList {
	path := field.NewPath("spec", "customizations")
	rules := &c.Spec.Customizations
	errs := target(c.Spec.Target, field.NewPath("spec", "target"))
	for _, o := range operations(rules) {
		errs = append(errs, operationRule(o, path.Child(o.of.Field))...)
	}
	if h := rules.HealthInterpretation; h != nil && (h.Expected != "") != (h.JSONPath != "") {
		errs = append(errs, field.Required(path.Child("healthInterpretation"), "jsonPath and expected must be set together"))
	}
	for _, other := range others {
		if other.Name == c.Name || other.Spec.Target != c.Spec.Target {
			continue
		}
		taken := map[configv1alpha1.InterpreterOperation]bool{}
		for _, o := range operations(&other.Spec.Customizations) {
			taken[o.of.Operation] = true
		}
		for _, o := range operations(rules) {
			// Dependencies of several customizations are joined.
			if taken[o.of.Operation] && o.of.Operation != configv1alpha1.InterpreterOperationInterpretDependency {
				errs = append(errs, field.Forbidden(path.Child(o.of.Field), fmt.Sprintf(
					"conflicting with InterpreterOperation(%s) of existing ResourceInterpreterCustomization(%s)", o.of.Operation,
					other.Name)))
			}
		}
	}
	return errs
}

// Lenient splits the errors of a customization into warnings, for authors who asked for lenience, and the rest.
func Lenient(errs field.ErrorList) (warnings []string, rest field.ErrorList) {
	for _, err := range errs {
		if err.Type == field.ErrorTypeInvalid && strings.HasSuffix(err.Field, ".luaScript") {
			warnings = append(warnings, fmt.Sprintf("%s: %s; the operation fails until this is fixed", err.Field, err.Detail))
			continue
		}
		rest = append(rest, err)
	}
	return warnings, rest
}

// CustomizationPaths validates the paths of a customization that is otherwise valid against the schema of its kind, as
// the definition has it for the version of the target; nil allows any.
func CustomizationPaths(c *configv1alpha1.ResourceInterpreterCustomization, schema *script.Schema) field.ErrorList {
	var errs field.ErrorList
	check := func(at *field.Path, text string, kind jsonpath.Kind) {
		p, err := jsonpath.Parse(text)
		if err == nil {
			err = p.Check(schema, kind)
		}
		if err != nil {
			errs = append(errs, field.Invalid(at, text, err.Error()))
		}
	}
	for _, o := range operations(&c.Spec.Customizations) {
		path := field.NewPath("spec", "customizations", o.of.Field)
		if o.rule.JSONPath != "" {
			check(path.Child("jsonPath"), o.rule.JSONPath, o.kind)
		}
		for _, l := range o.lists {
			for i, text := range l.paths {
				check(path.Child(l.name).Index(i), text, l.kind)
			}
		}
	}
	return errs
}

func target(t configv1alpha1.CustomizationTarget, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if gv, err := schema.ParseGroupVersion(t.APIVersion); err != nil || gv.Version == "" {
		errs = append(errs, field.Invalid(path.Child("apiVersion"), t.APIVersion,
			"must be group/version, or only the version for the core group, such as apps/v1 or v1"))
	}
	return append(errs, required(path.Child("kind"), t.Kind, "")...)
}

func operationRule(o operation, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	judged := func(at *field.Path, text string) {
		p, err := jsonpath.Parse(text)
		if err != nil {
			errs = append(errs, field.Invalid(at, text, err.Error()))
		} else if wrong := o.judge(p); wrong != "" {
			errs = append(errs, field.Invalid(at, text, wrong))
		}
	}
	listed := 0
	type listedPath struct {
		at   *field.Path
		path jsonpath.Path
	}
	var before []listedPath
	for _, l := range o.lists {
		listed += len(l.paths)
		for i, text := range l.paths {
			at := path.Child(l.name).Index(i)
			judged(at, text)
			p, err := jsonpath.Parse(text)
			if err != nil {
				continue
			}
			for _, other := range before {
				if jsonpath.Overlap(p, other.path) {
					errs = append(errs, field.Invalid(at, text,
						fmt.Sprintf("is, or is part of, the same field as %s; remove one of them", other.at)))
				}
			}
			before = append(before, listedPath{at, p})
		}
	}
	byList, byPath := listed > 0, o.rule.JSONPath != ""
	switch {
	case o.rule.LuaScript != "" && (byPath || byList):
		errs = append(errs, field.Forbidden(path, "luaScript and jsonPath cannot be set at the same time"))
	case byPath && o.instead != "":
		errs = append(errs, field.Forbidden(path.Child("jsonPath"), o.instead))
		if o.judge == nil {
			errs = append(errs, field.Required(path.Child("luaScript"), ""))
		}
	case byPath && byList:
		errs = append(errs, field.Forbidden(path, "jsonPath and jsonPaths cannot be set at the same time"))
	case o.rule.LuaScript == "" && !byPath && !byList:
		errs = append(errs, field.Required(path.Child("luaScript"), ""))
	case byPath:
		judged(path.Child("jsonPath"), o.rule.JSONPath)
	}
	if o.rule.LuaScript != "" {
		if err := script.Check(o.rule.LuaScript); err != nil {
			errs = append(errs, field.Invalid(path.Child("luaScript"), field.OmitValueType{},
				fmt.Sprintf("%s: %v", o.of.Field, err)))
		}
	}
	return errs
}
