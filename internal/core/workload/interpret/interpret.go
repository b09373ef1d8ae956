// Package interpret interprets objects: replicas and their requirements, health, relevant status, dependencies. It asks
// tiers in order, per operation. The tiers (customization, webhook, shipped, builtin) implement the kinds; controllers
// decide when to ask.
package interpret

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/object/identity"
	"github.com/argosy-io/argosy/internal/core/object/text"
)

// Interpreter interprets objects. It never modifies its arguments. Results share no memory with them, except where a
// method returns the argument itself.
type Interpreter interface {
	// Replicas returns the number of replicas of obj and the requirements of one; nil means unknown. workload is false if
	// the kind has no replicas to divide, or if obj has several components and the kind does not implement Revise: obj is
	// then placed by its components.
	Replicas(ctx context.Context, obj *unstructured.Unstructured) (replicas int32, req *workv1alpha2.ReplicaRequirements,
		workload bool, err error)

	// Components returns the parts of obj, each with its own replicas and requirements, sorted by name; nil if the kind
	// has none. If Replicas returns a workload too, the components describe the same replicas in detail.
	Components(ctx context.Context, obj *unstructured.Unstructured) ([]workv1alpha2.Component, error)

	// Revise sets the replicas of obj; it returns obj itself if the kind has none.
	Revise(ctx context.Context, obj *unstructured.Unstructured, replicas int32) (*unstructured.Unstructured, error)

	// Retain returns desired with the values of observed that belong to the member; desired itself if there are none.
	Retain(ctx context.Context, desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error)

	// Reflect returns the status to report for a member's object. The default is the whole .status; nil if there is none.
	Reflect(ctx context.Context, observed *unstructured.Unstructured) (map[string]any, error)

	// Aggregate returns the template with the status computed from its members, one item per cluster; the template itself
	// if its kind is not aggregated.
	Aggregate(ctx context.Context, template *unstructured.Unstructured,
		items []workv1alpha2.AggregatedStatusItem) (*unstructured.Unstructured, error)

	// Health returns the health of a member's object. The default is Healthy; with an error it is Unknown.
	Health(ctx context.Context, observed *unstructured.Unstructured) (Health, error)

	// Dependencies returns the objects that obj needs, sorted and unique.
	Dependencies(ctx context.Context, obj *unstructured.Unstructured) ([]configv1alpha1.DependentObjectReference, error)
}

// Health is more detailed than the API's: a paused workload is not a failure.
type Health string

// The values of Health.
const (
	Healthy     Health = "Healthy"
	Progressing Health = "Progressing" // in progress within its deadline
	Suspended   Health = "Suspended"   // paused by the user, or a canary paused by its partition
	Degraded    Health = "Degraded"    // will not recover by waiting
	Unknown     Health = "Unknown"
)

// Karmada returns the health of the API. Failover acts only on Unhealthy, so rollouts and canaries are not evicted.
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

// Hooks are a tier's implementation of one kind, one hook per operation. A nil hook leaves the operation to the next
// tier. Hooks have the contracts of the Interpreter's methods.
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

// Tier is one source of interpretation.
type Tier interface {
	// Find returns what implements an operation for objects of a kind.
	Find(kind schema.GroupVersionKind, operation configv1alpha1.InterpreterOperation) Implementation
}

// Implementation is what a tier has for an operation of a kind.
type Implementation struct {
	// Evaluate is nil if the tier leaves the operation to the next one.
	Evaluate Evaluate
	// By are the names of the objects that implement the operation, if the tier has objects.
	By []string
	// Besides are further objects that implement the operation but are not used for this version, in order of precedence.
	Besides []Besides
}

// Kinds is an immutable tier. All versions of a kind mean the same.
type Kinds map[schema.GroupKind]*Hooks

// Find implements Tier.
func (k Kinds) Find(kind schema.GroupVersionKind,
	operation configv1alpha1.InterpreterOperation) Implementation {
	return Implementation{Evaluate: k[kind.GroupKind()].Evaluate(operation)}
}

// Operations is an immutable tier that implements operations for any kind.
type Operations map[configv1alpha1.InterpreterOperation]Evaluate

// Find implements Tier.
func (o Operations) Find(_ schema.GroupVersionKind,
	operation configv1alpha1.InterpreterOperation) Implementation {
	return Implementation{Evaluate: o[operation]}
}

// New returns an interpreter that uses, per operation, the first tier that implements it for the kind. The hub uses
// New(…, builtin.Tier()).
func New(tiers ...Tier) Interpreter { return Tiers(tiers) }

// Tiers are asked in order. They are immutable and need no lock.
type Tiers []Tier

// Find implements Tier.
func (c Tiers) Find(kind schema.GroupVersionKind, operation configv1alpha1.InterpreterOperation) Implementation {
	for _, t := range c {
		if found := t.Find(kind, operation); found.Evaluate != nil {
			return found
		}
	}
	return Implementation{}
}

// implements reports whether any tier implements an operation for the kind of obj.
func (c Tiers) implements(obj *unstructured.Unstructured, operation configv1alpha1.InterpreterOperation) bool {
	return c.Find(obj.GroupVersionKind(), operation).Evaluate != nil
}

// evaluate runs an operation; ok is false if no tier implements it. The identity of an object must not change.
func (c Tiers) evaluate(ctx context.Context, operation configv1alpha1.InterpreterOperation,
	in Inputs) (out Outputs, ok bool, err error) {
	evaluate := c.Find(in.Object.GroupVersionKind(), operation).Evaluate
	if evaluate == nil {
		return out, false, nil
	}
	out, err = evaluate(ctx, in)
	if err == nil && out.Object != nil && out.Object != in.Object {
		err = identity.FromManifest(in.Object).Keeps(out.Object)
	}
	if err != nil {
		return Outputs{}, true, &Error{Operation: operation, Cause: err, About: doing(operation) + " of " +
			text.Object(in.Object.GetKind(), in.Object.GetNamespace(), in.Object.GetName())}
	}
	return out, true, nil
}

func (c Tiers) Replicas(ctx context.Context,
	obj *unstructured.Unstructured) (int32, *workv1alpha2.ReplicaRequirements, bool, error) {
	if !c.implements(obj, configv1alpha1.InterpreterOperationInterpretReplica) || c.indivisible(ctx, obj) {
		return 0, nil, false, nil
	}
	out, ok, err := c.evaluate(ctx, configv1alpha1.InterpreterOperationInterpretReplica, Inputs{Object: obj})
	return out.Replicas, out.Requirements, ok, err
}

// indivisible reports whether obj has several components, or some that cannot be read, and the number of its replicas
// cannot be set. The requirements of one replica would not describe them.
func (c Tiers) indivisible(ctx context.Context, obj *unstructured.Unstructured) bool {
	if c.implements(obj, configv1alpha1.InterpreterOperationReviseReplica) {
		return false
	}
	components, err := c.Components(ctx, obj)
	return err != nil || len(components) > 1
}

func (c Tiers) Components(ctx context.Context, obj *unstructured.Unstructured) ([]workv1alpha2.Component, error) {
	out, _, err := c.evaluate(ctx, configv1alpha1.InterpreterOperationInterpretComponent, Inputs{Object: obj})
	return out.Components, err
}

func (c Tiers) Revise(ctx context.Context, obj *unstructured.Unstructured,
	replicas int32) (*unstructured.Unstructured, error) {
	return c.change(ctx, configv1alpha1.InterpreterOperationReviseReplica, Inputs{Object: obj, Replicas: replicas})
}

func (c Tiers) Retain(ctx context.Context, desired,
	observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	return c.change(ctx, configv1alpha1.InterpreterOperationRetain, Inputs{Object: desired, Observed: observed})
}

func (c Tiers) Aggregate(ctx context.Context, template *unstructured.Unstructured,
	items []workv1alpha2.AggregatedStatusItem) (*unstructured.Unstructured, error) {
	return c.change(ctx, configv1alpha1.InterpreterOperationAggregateStatus, Inputs{Object: template, Items: items})
}

// change runs an operation that changes the object.
func (c Tiers) change(ctx context.Context, operation configv1alpha1.InterpreterOperation,
	in Inputs) (*unstructured.Unstructured, error) {
	out, ok, err := c.evaluate(ctx, operation, in)
	if !ok {
		return in.Object, nil
	}
	return out.Object, err
}

func (c Tiers) Reflect(ctx context.Context, observed *unstructured.Unstructured) (map[string]any, error) {
	out, ok, err := c.evaluate(ctx, configv1alpha1.InterpreterOperationInterpretStatus, Inputs{Object: observed})
	if !ok {
		return WholeStatus(observed), nil
	}
	return out.Status, err
}

func (c Tiers) Health(ctx context.Context, observed *unstructured.Unstructured) (Health, error) {
	out, ok, err := c.evaluate(ctx, configv1alpha1.InterpreterOperationInterpretHealth, Inputs{Object: observed})
	switch {
	case !ok:
		return Healthy, nil
	case err != nil:
		return Unknown, err
	}
	return out.Health, nil
}

func (c Tiers) Dependencies(ctx context.Context,
	obj *unstructured.Unstructured) ([]configv1alpha1.DependentObjectReference, error) {
	out, _, err := c.evaluate(ctx, configv1alpha1.InterpreterOperationInterpretDependency, Inputs{Object: obj})
	return out.Dependencies, err
}

// WholeStatus returns a copy of .status; nil if there is none or it is not an object.
func WholeStatus(observed *unstructured.Unstructured) map[string]any {
	status, ok := observed.Object["status"].(map[string]any)
	if !ok {
		return nil
	}
	return runtime.DeepCopyJSON(status)
}

// WithStatus returns a copy of template with another status, which it takes over.
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
