// Package webhook is the tier of interpreter webhooks: it decides which one is asked, what it is sent, and what its answer means.
// How it is reached is left to whoever gives it a Call.
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

// Call sends a context with a request to a webhook, and gives back what it answered, undecoded. The error says why there is no
// answer; it need not say which webhook it was.
type Call func(ctx context.Context, h Hook, body []byte) ([]byte, error)

// Tier answers as webhooks do. It is never changed, and may be asked by many at once.
type Tier struct {
	hooks []Hook
	call  Call
	newID func() types.UID

	known sync.Map // schema.GroupVersionKind → *interpret.Hooks, which may be nil
}

// New is the tier of all configurations, in any order: their webhooks are asked in the order of the configurations' names and of
// the lists in them. For each operation the first one answers, alone, that has a rule for the object's group, version and kind.
func New(all []*configv1alpha1.ResourceInterpreterWebhookConfiguration, call Call, newID func() types.UID) *Tier {
	sorted := slices.Clone(all)
	slices.SortFunc(sorted, func(a, b *configv1alpha1.ResourceInterpreterWebhookConfiguration) int {
		return cmp.Compare(a.Name, b.Name)
	})
	t := &Tier{call: call, newID: newID}
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

// By implements interpret.Namer.
func (t *Tier) By(kind schema.GroupVersionKind, operation configv1alpha1.InterpreterOperation) []string {
	if h, ok := t.answering(kind, operation); ok {
		return []string{h.String()}
	}
	return nil
}

// Concerns says whether a configuration has a webhook for any operation and version of the kind.
func Concerns(c *configv1alpha1.ResourceInterpreterWebhookConfiguration, kind schema.GroupKind) bool {
	return slices.ContainsFunc(c.Webhooks, func(w configv1alpha1.ResourceInterpreterWebhook) bool {
		return slices.ContainsFunc(w.Rules, func(r configv1alpha1.RuleWithOperations) bool {
			return matches(r.APIGroups, kind.Group) && matches(r.Kinds, kind.Kind)
		})
	})
}

func (t *Tier) answering(kind schema.GroupVersionKind, operation configv1alpha1.InterpreterOperation) (Hook, bool) {
	for _, h := range t.hooks {
		for _, r := range h.Rules {
			if matches(r.Operations, operation) && matches(r.APIGroups, kind.Group) && matches(r.APIVersions, kind.Version) && matches(r.Kinds, kind.Kind) {
				return h, true
			}
		}
	}
	return Hook{}, false
}

func matches[S ~string](list []S, s S) bool {
	return slices.Contains(list, s) || slices.Contains(list, "*")
}

func (t *Tier) hooksOf(kind schema.GroupVersionKind) *interpret.Hooks {
	out := &interpret.Hooks{}
	some := false
	if h, ok := t.answering(kind, configv1alpha1.InterpreterOperationInterpretReplica); ok {
		some = true
		out.Replicas = func(ctx context.Context, obj *unstructured.Unstructured) (int32, *workv1alpha2.ReplicaRequirements, error) {
			answer, err := t.ask(ctx, h, configv1alpha1.InterpreterOperationInterpretReplica, obj, nil)
			switch {
			case err != nil:
				return 0, nil, err
			case answer.Replicas == nil:
				return 0, nil, nonsense(h, configv1alpha1.InterpreterOperationInterpretReplica, "says no replicas")
			case *answer.Replicas < 0:
				return 0, nil, nonsense(h, configv1alpha1.InterpreterOperationInterpretReplica, "says %d replicas, and there are from 0 to %d", *answer.Replicas, math.MaxInt32)
			}
			return *answer.Replicas, answer.ReplicaRequirements, nil
		}
	}
	if h, ok := t.answering(kind, configv1alpha1.InterpreterOperationInterpretComponent); ok {
		some = true
		out.Components = func(ctx context.Context, obj *unstructured.Unstructured) ([]workv1alpha2.Component, error) {
			answer, err := t.ask(ctx, h, configv1alpha1.InterpreterOperationInterpretComponent, obj, nil)
			if err != nil {
				return nil, err
			}
			return components(h, answer.Components)
		}
	}
	if h, ok := t.answering(kind, configv1alpha1.InterpreterOperationReviseReplica); ok {
		some = true
		out.Revise = func(ctx context.Context, obj *unstructured.Unstructured, replicas int32) (*unstructured.Unstructured, error) {
			return t.patched(ctx, h, configv1alpha1.InterpreterOperationReviseReplica, obj, func(r *configv1alpha1.ResourceInterpreterRequest) error {
				r.DesiredReplicas = &replicas
				return nil
			})
		}
	}
	if h, ok := t.answering(kind, configv1alpha1.InterpreterOperationRetain); ok {
		some = true
		out.Retain = func(ctx context.Context, desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
			return t.patched(ctx, h, configv1alpha1.InterpreterOperationRetain, desired, func(r *configv1alpha1.ResourceInterpreterRequest) error {
				raw, err := raw(observed)
				r.ObservedObject = &raw
				return err
			})
		}
	}
	if h, ok := t.answering(kind, configv1alpha1.InterpreterOperationAggregateStatus); ok {
		some = true
		out.Aggregate = func(ctx context.Context, template *unstructured.Unstructured, items []workv1alpha2.AggregatedStatusItem) (*unstructured.Unstructured, error) {
			return t.patched(ctx, h, configv1alpha1.InterpreterOperationAggregateStatus, template, func(r *configv1alpha1.ResourceInterpreterRequest) error {
				r.AggregatedStatus = items
				return nil
			})
		}
	}
	if h, ok := t.answering(kind, configv1alpha1.InterpreterOperationInterpretStatus); ok {
		some = true
		out.Reflect = func(ctx context.Context, observed *unstructured.Unstructured) (map[string]any, error) {
			answer, err := t.ask(ctx, h, configv1alpha1.InterpreterOperationInterpretStatus, observed, nil)
			if err != nil {
				return nil, err
			}
			return status(h, answer.RawStatus)
		}
	}
	if h, ok := t.answering(kind, configv1alpha1.InterpreterOperationInterpretHealth); ok {
		some = true
		out.Health = func(ctx context.Context, observed *unstructured.Unstructured) (interpret.Health, error) {
			answer, err := t.ask(ctx, h, configv1alpha1.InterpreterOperationInterpretHealth, observed, nil)
			switch {
			case err != nil:
				return interpret.Unknown, err
			case answer.Healthy == nil:
				return interpret.Unknown, nonsense(h, configv1alpha1.InterpreterOperationInterpretHealth, "does not say healthy, true or false")
			case *answer.Healthy:
				return interpret.Healthy, nil
			}
			return interpret.Degraded, nil
		}
	}
	if h, ok := t.answering(kind, configv1alpha1.InterpreterOperationInterpretDependency); ok {
		some = true
		out.Dependencies = func(ctx context.Context, obj *unstructured.Unstructured) ([]configv1alpha1.DependentObjectReference, error) {
			answer, err := t.ask(ctx, h, configv1alpha1.InterpreterOperationInterpretDependency, obj, nil)
			if err != nil {
				return nil, err
			}
			return dependencies(h, answer.Dependencies)
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
