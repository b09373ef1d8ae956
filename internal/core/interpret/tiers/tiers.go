// Package tiers says in which order a kind's meaning is looked for: what users say, then what Argosy knows. It is the
// one list of the tiers, for the hub, and for whoever explains what the hub does.
package tiers

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/interpret"
	"github.com/argosy-io/argosy/internal/core/interpret/builtin"
	"github.com/argosy-io/argosy/internal/core/interpret/customization"
	"github.com/argosy-io/argosy/internal/core/interpret/shipped"
	"github.com/argosy-io/argosy/internal/core/interpret/webhook"
)

// The names of the tiers.
const (
	Customization = "ResourceInterpreterCustomization"
	Webhook       = "ResourceInterpreterWebhookConfiguration"
	Shipped       = "shipped script"
	BuiltIn       = "built in"
)

// Sources are all tiers, in the order in which they are asked; the first two are what users say.
func Sources(customizations, webhooks interpret.Tier) []interpret.Source {
	return append([]interpret.Source{{Name: Customization, Tier: customizations}, {Name: Webhook, Tier: webhooks}},
		below...)
}

// Below are the tiers that Argosy brings, in the order in which they are asked.
func Below() []interpret.Tier {
	all := make([]interpret.Tier, len(below))
	for i, s := range below {
		all[i] = s.Tier
	}
	return all
}

// Offline is what kinds mean by these customizations, in any order, and by what Argosy knows. Webhooks are not asked.
func Offline(customizations []*configv1alpha1.ResourceInterpreterCustomization) interpret.Interpreter {
	said := customization.New(customizations, customization.Options{Schema: Schema, Convert: Convert, Below: Below()})
	return interpret.New(append([]interpret.Tier{said}, Below()...)...)
}

var below = []interpret.Source{{Name: Shipped, Tier: shipped.Tier()}, {Name: BuiltIn, Tier: builtin.Tier()}}

// Explain says which tier answers each operation for a kind, and by which object, on a hub with these customizations
// and webhook configurations, in any order. What the hub knows of kinds besides is in o; by its zero value it knows
// what Argosy knows by itself.
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
