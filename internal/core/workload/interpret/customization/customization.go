// Package customization is the tier of ResourceInterpreterCustomizations. It decides which of several customizations
// implements an operation, and in which version that gets the object. interpret/script runs scripts; interpret/jsonpath
// evaluates paths.
package customization

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
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
	Below []interpret.Tier
}

// Tier implements operations with customizations. It is immutable.
type Tier struct {
	kinds  map[schema.GroupKind]*kind
	schema func(schema.GroupVersionKind) *script.Schema
}

// rule is one customization: its name, its version and its hooks.
type rule struct {
	name, version string
	hooks         *interpret.Hooks
}

// kind has all customizations of a kind. rules are sorted by name.
type kind struct {
	rules []rule
	hooks *interpret.Hooks
	// real are the rules for known versions, with their hooks, which are nil if there are none.
	real      []rule
	realHooks *interpret.Hooks
}

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
	t := &Tier{kinds: map[schema.GroupKind]*kind{}, schema: o.Schema}
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
		r := rule{name: c.Name, version: gvk.Version, hooks: hooksOf(c, gvk, o)}
		k.rules = append(k.rules, r)
		if t.heardOf(gvk) {
			k.real = append(k.real, r)
		}
	}
	for gk, k := range t.kinds {
		k.hooks = complete(merged(k.rules, o.Convert), below(gk, o.Below))
		switch len(k.real) {
		case len(k.rules):
			k.realHooks = k.hooks
		case 0:
		default:
			k.realHooks = complete(merged(k.real, o.Convert), below(gk, o.Below))
		}
	}
	return t
}

// heardOf reports whether the fields of a version are known.
func (t *Tier) heardOf(gvk schema.GroupVersionKind) bool {
	return t.schema != nil && t.schema(gvk) != nil
}

// Hooks implements interpret.Tier.
func (t *Tier) Hooks(gk schema.GroupKind) *interpret.Hooks {
	if k := t.kinds[gk]; k != nil {
		return k.hooks
	}
	return nil
}

// HooksOf implements interpret.Versioned.
func (t *Tier) HooksOf(gvk schema.GroupVersionKind) *interpret.Hooks {
	k := t.kinds[gvk.GroupKind()]
	switch {
	case k == nil:
		return nil
	case k.hooks != k.realHooks && t.heardOf(gvk):
		return k.realHooks
	}
	return k.hooks
}

// rulesOf returns the rules that apply to objects in a version.
func (t *Tier) rulesOf(gvk schema.GroupVersionKind, operation configv1alpha1.InterpreterOperation) []rule {
	k := t.kinds[gvk.GroupKind()]
	switch {
	case k == nil:
		return nil
	case t.heardOf(gvk):
		return answering(k.real, operation)
	}
	return answering(k.rules, operation)
}

// SourceNames implements interpret.Namer.
func (t *Tier) SourceNames(gvk schema.GroupVersionKind, operation configv1alpha1.InterpreterOperation) []string {
	rules := t.rulesOf(gvk, operation)
	if at := slices.IndexFunc(rules, func(r rule) bool { return r.version == gvk.Version }); at > 0 {
		rules = slices.Concat(rules[at:at+1], rules[:at], rules[at+1:])
	}
	var names []string
	for _, r := range rules {
		if r.version == rules[0].version {
			names = append(names, r.name)
		}
	}
	if operation != configv1alpha1.InterpreterOperationInterpretDependency && len(names) > 1 {
		names = names[:1]
	}
	return names
}

// Besides implements interpret.Besider.
func (t *Tier) Besides(gvk schema.GroupVersionKind, operation configv1alpha1.InterpreterOperation) []interpret.Besides {
	k := t.kinds[gvk.GroupKind()]
	if k == nil {
		return nil
	}
	by := t.SourceNames(gvk, operation)
	var all []interpret.Besides
	for _, r := range answering(k.rules, operation) {
		if !slices.Contains(by, r.name) {
			all = append(all, interpret.Besides{Version: r.version, By: r.name})
		}
	}
	return all
}

// hooksOf returns the hooks of one customization, by script or by path.
func hooksOf(c *configv1alpha1.ResourceInterpreterCustomization, gvk schema.GroupVersionKind,
	o Options) *interpret.Hooks {
	var known *script.Schema
	if o.Schema != nil {
		known = o.Schema(gvk)
	}
	// The hook of a script that does not compile reports the error.
	scripts, _ := script.Hooks(c.Name, c.Spec.Customizations, known)
	paths := named(c.Name, jsonpath.Hooks(&c.Spec.Customizations))
	return first(scripts, paths)
}

// named adds the customization's name to errors of paths, as scripts do.
func named(name string, h *interpret.Hooks) *interpret.Hooks {
	return h.Around(func(operation configv1alpha1.InterpreterOperation, call func() error) error {
		if err := call(); err != nil {
			return fmt.Errorf("customization %q, %s: %w", name, operation, err)
		}
		return nil
	})
}

// first implements each operation with the first of the hooks that has it; nil without hooks.
func first(all ...*interpret.Hooks) *interpret.Hooks {
	var out *interpret.Hooks
	for _, h := range all {
		if h == nil {
			continue
		}
		if out == nil {
			out = &interpret.Hooks{}
		}
		to, from := reflect.ValueOf(out).Elem(), reflect.ValueOf(h).Elem()
		for i := range to.NumField() {
			if to.Field(i).IsNil() {
				to.Field(i).Set(from.Field(i))
			}
		}
	}
	return out
}

func below(gk schema.GroupKind, tiers []interpret.Tier) *interpret.Hooks {
	all := make([]*interpret.Hooks, len(tiers))
	for i, t := range tiers {
		all[i] = t.Hooks(gk)
	}
	return first(all...)
}

// complete adds requirements and status fields that a customization omits, from the tiers below. The customization gets
// the template with the status that these tiers aggregated, so that fields that it does not set are current.
func complete(h, below *interpret.Hooks) *interpret.Hooks {
	if h == nil {
		return nil
	}
	out := *h
	if h.Replicas != nil {
		out.Replicas = func(ctx context.Context, obj *unstructured.Unstructured) (int32, *workv1alpha2.ReplicaRequirements,
			error) {
			n, req, err := h.Replicas(ctx, obj)
			if err != nil || req != nil {
				return n, req, err
			}
			// An error of the tiers below means unknown requirements: the customization has answered.
			if below != nil && below.Replicas != nil {
				_, req, _ = below.Replicas(ctx, obj)
			} else {
				req, _ = interpret.Requirements(obj)
			}
			return n, req, nil
		}
	}
	if h.Aggregate != nil && below != nil && below.Aggregate != nil {
		out.Aggregate = func(ctx context.Context, template *unstructured.Unstructured,
			items []workv1alpha2.AggregatedStatusItem) (*unstructured.Unstructured, error) {
			base, err := below.Aggregate(ctx, template, items)
			if err != nil {
				return h.Aggregate(ctx, template, items)
			}
			answer, err := h.Aggregate(ctx, base, items)
			if err != nil {
				return nil, err
			}
			reported, _ := answer.Object["status"].(map[string]any)
			status := interpret.WholeStatus(base)
			if status == nil {
				return answer, nil
			}
			for field, value := range reported {
				status[field] = runtime.DeepCopyJSONValue(value)
			}
			return interpret.WithStatus(answer, status), nil
		}
	}
	return &out
}

// answering returns the rules that implement the operation, in order.
func answering(all []rule, operation configv1alpha1.InterpreterOperation) []rule {
	var rules []rule
	for _, r := range all {
		if r.hooks.Implements(operation) {
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

// merged combines the hooks of all rules.
func merged(all []rule, convert interpret.Convert) *interpret.Hooks {
	return interpret.HooksBy(func(operation configv1alpha1.InterpreterOperation) interpret.Evaluate {
		c := choices{operation, answering(all, operation), convert}
		switch {
		case len(c.rules) == 0:
			return nil
		case operation == configv1alpha1.InterpreterOperationInterpretDependency:
			return c.join
		}
		return c.evaluate
	})
}

// evaluate runs the operation of the rule for the object, in the rule's version.
func (c choices) evaluate(ctx context.Context, in interpret.Inputs) (out interpret.Outputs, err error) {
	a, err := c.choose(in.Object)
	if err != nil {
		return out, err
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
	out, err = a.hooks.Evaluate(c.operation)(ctx, given)
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
func (c choices) join(ctx context.Context, in interpret.Inputs) (out interpret.Outputs, err error) {
	a, err := c.choose(in.Object)
	if err != nil {
		return out, err
	}
	for _, r := range c.rules {
		if r.version != a.version {
			continue
		}
		deps, err := r.hooks.Dependencies(ctx, a.obj)
		if err != nil {
			return interpret.Outputs{}, err
		}
		out.Dependencies = append(out.Dependencies, deps...)
	}
	out.Dependencies = interpret.SortDependencies(out.Dependencies)
	return out, nil
}
