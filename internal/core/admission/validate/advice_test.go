package validate

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
)

// served returns a hub with Deployments, and with Shops that are read as v2; v1 and v2 of a Shop are the same but for
// the name.
func served(kind schema.GroupKind) []string {
	switch kind {
	case schema.GroupKind{Group: "apps", Kind: "Deployment"}:
		return []string{"v1"}
	case schema.GroupKind{Group: "example.com", Kind: "Shop"}, schema.GroupKind{Group: "example.com", Kind: "Stall"}:
		return []string{"v2", "v1"}
	}
	return nil
}

func relabel(obj *unstructured.Unstructured, version string) (*unstructured.Unstructured, error) {
	if obj.GetKind() != "Shop" || version != "v1" && version != "v2" {
		return nil, nil
	}
	out := obj.DeepCopy()
	out.SetAPIVersion("example.com/" + version)
	return out, nil
}

func TestCustomizationWithoutEffectIsReported(t *testing.T) {
	const health = `healthInterpretation: {jsonPath: .status.phase, expected: Fine}`
	ric := func(name, apiVersion, kind, rules string) *configv1alpha1.ResourceInterpreterCustomization {
		c := &configv1alpha1.ResourceInterpreterCustomization{}
		parse(t, fmt.Sprintf("{metadata: {name: %s}, spec: {target: {apiVersion: %s, kind: %s}, customizations: {%s}}}", name,
			apiVersion, kind, rules), c)
		return c
	}
	others := []*configv1alpha1.ResourceInterpreterCustomization{
		ric("old-shop", "example.com/v1", "Shop", health+
			", replicaResource: {jsonPath: .spec.n}, replicaRevision: {jsonPath: .spec.n}"),
		ric("c", "example.com/v2", "Shop", health),
	}
	for name, c := range map[string]struct {
		given *configv1alpha1.ResourceInterpreterCustomization
		want  []string
	}{
		"what is used": {ric("c", "apps/v1", "Deployment", health), nil},
		"one without operations": {ric("c", "apps/v1", "Deployment", ""),
			[]string{"spec.customizations: is empty, so the customization has no effect; add an operation, such as replicaResource or healthInterpretation"}},
		"a kind that is not there yet": {ric("c", "example.org/v1", "Widget", health),
			[]string{"spec.target: the hub serves no kind Widget of group example.org yet: nothing uses the customization until it does"}},
		"a kind of another group": {ric("c", "v1", "Deployment", health),
			[]string{"spec.target: the hub serves no kind Deployment of the core group yet: nothing uses the customization until it does"}},
		"a version that is none": {ric("c", "apps/v9", "Deployment", health),
			[]string{"spec.target: the hub serves Deployment as apps/v1, not as apps/v9: nothing uses the customization until it does; use apps/v1 if that is the intended version"}},
		"a version that nobody converts to": {ric("c", "example.com/v1", "Stall", health),
			[]string{"spec.target: the hub reads Stall as example.com/v2, which cannot be converted to v1: use example.com/v2 for the customization to take effect"}},
		"one of two, each for its version": {ric("c", "example.com/v2", "Shop", health+
			", replicaResource: {jsonPath: .spec.n}"),
			[]string{"spec.customizations: ResourceInterpreterCustomization(old-shop) also defines replicaResource, healthInterpretation for Shop v1: each is used for objects of its own version, and c, the first by name, for objects of other versions"}},
		"one of two that share no operation": {ric("c", "example.com/v2", "Shop", "statusReflection: {jsonPath: .status}"),
			nil},
	} {
		if diff := cmp.Diff(c.want, CustomizationAdvice(c.given, others, served, relabel)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestUnusedWebhookIsReported(t *testing.T) {
	for webhooks, want := range map[string][]string{
		`[]`:              {"webhooks: the list is empty, so no webhook is called"},
		`[{name: a.b.c}]`: {"webhooks[0].rules: the list is empty, so a.b.c is never called"},
		`[{name: a.b.c, rules: [{apiGroups: ["*"], apiVersions: [v9], kinds: [Deployment]}, {apiGroups: [apps], apiVersions: [v1], kinds: ["*"]}]}]`: nil,
		`[{name: a.b.c, rules: [{apiGroups: [apps, example.com], apiVersions: ["*"], kinds: [Deployment]}]}]`: {
			"webhooks[0].rules[0]: the hub serves no kind Deployment of group example.com yet: nothing uses a.b.c until it does"},
		`[{name: a.b.c, rules: [{apiGroups: [apps], apiVersions: [v1], kinds: [Deployment]}, {apiGroups: [apps], apiVersions: [v8, v9], kinds: [Deployment]}]}]`: {
			"webhooks[0].rules[1]: the hub serves Deployment as apps/v1, not as apps/v9: nothing uses a.b.c until it does; use apps/v1 if that is the intended version"},
		`[{name: a.b.c, rules: [{apiGroups: [example.com], apiVersions: [v1], kinds: [Shop]}]}]`: nil,
	} {
		c := &configv1alpha1.ResourceInterpreterWebhookConfiguration{}
		parse(t, "{webhooks: "+webhooks+"}", c)
		if diff := cmp.Diff(want, WebhookConfigurationAdvice(c, served, relabel)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", webhooks, diff)
		}
	}
}
