// Package webhook is the tier of interpreter webhooks: it decides which one is asked, what it is sent, and what its
// answer means. How it is reached is left to whoever gives it a Call.
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
	"github.com/argosy-io/argosy/internal/core/interpret"
)

// Hook is a webhook, and the configuration that it is of.
type Hook struct {
	Configuration string
	*configv1alpha1.ResourceInterpreterWebhook
}

// String names the webhook as messages do.
func (h Hook) String() string { return h.Configuration + "/" + h.Name }

// Call sends a context with a request to a webhook, and gives back what it answered, undecoded. The error says why
// there is no answer; it need not say which webhook it was.
type Call func(ctx context.Context, h Hook, body []byte) ([]byte, error)

// Options are what the tier works with. For who only wants to know which webhook would answer, none is needed.
type Options struct {
	Call Call
	// NewID makes the uid of a request.
	NewID func() types.UID
	// Convert brings objects to the versions that rules list.
	Convert interpret.Convert
	// Unchanged is told of an answer without a patch to a question that is answered by one; nil to tell nobody.
	Unchanged func(context.Context, Unchanged)
}

// Unchanged is an answer that changes nothing. That may be right: the object may be what was asked for.
type Unchanged struct {
	Hook
	Operation configv1alpha1.InterpreterOperation
	// Object is what was to be changed.
	Object *unstructured.Unstructured
	// Replicas are those that ReviseReplica was asked for, Items the statuses of AggregateStatus.
	Replicas int32
	Items    []workv1alpha2.AggregatedStatusItem
}

// Tier answers as webhooks do. It is never changed, and may be asked by many at once.
type Tier struct {
	hooks []Hook
	Options

	known sync.Map // schema.GroupVersionKind → *interpret.Hooks, which may be nil
}

// New is the tier of all configurations, in any order: their webhooks are asked in the order of the configurations'
// names and of the lists in them. For each operation the first one answers, alone, that has a rule for the object's
// group, version and kind. If there is none, it is the first one with a rule for the group and kind in a version that
// the object can be converted to, and is asked about the object in that version: what it does not list it is never
// sent.
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

// Hooks implements interpret.Tier, for kinds of which no version is known: rules name versions, so it knows none.
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

// Concerns says whether a configuration has a webhook for any operation and version of the kind.
func Concerns(c *configv1alpha1.ResourceInterpreterWebhookConfiguration, kind schema.GroupKind) bool {
	return slices.ContainsFunc(c.Webhooks, func(w configv1alpha1.ResourceInterpreterWebhook) bool {
		return slices.ContainsFunc(w.Rules, func(r configv1alpha1.RuleWithOperations) bool {
			return matches(r.APIGroups, kind.Group) && matches(r.Kinds, kind.Kind)
		})
	})
}

// Kinds are those that the rules of a configuration name, with repetitions; what a * stands for is not among them.
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

// asked is a webhook, and the version in which it is asked about objects.
type asked struct {
	Hook
	version string
}

// answering is the webhook that answers an operation for a kind.
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
					given, err := t.to(observed, h.version)
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

// nonsense is the error of an answer that cannot be used.
func nonsense(h Hook, operation configv1alpha1.InterpreterOperation, format string, args ...any) error {
	return fmt.Errorf("interpreter webhook %s, %s: its answer %s", h, operation, fmt.Sprintf(format, args...))
}
