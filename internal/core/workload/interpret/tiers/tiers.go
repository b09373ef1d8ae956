// Package tiers has the order of the tiers: configuration of users first, then built-in ones. It is the only list, for
// the hub and for explanations.
package tiers

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/builtin"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/customization"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/schemas"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/script"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/shipped"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/webhook"
	"github.com/argosy-io/argosy/internal/core/workload/kruise"
)

// The names of the tiers.
const (
	Customization = "ResourceInterpreterCustomization"
	Webhook       = "ResourceInterpreterWebhookConfiguration"
	Shipped       = "shipped script"
	BuiltIn       = "built in"
	Standard      = "standard conditions"
)

// Sources returns all tiers in order of precedence. The first two are configured by users.
func Sources(customizations, webhooks interpret.Tier) []interpret.Source {
	return slices.Concat([]interpret.Source{{Name: Customization, Tier: customizations}, {Name: Webhook, Tier: webhooks}},
		below, []interpret.Source{{Name: Standard, Tier: last}})
}

// Below returns the built-in tiers that know kinds, in order of precedence. They complete what customizations answer.
func Below() interpret.Tiers { return TiersOf(below) }

// WithoutUsers returns the tiers without configuration of users, in order of precedence.
func WithoutUsers() interpret.Tiers { return append(Below(), last) }

// TiersOf returns the tiers of sources.
func TiersOf(sources []interpret.Source) interpret.Tiers {
	all := make(interpret.Tiers, len(sources))
	for i, s := range sources {
		all[i] = s.Tier
	}
	return all
}

// Offline returns an interpreter with these customizations, in any order, and the built-in tiers, without webhooks.
func Offline(customizations []*configv1alpha1.ResourceInterpreterCustomization) interpret.Interpreter {
	customized := customization.New(customizations,
		customization.Options{Schema: Schema, Convert: Convert, Below: Below()})
	return interpret.New(append([]interpret.Tier{customized}, WithoutUsers()...)...)
}

var (
	below = []interpret.Source{{Name: Shipped, Tier: shipped.Tier()}, {Name: BuiltIn, Tier: builtin.Tier()}}
	// last is for kinds that none of these know.
	last = builtin.Standard(Below()...)
)

// Explain returns which tier and object implement each operation for a kind, with these customizations and webhook
// configurations, in any order. o is additional knowledge of the hub; the zero value means built-in knowledge only.
func Explain(kind schema.GroupVersionKind, customizations []*configv1alpha1.ResourceInterpreterCustomization,
	configurations []*configv1alpha1.ResourceInterpreterWebhookConfiguration, o customization.Options) []interpret.Answer {
	if o.Schema == nil {
		o.Schema = Schema
	}
	if o.Convert == nil {
		o.Convert = Convert
	}
	return interpret.Explain(kind, Sources(customization.New(customizations, o),
		webhook.New(configurations, webhook.Options{Convert: o.Convert})))
}

var known = sync.OnceValues(schemas.Builtin)

// Schema returns the built-in schema of a kind; nil if unknown.
func Schema(kind schema.GroupVersionKind) *script.Schema {
	all, err := known()
	if err != nil {
		return nil // the tests of schemas check the embedded files
	}
	return script.SchemaOf(all.Get(kind))
}

// Convert converts obj, or a status without a version, to another version of its kind; nil if unsupported.
func Convert(obj *unstructured.Unstructured, version string) (*unstructured.Unstructured, error) {
	kind := obj.GroupVersionKind()
	if !kruise.Converts(kind.GroupKind()) {
		return nil, nil
	}
	if kind.Version == "" {
		kind.Version = version
		status, _ := obj.Object["status"].(map[string]any)
		out := &unstructured.Unstructured{Object: map[string]any{"status": kruise.Status(kind, status)}}
		out.SetGroupVersionKind(kind)
		return out, nil
	}
	return kruise.Convert(obj, schema.GroupVersion{Group: kind.Group, Version: version}.String())
}
