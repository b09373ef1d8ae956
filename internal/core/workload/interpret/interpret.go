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

// Tier is one source of interpretation. All versions of a kind mean the same.
type Tier interface {
	// Hooks returns the hooks of the kind; nil if the tier does not know it.
	Hooks(kind schema.GroupKind) *Hooks
}

// Versioned is a Tier whose hooks depend on the version of a kind.
type Versioned interface {
	Tier
	// HooksOf is Hooks for one version.
	HooksOf(kind schema.GroupVersionKind) *Hooks
}

// HooksOf returns a tier's hooks for a version of a kind; nil if it does not know it.
func HooksOf(t Tier, kind schema.GroupVersionKind) *Hooks {
	if v, ok := t.(Versioned); ok {
		return v.HooksOf(kind)
	}
	return t.Hooks(kind.GroupKind())
}

// Kinds is an immutable tier.
type Kinds map[schema.GroupKind]*Hooks

// Hooks implements Tier.
func (k Kinds) Hooks(kind schema.GroupKind) *Hooks { return k[kind] }

// New returns an interpreter that uses, per operation, the first tier with a hook for the kind. The hub uses New(…,
// builtin.Tier()).
func New(tiers ...Tier) Interpreter { return cascade(tiers) }

// cascade is immutable and needs no lock.
type cascade []Tier

// first returns the hooks of the first tier that implements the operation for the kind of obj; nil if none does.
func (c cascade) first(obj *unstructured.Unstructured, operation configv1alpha1.InterpreterOperation) *Hooks {
	kind := obj.GroupVersionKind()
	for _, t := range c {
		if h := HooksOf(t, kind); h.Implements(operation) {
			return h
		}
	}
	return nil
}

func (c cascade) Replicas(ctx context.Context,
	obj *unstructured.Unstructured) (int32, *workv1alpha2.ReplicaRequirements, bool, error) {
	h := c.first(obj, configv1alpha1.InterpreterOperationInterpretReplica)
	if h == nil || c.indivisible(ctx, obj) {
		return 0, nil, false, nil
	}
	n, req, err := h.Replicas(ctx, obj)
	return n, req, true, explain(configv1alpha1.InterpreterOperationInterpretReplica, "read replicas", obj, err)
}

// indivisible reports whether obj has several components, or some that cannot be read, and the number of its replicas
// cannot be set. The requirements of one replica would not describe them.
func (c cascade) indivisible(ctx context.Context, obj *unstructured.Unstructured) bool {
	if c.first(obj, configv1alpha1.InterpreterOperationReviseReplica) != nil {
		return false
	}
	components, err := c.Components(ctx, obj)
	return err != nil || len(components) > 1
}

func (c cascade) Components(ctx context.Context, obj *unstructured.Unstructured) ([]workv1alpha2.Component, error) {
	h := c.first(obj, configv1alpha1.InterpreterOperationInterpretComponent)
	if h == nil {
		return nil, nil
	}
	components, err := h.Components(ctx, obj)
	return components, explain(configv1alpha1.InterpreterOperationInterpretComponent, "read components", obj, err)
}

func (c cascade) Revise(ctx context.Context, obj *unstructured.Unstructured,
	replicas int32) (*unstructured.Unstructured, error) {
	h := c.first(obj, configv1alpha1.InterpreterOperationReviseReplica)
	if h == nil {
		return obj, nil
	}
	revised, err := keepIdentity(obj)(h.Revise(ctx, obj, replicas))
	return revised, explain(configv1alpha1.InterpreterOperationReviseReplica, "revise replicas", obj, err)
}

func (c cascade) Retain(ctx context.Context, desired,
	observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	h := c.first(desired, configv1alpha1.InterpreterOperationRetain)
	if h == nil {
		return desired, nil
	}
	retained, err := keepIdentity(desired)(h.Retain(ctx, desired, observed))
	return retained, explain(configv1alpha1.InterpreterOperationRetain, "retain member values", desired, err)
}

func (c cascade) Reflect(ctx context.Context, observed *unstructured.Unstructured) (map[string]any, error) {
	h := c.first(observed, configv1alpha1.InterpreterOperationInterpretStatus)
	if h == nil {
		return WholeStatus(observed), nil
	}
	status, err := h.Reflect(ctx, observed)
	return status, explain(configv1alpha1.InterpreterOperationInterpretStatus, "reflect status", observed, err)
}

func (c cascade) Aggregate(ctx context.Context, template *unstructured.Unstructured,
	items []workv1alpha2.AggregatedStatusItem) (*unstructured.Unstructured, error) {
	h := c.first(template, configv1alpha1.InterpreterOperationAggregateStatus)
	if h == nil {
		return template, nil
	}
	aggregated, err := keepIdentity(template)(h.Aggregate(ctx, template, items))
	return aggregated, explain(configv1alpha1.InterpreterOperationAggregateStatus, "aggregate status", template, err)
}

func (c cascade) Health(ctx context.Context, observed *unstructured.Unstructured) (Health, error) {
	h := c.first(observed, configv1alpha1.InterpreterOperationInterpretHealth)
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
	h := c.first(obj, configv1alpha1.InterpreterOperationInterpretDependency)
	if h == nil {
		return nil, nil
	}
	deps, err := h.Dependencies(ctx, obj)
	return deps, explain(configv1alpha1.InterpreterOperationInterpretDependency, "find dependencies", obj, err)
}

// keepIdentity returns an error if the result is not the same object: an interpreter must not change the identity.
func keepIdentity(obj *unstructured.Unstructured) func(*unstructured.Unstructured, error) (*unstructured.Unstructured,
	error) {
	return func(answer *unstructured.Unstructured, err error) (*unstructured.Unstructured, error) {
		if err == nil && answer != obj {
			err = identity.FromManifest(obj).Keeps(answer)
		}
		if err != nil {
			return nil, err
		}
		return answer, nil
	}
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

// explain adds the action and the object to an error; nil stays nil.
func explain(operation configv1alpha1.InterpreterOperation, doing string, obj *unstructured.Unstructured,
	err error) error {
	if err == nil {
		return nil
	}
	return &Error{Operation: operation, Cause: err,
		About: doing + " of " + text.Object(obj.GetKind(), obj.GetNamespace(), obj.GetName())}
}
