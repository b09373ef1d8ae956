// Package customization is the tier of ResourceInterpreterCustomizations. It decides which of several customizations
// implements an operation, and in which version that gets the object. interpret/script runs scripts; interpret/jsonpath
// evaluates paths.
package customization

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/jsonpath"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/script"
)

// Options are additional sources of knowledge. Each may be nil.
type Options struct {
	// Schema returns the schema of a kind in a version, which distinguishes empty lists and objects; nil if unknown.
	Schema  func(schema.GroupVersionKind) *script.Schema
	Convert interpret.Convert
	// Below are the tiers that complete the answers of customizations.
	Below interpret.Tiers
}

// Tier implements operations with customizations. It is immutable.
type Tier struct {
	Options
	kinds map[schema.GroupKind]*kind
}

// rule is one customization: its name, its version and what it implements.
type rule struct {
	name, version string
	operations    interpret.Operations
}

// kind has all customizations of a kind. rules are sorted by name. real are those for known versions.
type kind struct{ rules, real []rule }

// New returns the tier of all customizations, in any order. Those of a kind are merged in order of name: for each
// operation the first one for the object's version is used, or else the first one to whose version the object can be
// converted. Dependencies are joined.
//
// If the versions of a kind are known, a customization for an unknown version is ignored. If no conversion between two
// known versions exists, the operation fails.
//
// An invalid rule fails only its own operation.
func New(all []*configv1alpha1.ResourceInterpreterCustomization, o Options) *Tier {
	sorted := slices.Clone(all)
	slices.SortFunc(sorted, func(a, b *configv1alpha1.ResourceInterpreterCustomization) int {
		return cmp.Compare(a.Name, b.Name)
	})
	t := &Tier{Options: o, kinds: map[schema.GroupKind]*kind{}}
	for _, c := range sorted {
		gvk := schema.FromAPIVersionAndKind(c.Spec.Target.APIVersion, c.Spec.Target.Kind)
		if gvk.Version == "" {
			continue // invalid target; admission rejects it
		}
		k := t.kinds[gvk.GroupKind()]
		if k == nil {
			k = &kind{}
			t.kinds[gvk.GroupKind()] = k
		}
		r := rule{name: c.Name, version: gvk.Version, operations: t.operationsOf(c, gvk)}
		k.rules = append(k.rules, r)
		if t.heardOf(gvk) {
			k.real = append(k.real, r)
		}
	}
	return t
}

// heardOf reports whether the fields of a version are known.
func (t *Tier) heardOf(gvk schema.GroupVersionKind) bool {
	return t.Schema != nil && t.Schema(gvk) != nil
}

// Find implements interpret.Tier.
func (t *Tier) Find(gvk schema.GroupVersionKind,
	operation configv1alpha1.InterpreterOperation) (found interpret.Implementation) {
	k := t.kinds[gvk.GroupKind()]
	if k == nil {
		return found
	}
	all := answering(k.rules, operation)
	c := choices{operation, all, t.Convert}
	if len(k.real) < len(k.rules) && t.heardOf(gvk) {
		c.rules = answering(k.real, operation)
	}
	if len(c.rules) > 0 {
		found.By = c.names(gvk.Version)
		found.Evaluate = t.complete(gvk, operation, c.evaluate)
	}
	for _, r := range all {
		if !slices.Contains(found.By, r.name) {
			found.Besides = append(found.Besides, interpret.Besides{Version: r.version, By: r.name})
		}
	}
	return found
}

// operationsOf returns the operations of one customization, by script or by path.
func (t *Tier) operationsOf(c *configv1alpha1.ResourceInterpreterCustomization,
	gvk schema.GroupVersionKind) interpret.Operations {
	var known *script.Schema
	if t.Schema != nil {
		known = t.Schema(gvk)
	}
	// A script that does not compile reports the error when it is called.
	all, _ := script.Hooks(c.Name, c.Spec.Customizations, known)
	for operation, evaluate := range jsonpath.Hooks(&c.Spec.Customizations) {
		if all[operation] == nil {
			all[operation] = func(ctx context.Context, in interpret.Inputs) (interpret.Outputs, error) {
				out, err := evaluate(ctx, in)
				if err != nil {
					err = fmt.Errorf("customization %q, %s: %w", c.Name, operation, err)
				}
				return out, err
			}
		}
	}
	return all
}

// complete adds requirements and status fields that a customization omits, from the tiers below. The customization gets
// the template with the status that these tiers aggregated, so that fields that it does not set are current.
func (t *Tier) complete(gvk schema.GroupVersionKind, operation configv1alpha1.InterpreterOperation,
	evaluate interpret.Evaluate) interpret.Evaluate {
	below := t.Below.Find(gvk, operation).Evaluate
	switch {
	case operation == configv1alpha1.InterpreterOperationInterpretReplica:
		return func(ctx context.Context, in interpret.Inputs) (interpret.Outputs, error) {
			out, err := evaluate(ctx, in)
			if err != nil || out.Requirements != nil {
				return out, err
			}
			// An error of the tiers below means unknown requirements: the customization has answered.
			if below != nil {
				completed, _ := below(ctx, in)
				out.Requirements = completed.Requirements
			} else {
				out.Requirements, _ = interpret.Requirements(in.Object)
			}
			return out, nil
		}
	case operation == configv1alpha1.InterpreterOperationAggregateStatus && below != nil:
		return func(ctx context.Context, in interpret.Inputs) (interpret.Outputs, error) {
			base, err := below(ctx, in)
			if err != nil {
				return evaluate(ctx, in)
			}
			in.Object = base.Object
			out, err := evaluate(ctx, in)
			status := interpret.WholeStatus(base.Object)
			if err != nil || status == nil {
				return out, err
			}
			reported, _ := out.Object.Object["status"].(map[string]any)
			for field, value := range reported {
				status[field] = runtime.DeepCopyJSONValue(value)
			}
			out.Object = interpret.WithStatus(out.Object, status)
			return out, nil
		}
	}
	return evaluate
}

// answering returns the rules that implement the operation, in order.
func answering(all []rule, operation configv1alpha1.InterpreterOperation) []rule {
	var rules []rule
	for _, r := range all {
		if r.operations[operation] != nil {
			rules = append(rules, r)
		}
	}
	return rules
}

// asked is a rule with the object in the rule's version.
type asked struct {
	rule
	obj *unstructured.Unstructured
}

// choices are the rules for one operation, with the conversion.
type choices struct {
	operation configv1alpha1.InterpreterOperation
	rules     []rule
	convert   interpret.Convert
}

// choose returns the rule for obj.
func (c choices) choose(obj *unstructured.Unstructured) (asked, error) {
	version := obj.GroupVersionKind().Version
	for _, r := range c.rules {
		if r.version == version {
			return asked{r, obj}, nil
		}
	}
	var faults []error
	for _, r := range c.rules {
		given, err := c.convertTo(obj, r.version)
		if err == nil {
			return asked{r, given}, nil
		}
		faults = append(faults, fmt.Errorf("customization %q is written for %s: %w", r.name, r.version, err))
	}
	return asked{}, errors.Join(faults...)
}

// convertTo returns obj in a version; obj itself if it has that version.
func (c choices) convertTo(obj *unstructured.Unstructured, version string) (*unstructured.Unstructured, error) {
	converted, err := c.convert.ConvertTo(obj, version)
	if err == nil && converted == nil {
		gvk := obj.GroupVersionKind()
		err = fmt.Errorf("the object is %s, and there is no conversion between the two versions of %s; write the customization for %s",
			gvk.Version, gvk.Kind, gvk.GroupVersion())
	}
	return converted, err
}

// names returns the names of the rules that answer for a version: one, except for dependencies, which are joined.
func (c choices) names(version string) (names []string) {
	if !slices.ContainsFunc(c.rules, func(r rule) bool { return r.version == version }) {
		version = c.rules[0].version
	}
	for _, r := range c.rules {
		if r.version == version {
			names = append(names, r.name)
		}
	}
	if c.operation != configv1alpha1.InterpreterOperationInterpretDependency {
		return names[:1]
	}
	return names
}

// evaluate runs the operation of the rule for the object, in the rule's version.
func (c choices) evaluate(ctx context.Context, in interpret.Inputs) (out interpret.Outputs, err error) {
	a, err := c.choose(in.Object)
	if err != nil {
		return out, err
	}
	if c.operation == configv1alpha1.InterpreterOperationInterpretDependency {
		return c.join(ctx, a)
	}
	given := in
	given.Object = a.obj
	if in.Observed != nil {
		if given.Observed, err = c.convertTo(in.Observed, a.version); err != nil {
			return out, err
		}
	}
	if len(in.Items) > 0 {
		if given.Items, err = c.convert.Statuses(a.obj.GroupVersionKind(), in.Items); err != nil {
			return out, err
		}
	}
	out, err = a.operations[c.operation](ctx, given)
	switch {
	case err != nil || out.Object == nil:
	case out.Object == a.obj:
		out.Object = in.Object
	default:
		out.Object, err = c.convertTo(out.Object, in.Object.GroupVersionKind().Version)
	}
	return out, err
}

// join joins the dependencies of all rules in the version of the rule for the object.
func (c choices) join(ctx context.Context, a asked) (out interpret.Outputs, err error) {
	for _, r := range c.rules {
		if r.version != a.version {
			continue
		}
		one, err := r.operations[c.operation](ctx, interpret.Inputs{Object: a.obj})
		if err != nil {
			return interpret.Outputs{}, err
		}
		out.Dependencies = append(out.Dependencies, one.Dependencies...)
	}
	out.Dependencies = interpret.SortDependencies(out.Dependencies)
	return out, nil
}
