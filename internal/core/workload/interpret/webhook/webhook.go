// Package webhook is the tier of interpreter webhooks. It decides which webhook is called, builds the request and
// evaluates the response. The caller supplies the transport.
package webhook

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// Hook is a webhook with its configuration.
type Hook struct {
	Configuration string
	*configv1alpha1.ResourceInterpreterWebhook
}

// String names the webhook in messages.
func (h Hook) String() string { return h.Configuration + "/" + h.Name }

// Call sends a request to a webhook and returns the response undecoded. The error need not name the webhook.
type Call func(ctx context.Context, h Hook, body []byte) ([]byte, error)

// Options of the tier. They may be zero to find out only which webhook applies.
type Options struct {
	Call Call
	// NewID returns the uid of a request.
	NewID func() types.UID
	// Convert converts objects to the versions in rules.
	Convert interpret.Convert
	// Unchanged is called for a response without a patch to an operation that expects one. It may be nil.
	Unchanged func(context.Context, Unchanged)
}

// Unchanged is a response that changes nothing. It may be correct.
type Unchanged struct {
	Hook
	Operation configv1alpha1.InterpreterOperation
	// Object is the object to change.
	Object *unstructured.Unstructured
	// Replicas is the argument of ReviseReplica. Items is the argument of AggregateStatus.
	Replicas int32
	Items    []workv1alpha2.AggregatedStatusItem
}

// Tier implements operations with webhooks. It is immutable and safe for concurrent use.
type Tier struct {
	hooks []Hook
	Options

	known sync.Map // schema.GroupVersionKind → *interpret.Hooks, which may be nil
}

// New returns the tier of all configurations, in any order. Webhooks are ordered by the name of their configuration and
// their position. Each operation uses the first webhook with a rule for the object's group, version and kind, or else
// the first one with a rule for a version to which the object can be converted. A webhook never gets a version that it
// does not list.
func New(all []*configv1alpha1.ResourceInterpreterWebhookConfiguration, o Options) *Tier {
	sorted := slices.Clone(all)
	slices.SortFunc(sorted, func(a, b *configv1alpha1.ResourceInterpreterWebhookConfiguration) int {
		return cmp.Compare(a.Name, b.Name)
	})
	t := &Tier{Options: o}
	for _, c := range sorted {
		for i := range c.Webhooks {
			t.hooks = append(t.hooks, Hook{c.Name, &c.Webhooks[i]})
		}
	}
	return t
}

// Hooks implements interpret.Tier. Rules name versions, so it knows no kind without a version.
func (t *Tier) Hooks(schema.GroupKind) *interpret.Hooks { return nil }

// HooksOf implements interpret.Versioned.
func (t *Tier) HooksOf(kind schema.GroupVersionKind) *interpret.Hooks {
	if len(t.hooks) == 0 {
		return nil
	}
	if h, ok := t.known.Load(kind); ok {
		return h.(*interpret.Hooks)
	}
	h := t.hooksOf(kind)
	t.known.Store(kind, h)
	return h
}

// SourceNames implements interpret.Namer.
func (t *Tier) SourceNames(kind schema.GroupVersionKind, operation configv1alpha1.InterpreterOperation) []string {
	h, ok := t.answering(kind, operation)
	switch {
	case !ok:
		return nil
	case h.version != kind.Version:
		return []string{fmt.Sprintf("%s (asked in %s)", h.Hook, h.version)}
	}
	return []string{h.String()}
}

// Concerns reports whether a configuration has a webhook for any operation and version of the kind.
func Concerns(c *configv1alpha1.ResourceInterpreterWebhookConfiguration, kind schema.GroupKind) bool {
	return slices.ContainsFunc(c.Webhooks, func(w configv1alpha1.ResourceInterpreterWebhook) bool {
		return slices.ContainsFunc(w.Rules, func(r configv1alpha1.RuleWithOperations) bool {
			return matches(r.APIGroups, kind.Group) && matches(r.Kinds, kind.Kind)
		})
	})
}

// Kinds returns the kinds in the rules of a configuration, with duplicates and without wildcards.
func Kinds(c *configv1alpha1.ResourceInterpreterWebhookConfiguration) []schema.GroupKind {
	var all []schema.GroupKind
	for _, w := range c.Webhooks {
		for _, r := range w.Rules {
			for _, group := range r.APIGroups {
				for _, kind := range r.Kinds {
					if group != "*" && kind != "*" {
						all = append(all, schema.GroupKind{Group: group, Kind: kind})
					}
				}
			}
		}
	}
	return all
}

// asked is a webhook with the version in which it gets objects.
type asked struct {
	Hook
	version string
}

// answering returns the webhook of an operation for a kind.
func (t *Tier) answering(kind schema.GroupVersionKind, operation configv1alpha1.InterpreterOperation) (asked, bool) {
	var converted *asked
	for _, h := range t.hooks {
		for _, r := range h.Rules {
			if !matches(r.Operations, operation) || !matches(r.APIGroups, kind.Group) || !matches(r.Kinds, kind.Kind) {
				continue
			}
			if matches(r.APIVersions, kind.Version) {
				return asked{h, kind.Version}, true
			}
			for _, version := range r.APIVersions {
				if converted == nil && t.Convert.Knows(kind, version) {
					converted = &asked{h, version}
				}
			}
		}
	}
	if converted == nil {
		return asked{}, false
	}
	return *converted, true
}

func matches[S ~string](list []S, s S) bool {
	return slices.Contains(list, s) || slices.Contains(list, "*")
}

func (t *Tier) hooksOf(kind schema.GroupVersionKind) *interpret.Hooks {
	out := &interpret.Hooks{}
	some := false
	if h, ok := t.answering(kind, configv1alpha1.InterpreterOperationInterpretReplica); ok {
		some = true
		out.Replicas = func(ctx context.Context, obj *unstructured.Unstructured) (int32, *workv1alpha2.ReplicaRequirements,
			error) {
			answer, err := t.send(ctx, h, configv1alpha1.InterpreterOperationInterpretReplica, obj, nil)
			switch {
			case err != nil:
				return 0, nil, err
			case answer.Replicas == nil:
				return 0, nil, nonsense(h.Hook, configv1alpha1.InterpreterOperationInterpretReplica, "has no replicas")
			case *answer.Replicas < 0:
				return 0, nil, nonsense(h.Hook, configv1alpha1.InterpreterOperationInterpretReplica,
					"has %d replicas, which must be from 0 to %d", *answer.Replicas, math.MaxInt32)
			}
			return *answer.Replicas, answer.ReplicaRequirements, nil
		}
	}
	if h, ok := t.answering(kind, configv1alpha1.InterpreterOperationInterpretComponent); ok {
		some = true
		out.Components = func(ctx context.Context, obj *unstructured.Unstructured) ([]workv1alpha2.Component, error) {
			answer, err := t.send(ctx, h, configv1alpha1.InterpreterOperationInterpretComponent, obj, nil)
			if err != nil {
				return nil, err
			}
			return components(h.Hook, answer.Components)
		}
	}
	if h, ok := t.answering(kind, configv1alpha1.InterpreterOperationReviseReplica); ok {
		some = true
		out.Revise = func(ctx context.Context, obj *unstructured.Unstructured, replicas int32) (*unstructured.Unstructured,
			error) {
			return t.patched(ctx, h, configv1alpha1.InterpreterOperationReviseReplica, obj,
				func(r *configv1alpha1.ResourceInterpreterRequest) error {
					r.DesiredReplicas = &replicas
					return nil
				})
		}
	}
	if h, ok := t.answering(kind, configv1alpha1.InterpreterOperationRetain); ok {
		some = true
		out.Retain = func(ctx context.Context, desired, observed *unstructured.Unstructured) (*unstructured.Unstructured,
			error) {
			return t.patched(ctx, h, configv1alpha1.InterpreterOperationRetain, desired,
				func(r *configv1alpha1.ResourceInterpreterRequest) error {
					given, err := t.convertTo(observed, h.version)
					if err != nil {
						return fmt.Errorf("the member's object: %w", err)
					}
					raw, err := raw(given)
					r.ObservedObject = &raw
					return err
				})
		}
	}
	if h, ok := t.answering(kind, configv1alpha1.InterpreterOperationAggregateStatus); ok {
		some = true
		out.Aggregate = func(ctx context.Context, template *unstructured.Unstructured,
			items []workv1alpha2.AggregatedStatusItem) (*unstructured.Unstructured, error) {
			return t.patched(ctx, h, configv1alpha1.InterpreterOperationAggregateStatus, template,
				func(r *configv1alpha1.ResourceInterpreterRequest) error {
					var err error
					r.AggregatedStatus, err = t.Convert.Statuses(template.GroupVersionKind().GroupKind().WithVersion(h.version), items)
					return err
				})
		}
	}
	if h, ok := t.answering(kind, configv1alpha1.InterpreterOperationInterpretStatus); ok {
		some = true
		out.Reflect = func(ctx context.Context, observed *unstructured.Unstructured) (map[string]any, error) {
			answer, err := t.send(ctx, h, configv1alpha1.InterpreterOperationInterpretStatus, observed, nil)
			if err != nil {
				return nil, err
			}
			return status(h.Hook, answer.RawStatus)
		}
	}
	if h, ok := t.answering(kind, configv1alpha1.InterpreterOperationInterpretHealth); ok {
		some = true
		out.Health = func(ctx context.Context, observed *unstructured.Unstructured) (interpret.Health, error) {
			answer, err := t.send(ctx, h, configv1alpha1.InterpreterOperationInterpretHealth, observed, nil)
			switch {
			case err != nil:
				return interpret.Unknown, err
			case answer.Healthy == nil:
				return interpret.Unknown, nonsense(h.Hook, configv1alpha1.InterpreterOperationInterpretHealth,
					"does not set healthy to true or false")
			case *answer.Healthy:
				return interpret.Healthy, nil
			}
			return interpret.Degraded, nil
		}
	}
	if h, ok := t.answering(kind, configv1alpha1.InterpreterOperationInterpretDependency); ok {
		some = true
		out.Dependencies = func(ctx context.Context,
			obj *unstructured.Unstructured) ([]configv1alpha1.DependentObjectReference, error) {
			answer, err := t.send(ctx, h, configv1alpha1.InterpreterOperationInterpretDependency, obj, nil)
			if err != nil {
				return nil, err
			}
			return dependencies(h.Hook, answer.Dependencies)
		}
	}
	if !some {
		return nil
	}
	return out
}

// nonsense returns the error of an unusable response.
func nonsense(h Hook, operation configv1alpha1.InterpreterOperation, format string, args ...any) error {
	return fmt.Errorf("interpreter webhook %s, %s: its answer %s", h, operation, fmt.Sprintf(format, args...))
}
