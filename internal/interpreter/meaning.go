package interpreter

import (
	"crypto/sha256"
	"encoding/json"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/webhook"
)

// meaning summarizes the configuration. Equal meanings build equal tiers.
type meaning struct {
	made bool
	// kinds has, per kind and customization name, a digest of the customization and the definition.
	kinds map[schema.GroupKind]map[string]digest
	// hooks are the webhook configurations by name.
	hooks map[string]hooks
}

type hooks struct {
	digest
	configuration *configv1alpha1.ResourceInterpreterWebhookConfiguration
}

type digest [sha256.Size]byte

func digestOf(v ...any) digest {
	// API types can always be marshalled.
	text, _ := json.Marshal(v)
	return sha256.Sum256(text)
}

func newMeaning(customizations []configv1alpha1.ResourceInterpreterCustomization,
	configurations []configv1alpha1.ResourceInterpreterWebhookConfiguration, known known) meaning {
	m := meaning{made: true, kinds: map[schema.GroupKind]map[string]digest{}, hooks: map[string]hooks{}}
	for i := range customizations {
		c := &customizations[i]
		kind := kindOf(c)
		if m.kinds[kind] == nil {
			m.kinds[kind] = map[string]digest{}
		}
		version := ""
		if d := known[kind]; d != nil {
			version = d.resourceVersion
		}
		m.kinds[kind][c.Name] = digestOf(c.Spec, version)
	}
	for i := range configurations {
		c := &configurations[i]
		var versions []string // of the definitions of its kinds
		for _, kind := range webhook.Kinds(c) {
			if d := known[kind]; d != nil {
				versions = append(versions, d.resourceVersion)
			}
		}
		m.hooks[c.Name] = hooks{digestOf(c.Webhooks, versions), c}
	}
	return m
}

func kindOf(c *configv1alpha1.ResourceInterpreterCustomization) schema.GroupKind {
	return schema.FromAPIVersionAndKind(c.Spec.Target.APIVersion, c.Spec.Target.Kind).GroupKind()
}

// changed returns the kinds affected by the change from m to next. ok is false if there are none.
func (m meaning) changed(next meaning) (concerns Concerns, ok bool) {
	kinds := map[schema.GroupKind]bool{}
	for _, all := range []map[schema.GroupKind]map[string]digest{m.kinds, next.kinds} {
		for kind := range all {
			if !maps.Equal(m.kinds[kind], next.kinds[kind]) {
				kinds[kind] = true
			}
		}
	}
	var configurations []*configv1alpha1.ResourceInterpreterWebhookConfiguration
	for _, sides := range [][2]meaning{{m, next}, {next, m}} {
		for name, of := range sides[0].hooks {
			if sides[1].hooks[name].digest != of.digest {
				configurations = append(configurations, of.configuration)
			}
		}
	}
	return func(kind schema.GroupKind) bool {
		return kinds[kind] || slices.ContainsFunc(configurations,
			func(c *configv1alpha1.ResourceInterpreterWebhookConfiguration) bool { return webhook.Concerns(c, kind) })
	}, !m.made || len(kinds)+len(configurations) > 0
}
