package validate

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// Served are the versions in which a hub serves a kind, the preferred one first; none for a kind that it does not
// serve.
type Served func(schema.GroupKind) []string

// CustomizationAdvice warns about valid customizations that are probably mistakes: without any rule, for a kind that
// nothing serves, or for a kind that another customization has rules for in another version. others may contain an
// earlier state of c.
func CustomizationAdvice(c *configv1alpha1.ResourceInterpreterCustomization,
	others []*configv1alpha1.ResourceInterpreterCustomization,
	served Served, convert interpret.Convert) []string {
	var advice []string
	rules := operations(&c.Spec.Customizations)
	if len(rules) == 0 {
		advice = append(advice, "spec.customizations: is empty, so the customization has no effect; add an operation, such as replicaResource or healthInterpretation")
	}
	target := schema.FromAPIVersionAndKind(c.Spec.Target.APIVersion, c.Spec.Target.Kind)
	if why := unused("the customization", target, served(target.GroupKind()), convert); why != "" {
		advice = append(advice, "spec.target: "+why)
	}
	for _, other := range others {
		theirs := schema.FromAPIVersionAndKind(other.Spec.Target.APIVersion, other.Spec.Target.Kind)
		if other.Name == c.Name || theirs.GroupKind() != target.GroupKind() || theirs.Version == target.Version {
			continue
		}
		var both []string
		for _, o := range operations(&other.Spec.Customizations) {
			if slices.ContainsFunc(rules, func(mine operation) bool { return mine.of.Operation == o.of.Operation }) {
				both = append(both, o.of.Field)
			}
		}
		if len(both) > 0 {
			first := min(c.Name, other.Name)
			advice = append(advice, fmt.Sprintf(
				"spec.customizations: ResourceInterpreterCustomization(%s) also defines %s for %s %s: each is used for objects of its own version, and %s, the first by name, for objects of other versions",
				other.Name, strings.Join(both, ", "), target.Kind, theirs.Version, first))
		}
	}
	return advice
}

// WebhookConfigurationAdvice warns about valid rules for webhooks that are never called.
func WebhookConfigurationAdvice(c *configv1alpha1.ResourceInterpreterWebhookConfiguration, served Served,
	convert interpret.Convert) []string {
	if len(c.Webhooks) == 0 {
		return []string{"webhooks: the list is empty, so no webhook is called"}
	}
	var advice []string
	for i, w := range c.Webhooks {
		if len(w.Rules) == 0 {
			advice = append(advice, fmt.Sprintf("webhooks[%d].rules: the list is empty, so %s is never called", i, w.Name))
		}
		for j, r := range w.Rules {
			for _, group := range r.APIGroups {
				for _, kind := range r.Kinds {
					if group == "*" || kind == "*" {
						continue
					}
					gk := schema.GroupKind{Group: group, Kind: kind}
					if versions := served(gk); !slices.Contains(r.APIVersions, "*") || len(versions) == 0 {
						advice = append(advice, neverAsked(fmt.Sprintf("webhooks[%d].rules[%d]: ", i, j), w.Name, gk, r.APIVersions,
							versions, convert)...)
					}
				}
			}
		}
	}
	return advice
}

// neverAsked returns the warning about a rule for a kind that is never used; empty if one of its versions is used.
func neverAsked(place, webhook string, kind schema.GroupKind, versions, served []string,
	convert interpret.Convert) []string {
	why := ""
	for _, version := range versions {
		if why = unused(webhook, kind.WithVersion(version), served, convert); why == "" {
			return nil
		}
	}
	return []string{place + why}
}

// unused returns why a rule for a version of a kind has no effect; empty if it has one.
func unused(who string, kind schema.GroupVersionKind, served []string, convert interpret.Convert) string {
	as := func(version string) string { return schema.GroupVersion{Group: kind.Group, Version: version}.String() }
	switch {
	case len(served) == 0:
		group := "group " + kind.Group
		if kind.Group == "" {
			group = "the core group"
		}
		return fmt.Sprintf("the hub serves no kind %s of %s yet: nothing uses %s until it does", kind.Kind, group, who)
	case convert.Knows(kind.GroupKind().WithVersion(served[0]), kind.Version):
		return ""
	case slices.Contains(served, kind.Version):
		return fmt.Sprintf("the hub reads %s as %s, which cannot be converted to %s: use %s for %s to take effect",
			kind.Kind, as(served[0]), kind.Version, as(served[0]), who)
	}
	names := make([]string, len(served))
	for i, version := range served {
		names[i] = as(version)
	}
	return fmt.Sprintf("the hub serves %s as %s, not as %s: nothing uses %s until it does; use %s if that is the intended version",
		kind.Kind, strings.Join(names, ", "), kind.GroupVersion(), who, names[0])
}
