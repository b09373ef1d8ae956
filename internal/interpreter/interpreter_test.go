package interpreter_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/interpreter"
	"github.com/argosy-io/argosy/test/kit/controllertest"
)

// hub has an interpreter, and the kinds that it notified about.
type hub struct {
	*controllertest.Hub
	t *testing.T
	*interpreter.Interpreter

	mu   sync.Mutex
	told []interpreter.Concerns
}

func start(t *testing.T, objects ...client.Object) *hub {
	h := &hub{Hub: controllertest.New(t), t: t}
	for _, o := range objects {
		h.Make(o)
	}
	h.Run(func(ctx context.Context, mgr ctrl.Manager) error {
		definitions, err := dynamic.NewForConfig(h.Config)
		if err != nil {
			return err
		}
		h.Interpreter, err = interpreter.New(ctx, interpreter.Options{Informers: mgr.GetCache(), Cached: mgr.GetClient(),
			Live:        mgr.GetAPIReader(),
			Definitions: definitions, Mapper: mgr.GetRESTMapper()})
		if err != nil {
			return err
		}
		interpreter.OnChange(h.Interpreter, func(c interpreter.Concerns) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.told = append(h.told, c)
		})
		return mgr.Add(h.Interpreter)
	})
	return h
}

// concerned reports whether a notification included the kind, and resets.
func (h *hub) concerned(kind schema.GroupKind) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	told := h.told
	h.told = nil
	for _, c := range told {
		if c(kind) {
			return true
		}
	}
	return false
}

func ric(t *testing.T, name, version, rules string) *configv1alpha1.ResourceInterpreterCustomization {
	t.Helper()
	c := &configv1alpha1.ResourceInterpreterCustomization{ObjectMeta: metav1.ObjectMeta{Name: name}}
	c.Spec.Target = configv1alpha1.CustomizationTarget{APIVersion: "example.com/" + version, Kind: "Shop"}
	if err := yaml.UnmarshalStrict([]byte(rules), &c.Spec.Customizations); err != nil {
		t.Fatal(err)
	}
	return c
}

func shop(version, phase string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/" + version, "kind": "Shop",
		"metadata": map[string]any{"name": "s", "namespace": "shop"}, "status": map[string]any{"phase": phase}}}
}

// expect waits until the object has the health, or the error contains the text.
func (h *hub) expect(what string, obj *unstructured.Unstructured, want interpret.Health, text string) {
	h.t.Helper()
	h.Eventually(what, func() string {
		health, err := h.Health(h.t.Context(), obj)
		switch {
		case err != nil && text != "" && strings.Contains(err.Error(), text):
			return ""
		case err != nil:
			return err.Error()
		case text != "" || health != want:
			return fmt.Sprintf("it is %q", health)
		}
		return ""
	})
}

var (
	shops = schema.GroupKind{Group: "example.com", Kind: "Shop"}
	pods  = schema.GroupKind{Kind: "Pod"}
)

const openIsHealthy = `{healthInterpretation: {jsonPath: .status.phase, expected: Open}}`

func TestConfigurationAppliesAtStartAndAfterChanges(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		c := ric(t, "shops", "v1", openIsHealthy)
		h := start(t, c)
		if health, err := h.Health(t.Context(), shop("v1", "Closed")); err != nil || health != interpret.Degraded {
			t.Fatalf("before Start a closed shop is %s, %v", health, err)
		}
		if h.concerned(shops) {
			t.Error("the initial configuration was reported as a change")
		}

		c.Spec.Customizations.HealthInterpretation.Expected = "Closed"
		if err := h.Update(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		h.expect("a changed customization counts", shop("v1", "Closed"), interpret.Healthy, "")
		h.Eventually("its kind is told", func() string {
			if !h.concerned(shops) {
				return "not yet"
			}
			return ""
		})

		if err := h.Delete(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		h.expect("without a customization the next tier answers", shop("v1", "Open"), interpret.Healthy, "")
		h.Eventually("its kind is told again", func() string {
			if !h.concerned(shops) {
				return "not yet"
			}
			return ""
		})
	})
}

func TestWebhookConfigurationAffectsKindsOfItsRules(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		h := start(t)
		url := "https://127.0.0.1:1"
		conf := &configv1alpha1.ResourceInterpreterWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "conf"},
			Webhooks: []configv1alpha1.ResourceInterpreterWebhook{{Name: "a.b.c",
				InterpreterContextVersions: []string{"v1alpha1"},
				Rules: []configv1alpha1.RuleWithOperations{{Operations: []configv1alpha1.InterpreterOperation{"InterpretHealth"},
					Rule: configv1alpha1.Rule{APIGroups: []string{"example.com"}, APIVersions: []string{"v1"},
						Kinds: []string{"*"}}}}}}}
		conf.Webhooks[0].ClientConfig.URL = &url
		h.Make(conf)
		h.expect("the webhook is asked", shop("v1", "Open"), "", "interpreter webhook conf/a.b.c, InterpretHealth: ask it")
		h.expect("not for other versions", shop("v2", "Open"), interpret.Healthy, "")
		h.Eventually("its kinds are told, and no others", func() string {
			h.mu.Lock()
			defer h.mu.Unlock()
			for _, c := range h.told {
				if c(pods) {
					return "of Pods as well"
				}
				if c(shops) {
					return ""
				}
			}
			return "not yet"
		})
		h.Make(ric(t, "shops", "v1", openIsHealthy))
		h.expect("a customization outranks a webhook", shop("v1", "Open"), interpret.Healthy, "")
	})
}

func TestWebhookGetsItsVersionOnceDefinitionExists(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		h := start(t)
		url := "https://127.0.0.1:1"
		conf := &configv1alpha1.ResourceInterpreterWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "conf"},
			Webhooks: []configv1alpha1.ResourceInterpreterWebhook{{Name: "a.b.c",
				InterpreterContextVersions: []string{"v1alpha1"},
				Rules: []configv1alpha1.RuleWithOperations{{Operations: []configv1alpha1.InterpreterOperation{"InterpretHealth"},
					Rule: configv1alpha1.Rule{APIGroups: []string{"example.com"}, APIVersions: []string{"v1"},
						Kinds: []string{"Shop"}}}}}}}
		conf.Webhooks[0].ClientConfig.URL = &url
		h.Make(conf)
		h.expect("the webhook is asked in its version", shop("v1", "Open"), "",
			"interpreter webhook conf/a.b.c, InterpretHealth: ask it")
		h.expect("and not in one that nobody can convert", shop("v2", "Open"), interpret.Healthy, "")
		h.Make(&unstructured.Unstructured{Object: map[string]any{"apiVersion": "apiextensions.k8s.io/v1",
			"kind":     "CustomResourceDefinition",
			"metadata": map[string]any{"name": "shops.example.com"},
			"spec": map[string]any{"group": "example.com", "names": map[string]any{"kind": "Shop", "plural": "shops"},
				"versions": []any{map[string]any{"name": "v1"}, map[string]any{"name": "v2"}}}}})
		h.expect("until a definition says that versions differ by name alone", shop("v2", "Open"), "",
			"interpreter webhook conf/a.b.c, InterpretHealth: ask it")
	})
}

func TestDefinitionIsReadAgainForANewCustomization(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		h := start(t, ric(t, "shops", "v1", openIsHealthy))
		definition := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apiextensions.k8s.io/v1",
			"kind":     "CustomResourceDefinition",
			"metadata": map[string]any{"name": "shops.example.com"},
			"spec": map[string]any{"group": "example.com", "names": map[string]any{"kind": "Shop", "plural": "shops"},
				"conversion": map[string]any{"strategy": "None"},
				"versions":   []any{map[string]any{"name": "v1"}, map[string]any{"name": "v2"}}}}}
		h.Make(definition)
		h.expect("its versions differ by name alone", shop("v2", "Closed"), interpret.Degraded, "")

		h.Gone(ric(t, "shops", "v1", openIsHealthy))
		h.expect("no customization is left", shop("v2", "Closed"), interpret.Healthy, "")
		controllertest.Change(h.Hub, definition, func(d *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(d.Object, "Webhook", "spec", "conversion", "strategy")
			d.SetGeneration(d.GetGeneration() + 1)
		})
		h.Make(ric(t, "shops", "v1", openIsHealthy))
		h.expect("its versions need a conversion now", shop("v2", "Open"), "",
			"there is no conversion between the two versions of Shop")
	})
}

func TestCustomizationWorksOnceKindIsDefined(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		h := start(t, ric(t, "shops", "v1", openIsHealthy))
		h.expect("another version than the customization's cannot be judged", shop("v2", "Open"), "",
			`customization "shops" is written for v1: the object is v2`)
		definition := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apiextensions.k8s.io/v1",
			"kind":     "CustomResourceDefinition",
			"metadata": map[string]any{"name": "shops.example.com"},
			"spec": map[string]any{"group": "example.com", "names": map[string]any{"kind": "Shop", "plural": "shops"},
				"conversion": map[string]any{"strategy": "None"},
				"versions":   []any{map[string]any{"name": "v1"}, map[string]any{"name": "v2"}}}}}
		h.Make(definition)
		h.expect("the definition says that versions differ by name alone", shop("v2", "Open"), interpret.Healthy, "")
		h.expect("and so it is for what is not well", shop("v2", "Closed"), interpret.Degraded, "")

		if err := h.Get(t.Context(), client.ObjectKeyFromObject(definition), definition); err != nil {
			t.Fatal(err)
		}
		if err := unstructured.SetNestedField(definition.Object, "Webhook", "spec", "conversion", "strategy"); err != nil {
			t.Fatal(err)
		}
		definition.SetGeneration(definition.GetGeneration() + 1)
		if err := h.Update(t.Context(), definition); err != nil {
			t.Fatal(err)
		}
		h.expect("until the definition says otherwise", shop("v2", "Open"), "",
			"there is no conversion between the two versions of Shop")
	})
}

func TestEachTierWithScriptsOrWebhooksIsMeasured(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		h := start(t, ric(t, "shops", "v1", openIsHealthy), &configv1alpha1.ResourceInterpreterWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: "parks"},
			Webhooks: []configv1alpha1.ResourceInterpreterWebhook{{Name: "parks.example.com",
				ClientConfig:               admissionregistrationv1.WebhookClientConfig{URL: new("https://127.0.0.1:1")},
				InterpreterContextVersions: []string{"v1alpha1"},
				Rules: []configv1alpha1.RuleWithOperations{{
					Operations: []configv1alpha1.InterpreterOperation{configv1alpha1.InterpreterOperationInterpretHealth},
					Rule: configv1alpha1.Rule{APIGroups: []string{"example.com"}, APIVersions: []string{"v1"},
						Kinds: []string{"Park"}}}}}},
		})
		park := shop("v1", "Open")
		park.SetKind("Park")
		ray := shop("v1", "Open")
		ray.SetAPIVersion("ray.io/v1")
		ray.SetKind("RayCluster")
		for _, obj := range []*unstructured.Unstructured{shop("v1", "Open"), park, ray} {
			_, _ = h.Health(t.Context(), obj) // the webhook fails
		}
		counts := map[string]float64{}
		families, err := metrics.Registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			if f.GetName() != "argosy_interpreter_calls_total" {
				continue
			}
			for _, m := range f.GetMetric() {
				name := ""
				for _, l := range m.GetLabel() { // sorted: kind, operation, result, source
					name += l.GetValue() + " "
				}
				counts[strings.TrimSpace(name)] = m.GetCounter().GetValue()
			}
		}
		for _, series := range []string{
			"Shop.example.com InterpretHealth success ResourceInterpreterCustomization",
			"Park.example.com InterpretHealth error ResourceInterpreterWebhookConfiguration",
			"RayCluster.ray.io InterpretHealth success shipped script",
		} {
			if counts[series] < 1 {
				t.Errorf("%s is not counted: %v", series, counts)
			}
		}
	})
}
