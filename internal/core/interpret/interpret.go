// Package interpret says what an object means: how many replicas it has and what one needs, how healthy it is, which of
// its status matters, what it depends on. It asks tiers in order, per operation; what a kind means is decided in them
// (customization, webhook, shipped and builtin), and when to ask is decided by controllers.
package interpret

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/identity"
)

// Interpreter answers what an object means. Arguments are never changed; a result shares no memory with them, except
// that the argument itself is returned where the comment says so.
type Interpreter interface {
	// Replicas is how many replicas obj asks for and what one of them needs; nil requirements are unknown ones.
	// workload is false when the kind has no replicas to divide.
	Replicas(ctx context.Context, obj *unstructured.Unstructured) (replicas int32, req *workv1alpha2.ReplicaRequirements,
		workload bool, err error)

	// Components are what obj runs, each with its own number of replicas and needs, sorted by name; nil when the kind does
	// not say. Where Replicas answers as well, the components are the same replicas in more detail.
	Components(ctx context.Context, obj *unstructured.Unstructured) ([]workv1alpha2.Component, error)

	// Revise gives obj another number of replicas; obj itself when the kind has none.
	Revise(ctx context.Context, obj *unstructured.Unstructured, replicas int32) (*unstructured.Unstructured, error)

	// Retain gives desired those values of observed that belong to the member; desired itself when nothing does.
	Retain(ctx context.Context, desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error)

	// Reflect is the status to report for a member's object: the whole of .status unless the kind says otherwise,
	// nil when there is none.
	Reflect(ctx context.Context, observed *unstructured.Unstructured) (map[string]any, error)

	// Aggregate is template with the status that follows from its members, one item per cluster that shall hold it.
	// template itself when the kind's status is not aggregated.
	Aggregate(ctx context.Context, template *unstructured.Unstructured,
		items []workv1alpha2.AggregatedStatusItem) (*unstructured.Unstructured, error)

	// Health of a member's object: Healthy unless the kind says otherwise, Unknown with an error.
	Health(ctx context.Context, observed *unstructured.Unstructured) (Health, error)

	// Dependencies are the objects that obj needs beside it, sorted, each once.
	Dependencies(ctx context.Context, obj *unstructured.Unstructured) ([]configv1alpha1.DependentObjectReference, error)
}

// Health is how an object does, in finer words than the API has: a workload held on purpose is no failure.
type Health string

// The healths.
const (
	Healthy     Health = "Healthy"
	Progressing Health = "Progressing" // on its way; its own deadline, if it has one, is not over
	Suspended   Health = "Suspended"   // held by its owner: paused, or a canary held by partition
	Degraded    Health = "Degraded"    // will not get well by waiting
	Unknown     Health = "Unknown"
)

// Karmada is the health as the API shows it. Failover acts on Unhealthy alone, so neither a rollout nor a canary
// evicts.
func (h Health) Karmada() workv1alpha1.ResourceHealth {
	switch h {
	case Healthy, Suspended:
		return workv1alpha1.ResourceHealthy
	case Degraded:
		return workv1alpha1.ResourceUnhealthy
	default:
		return workv1alpha1.ResourceUnknown
	}
}

// Hooks are what a tier knows about one kind, an operation each; a nil hook leaves the operation to the next tier.
// They have the contracts of the Interpreter's methods of the same names.
type Hooks struct {
	Replicas func(ctx context.Context, obj *unstructured.Unstructured) (int32, *workv1alpha2.ReplicaRequirements,
		error)
	Components func(ctx context.Context, obj *unstructured.Unstructured) ([]workv1alpha2.Component, error)
	Revise     func(ctx context.Context, obj *unstructured.Unstructured, replicas int32) (*unstructured.Unstructured,
		error)
	Retain func(ctx context.Context, desired, observed *unstructured.Unstructured) (*unstructured.Unstructured,
		error)
	Reflect   func(ctx context.Context, observed *unstructured.Unstructured) (map[string]any, error)
	Aggregate func(ctx context.Context, template *unstructured.Unstructured,
		items []workv1alpha2.AggregatedStatusItem) (*unstructured.Unstructured, error)
	Health       func(ctx context.Context, observed *unstructured.Unstructured) (Health, error)
	Dependencies func(ctx context.Context, obj *unstructured.Unstructured) ([]configv1alpha1.DependentObjectReference,
		error)
}

// Tier is one source of meaning. A kind is a group and a kind: every version of it means the same.
type Tier interface {
	// Hooks for the kind; nil when the tier does not know it.
	Hooks(kind schema.GroupKind) *Hooks
}

// Versioned is a Tier that answers differently, or not at all, for some versions of a kind.
type Versioned interface {
	Tier
	// HooksOf is as Hooks, for one version.
	HooksOf(kind schema.GroupVersionKind) *Hooks
}

// HooksOf are the hooks that a tier has for a version of a kind; nil when it does not know it.
func HooksOf(t Tier, kind schema.GroupVersionKind) *Hooks {
	if v, ok := t.(Versioned); ok {
		return v.HooksOf(kind)
	}
	return t.Hooks(kind.GroupKind())
}

// Kinds is a tier that never changes.
type Kinds map[schema.GroupKind]*Hooks

// Hooks implements Tier.
func (k Kinds) Hooks(kind schema.GroupKind) *Hooks { return k[kind] }

// New asks the tiers in the order given; per operation the first one with a hook for the kind answers, alone.
// The hub's interpreter is New(…, builtin.Tier()).
func New(tiers ...Tier) Interpreter { return cascade(tiers) }

// cascade is never changed, so it needs no lock; its tiers see to their own.
type cascade []Tier

// first are the hooks of the first tier that answers the operation for the kind of obj; nil if none does.
func (c cascade) first(obj *unstructured.Unstructured, answers func(*Hooks) bool) *Hooks {
	kind := obj.GroupVersionKind()
	for _, t := range c {
		if h := HooksOf(t, kind); h != nil && answers(h) {
			return h
		}
	}
	return nil
}

func (c cascade) Replicas(ctx context.Context,
	obj *unstructured.Unstructured) (int32, *workv1alpha2.ReplicaRequirements, bool, error) {
	h := c.first(obj, func(h *Hooks) bool { return h.Replicas != nil })
	if h == nil {
		return 0, nil, false, nil
	}
	n, req, err := h.Replicas(ctx, obj)
	return n, req, true, explain(configv1alpha1.InterpreterOperationInterpretReplica, "read replicas", obj, err)
}

func (c cascade) Components(ctx context.Context, obj *unstructured.Unstructured) ([]workv1alpha2.Component, error) {
	h := c.first(obj, func(h *Hooks) bool { return h.Components != nil })
	if h == nil {
		return nil, nil
	}
	components, err := h.Components(ctx, obj)
	return components, explain(configv1alpha1.InterpreterOperationInterpretComponent, "read components", obj, err)
}

func (c cascade) Revise(ctx context.Context, obj *unstructured.Unstructured,
	replicas int32) (*unstructured.Unstructured, error) {
	h := c.first(obj, func(h *Hooks) bool { return h.Revise != nil })
	if h == nil {
		return obj, nil
	}
	revised, err := keepIdentity(obj)(h.Revise(ctx, obj, replicas))
	return revised, explain(configv1alpha1.InterpreterOperationReviseReplica, "revise replicas", obj, err)
}

func (c cascade) Retain(ctx context.Context, desired,
	observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	h := c.first(desired, func(h *Hooks) bool { return h.Retain != nil })
	if h == nil {
		return desired, nil
	}
	retained, err := keepIdentity(desired)(h.Retain(ctx, desired, observed))
	return retained, explain(configv1alpha1.InterpreterOperationRetain, "retain member values", desired, err)
}

func (c cascade) Reflect(ctx context.Context, observed *unstructured.Unstructured) (map[string]any, error) {
	h := c.first(observed, func(h *Hooks) bool { return h.Reflect != nil })
	if h == nil {
		return WholeStatus(observed), nil
	}
	status, err := h.Reflect(ctx, observed)
	return status, explain(configv1alpha1.InterpreterOperationInterpretStatus, "reflect status", observed, err)
}

func (c cascade) Aggregate(ctx context.Context, template *unstructured.Unstructured,
	items []workv1alpha2.AggregatedStatusItem) (*unstructured.Unstructured, error) {
	h := c.first(template, func(h *Hooks) bool { return h.Aggregate != nil })
	if h == nil {
		return template, nil
	}
	aggregated, err := keepIdentity(template)(h.Aggregate(ctx, template, items))
	return aggregated, explain(configv1alpha1.InterpreterOperationAggregateStatus, "aggregate status", template, err)
}

func (c cascade) Health(ctx context.Context, observed *unstructured.Unstructured) (Health, error) {
	h := c.first(observed, func(h *Hooks) bool { return h.Health != nil })
	if h == nil {
		return Healthy, nil
	}
	health, err := h.Health(ctx, observed)
	if err != nil {
		return Unknown, explain(configv1alpha1.InterpreterOperationInterpretHealth, "interpret health", observed, err)
	}
	return health, nil
}

func (c cascade) Dependencies(ctx context.Context,
	obj *unstructured.Unstructured) ([]configv1alpha1.DependentObjectReference, error) {
	h := c.first(obj, func(h *Hooks) bool { return h.Dependencies != nil })
	if h == nil {
		return nil, nil
	}
	deps, err := h.Dependencies(ctx, obj)
	return deps, explain(configv1alpha1.InterpreterOperationInterpretDependency, "find dependencies", obj, err)
}

// keepIdentity lets an answer pass that is still the object that was asked about: what a kind means is no way to make another
// object of it.
func keepIdentity(obj *unstructured.Unstructured) func(*unstructured.Unstructured, error) (*unstructured.Unstructured,
	error) {
	return func(answer *unstructured.Unstructured, err error) (*unstructured.Unstructured, error) {
		if err == nil && answer != obj {
			err = identity.Of(obj).Keeps(answer)
		}
		if err != nil {
			return nil, err
		}
		return answer, nil
	}
}

// WholeStatus is a copy of .status; nil when there is none or it is no object.
func WholeStatus(observed *unstructured.Unstructured) map[string]any {
	status, ok := observed.Object["status"].(map[string]any)
	if !ok {
		return nil
	}
	return runtime.DeepCopyJSON(status)
}

// WithStatus is a copy of template with another status, which it takes over.
func WithStatus(template *unstructured.Unstructured, status map[string]any) *unstructured.Unstructured {
	object := make(map[string]any, len(template.Object)+1)
	for key, value := range template.Object {
		if key != "status" {
			object[key] = runtime.DeepCopyJSONValue(value)
		}
	}
	object["status"] = status
	return &unstructured.Unstructured{Object: object}
}

// explain says what was being done to which object; nil stays nil.
func explain(operation configv1alpha1.InterpreterOperation, doing string, obj *unstructured.Unstructured,
	err error) error {
	if err == nil {
		return nil
	}
	name := obj.GetName()
	if ns := obj.GetNamespace(); ns != "" {
		name = ns + "/" + name
	}
	return &Error{Operation: operation, About: fmt.Sprintf("%s of %s %s", doing, obj.GetKind(), name), Cause: err}
}
