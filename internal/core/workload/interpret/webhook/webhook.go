// Package webhook is the tier of interpreter webhooks. It decides which webhook is called, builds the request and
// evaluates the response. The caller supplies the transport.
package webhook

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
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
	interpret.Inputs
}

// Tier implements operations with webhooks. It is immutable and safe for concurrent use.
type Tier struct {
	hooks []Hook
	Options
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

// Find implements interpret.Tier.
func (t *Tier) Find(kind schema.GroupVersionKind,
	operation configv1alpha1.InterpreterOperation) interpret.Implementation {
	h, ok := t.answering(kind, operation)
	if !ok {
		return interpret.Implementation{}
	}
	name := h.String()
	if h.version != kind.Version {
		name = fmt.Sprintf("%s (asked in %s)", h.Hook, h.version)
	}
	return interpret.Implementation{By: []string{name}, Evaluate: func(ctx context.Context,
		in interpret.Inputs) (out interpret.Outputs, err error) {
		answer, err := t.send(ctx, h, operation, in)
		if err != nil {
			return out, err
		}
		switch operation {
		case configv1alpha1.InterpreterOperationInterpretReplica:
			out.Requirements = answer.ReplicaRequirements
			out.Replicas, err = replicas(h.Hook, answer.Replicas)
		case configv1alpha1.InterpreterOperationInterpretComponent:
			out.Components, err = components(h.Hook, answer.Components)
		case configv1alpha1.InterpreterOperationInterpretStatus:
			out.Status, err = status(h.Hook, answer.RawStatus)
		case configv1alpha1.InterpreterOperationInterpretHealth:
			out.Health, err = health(h.Hook, answer.Healthy)
		case configv1alpha1.InterpreterOperationInterpretDependency:
			out.Dependencies, err = dependencies(h.Hook, answer.Dependencies)
		default:
			out.Object, err = t.patched(ctx, h, operation, in, answer)
		}
		return out, err
	}}
}

// nonsense returns the error of an unusable response.
func nonsense(h Hook, operation configv1alpha1.InterpreterOperation, format string, args ...any) error {
	return fmt.Errorf("interpreter webhook %s, %s: its answer %s", h, operation, fmt.Sprintf(format, args...))
}
