package tiers_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	custom "github.com/argosy-io/argosy/internal/core/workload/interpret/customization"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/tiers"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/webhook"
)

func customization(t *testing.T, name, spec string) *configv1alpha1.ResourceInterpreterCustomization {
	t.Helper()
	c := &configv1alpha1.ResourceInterpreterCustomization{}
	c.Name = name
	if err := yaml.UnmarshalStrict([]byte(spec), &c.Spec); err != nil {
		t.Fatal(err)
	}
	return c
}

// none is the absence of customizations: only the built-in interpretation is known.
var none custom.Options

// shown is who answers, a line for each operation: "InterpretHealth: tier [by]".
func shown(answers []interpret.Answer) (lines []string) {
	for _, a := range answers {
		if a.Tier == "" {
			lines = append(lines, fmt.Sprintf("%s: (%s)", a.Operation, a.Default))
			continue
		}
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s: %s %s", a.Operation, a.Tier, strings.Join(a.By, " "))))
	}
	return lines
}

func TestExplainNamesFirstTierPerOperation(t *testing.T) {
	customizations := []*configv1alpha1.ResourceInterpreterCustomization{
		customization(t, "zeal", `{target: {apiVersion: apps/v1, kind: Deployment}, customizations: {dependencyInterpretation: {luaScript: "function GetDependencies(o) return {} end"}}}`),
		customization(t, "able", `{target: {apiVersion: apps/v1, kind: Deployment}, customizations: {healthInterpretation: {jsonPath: .status.phase, expected: Fine},
			dependencyInterpretation: {luaScript: "function GetDependencies(o) return {} end"}}}`),
	}
	hook := &configv1alpha1.ResourceInterpreterWebhookConfiguration{
		Webhooks: []configv1alpha1.ResourceInterpreterWebhook{{Name: "h.example.com",
			Rules: []configv1alpha1.RuleWithOperations{{Operations: []configv1alpha1.InterpreterOperation{"InterpretHealth",
				"Retain"},
				Rule: configv1alpha1.Rule{APIGroups: []string{"apps"}, APIVersions: []string{"v1"}, Kinds: []string{"*"}}}}}}}
	hook.Name = "hooks"
	hooks := []*configv1alpha1.ResourceInterpreterWebhookConfiguration{hook}

	for kind, want := range map[schema.GroupVersionKind][]string{
		{Group: "apps", Version: "v1", Kind: "Deployment"}: {
			"InterpretReplica: built in",
			"InterpretComponent: built in",
			"ReviseReplica: built in",
			"Retain: ResourceInterpreterWebhookConfiguration hooks/h.example.com",
			"InterpretStatus: built in",
			"AggregateStatus: built in",
			"InterpretHealth: ResourceInterpreterCustomization able",
			"InterpretDependency: ResourceInterpreterCustomization able zeal",
		},
		{Group: "example.com", Version: "v1", Kind: "Shop"}: {
			"InterpretReplica: (no replicas to divide)",
			"InterpretComponent: (no components)",
			"ReviseReplica: (unchanged in each cluster)",
			"Retain: (fields that the template sets come from the template, all others from the member)",
			"InterpretStatus: standard conditions",
			"AggregateStatus: standard conditions",
			"InterpretHealth: standard conditions",
			"InterpretDependency: (no dependencies)",
		},
		{Version: "v1", Kind: "ConfigMap"}: {
			"InterpretReplica: (no replicas to divide)",
			"InterpretComponent: (no components)",
			"ReviseReplica: (unchanged in each cluster)",
			"Retain: (fields that the template sets come from the template, all others from the member)",
			"InterpretStatus: (the status as a whole)",
			"AggregateStatus: (the template's status is not changed)",
			"InterpretHealth: (healthy once applied)",
			"InterpretDependency: (no dependencies)",
		},
	} {
		got := shown(tiers.Explain(kind, customizations, hooks, none))
		if kind.Kind == "Deployment" { // whether it has components is the kind's own affair
			got[1], want[1] = "", ""
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", kind, diff)
		}
	}
	seen := strings.Join(shown(tiers.Explain(schema.GroupVersionKind{Group: "flink.apache.org", Version: "v1beta1",
		Kind: "FlinkDeployment"}, nil, nil, none)), "\n")
	if !strings.Contains(seen, "InterpretHealth: shipped script") {
		t.Errorf("a kind that we ship scripts for is explained as\n%s", seen)
	}
}

func TestExplainNamesOtherVersions(t *testing.T) {
	health := `healthInterpretation: {jsonPath: .status.phase, expected: Fine}`
	customizations := []*configv1alpha1.ResourceInterpreterCustomization{
		customization(t, "old", `{target: {apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet}, customizations: {`+health+
			`}}`),
		customization(t, "new", `{target: {apiVersion: apps.kruise.io/v1beta1, kind: CloneSet}, customizations: {`+health+
			`}}`),
		customization(t, "typo", `{target: {apiVersion: apps.kruise.io/v9, kind: CloneSet}, customizations: {`+health+`}}`),
	}
	for version, want := range map[string]string{
		"v1alpha1": "[old] besides [{v1beta1 new} {v9 typo}]",
		"v1beta1":  "[new] besides [{v1alpha1 old} {v9 typo}]",
	} {
		for _, a := range tiers.Explain(schema.GroupVersionKind{Group: "apps.kruise.io", Version: version, Kind: "CloneSet"},
			customizations, nil, none) {
			if got := fmt.Sprintf("%v besides %v", a.By,
				a.Besides); a.Operation == configv1alpha1.InterpreterOperationInterpretHealth && got != want {
				t.Errorf("health of %s is answered by %s, want %s", version, got, want)
			}
		}
	}
}

func TestWebhookForOneOpenKruiseVersionGetsBoth(t *testing.T) {
	hook := &configv1alpha1.ResourceInterpreterWebhookConfiguration{
		Webhooks: []configv1alpha1.ResourceInterpreterWebhook{{Name: "h.example.com",
			Rules: []configv1alpha1.RuleWithOperations{{Operations: []configv1alpha1.InterpreterOperation{"InterpretHealth"},
				Rule: configv1alpha1.Rule{APIGroups: []string{"apps.kruise.io", "apps"}, APIVersions: []string{"v1alpha1"},
					Kinds: []string{"*"}}}}}}}
	hook.Name = "hooks"
	for kind, want := range map[schema.GroupVersionKind]string{
		{Group: "apps.kruise.io", Version: "v1beta1", Kind: "CloneSet"}:  "[hooks/h.example.com (asked in v1alpha1)]",
		{Group: "apps.kruise.io", Version: "v1alpha1", Kind: "CloneSet"}: "[hooks/h.example.com]",
		{Group: "apps", Version: "v1", Kind: "Deployment"}:               "[]", // there is no v1alpha1 of it
	} {
		for _, a := range tiers.Explain(kind, nil, []*configv1alpha1.ResourceInterpreterWebhookConfiguration{hook}, none) {
			if got := fmt.Sprint(a.By); a.Operation == configv1alpha1.InterpreterOperationInterpretHealth && got != want {
				t.Errorf("health of %s is answered by %s of %s, want %s", kind, got, a.Tier, want)
			}
		}
	}
}

func TestConvertOpenKruiseObjects(t *testing.T) {
	obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet",
		"metadata": map[string]any{"name": "c"}, "spec": map[string]any{"replicas": int64(2)}}}
	out, err := tiers.Convert(obj, "v1alpha1")
	if err != nil || out == nil || out.GetAPIVersion() != "apps.kruise.io/v1alpha1" {
		t.Errorf("converted to %v, %v", out, err)
	}
	if out, err = tiers.Convert(&unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1",
		"kind": "Shop"}}, "v2"); out != nil || err != nil {
		t.Errorf("a kind that nobody knows is converted to %v, %v", out, err)
	}
	if s := tiers.Schema(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}); s == nil ||
		s.Properties["spec"] == nil {
		t.Error("the fields of a Deployment are not known")
	}
}

// A status says by other names in one version what it says in the other; members have either, and who is asked has one.
func TestStatusesAreConverted(t *testing.T) {
	const kind, ours = "DaemonSet", "resourceTemplateGeneration"
	daemons := func(version, field, hash string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps.kruise.io/" + version, "kind": kind,
			"metadata": map[string]any{"name": "d"},
			"status":   map[string]any{field: hash, ours: int64(7)}}}
	}
	var items []workv1alpha2.AggregatedStatusItem
	for _, m := range []struct{ name, status string }{{"old", `{"daemonSetHash":"a","resourceTemplateGeneration":7}`},
		{"new", `{"updateRevision":"b","resourceTemplateGeneration":7}`}, {"silent", ""}} {
		item := workv1alpha2.AggregatedStatusItem{ClusterName: m.name}
		if m.status != "" {
			item.Status = &runtime.RawExtension{Raw: []byte(m.status)}
		}
		items = append(items, item)
	}
	fields := map[string]string{"v1alpha1": "daemonSetHash", "v1beta1": "updateRevision"}
	for version, field := range fields {
		script := fmt.Sprintf(`{target: {apiVersion: apps.kruise.io/%s, kind: DaemonSet}, customizations: {
			statusReflection: {luaScript: "function ReflectStatus(o) return {seen = o.status.%s} end"},
			statusAggregation: {luaScript: "function AggregateStatus(o, items) local all = ''; for _, i in ipairs(items) do if i.status ~= nil then all = all .. i.status.%[2]s .. i.status.resourceTemplateGeneration end end o.status = {%[2]s = all}; return o end"}}}`, version, field)
		i := interpret.New(custom.New([]*configv1alpha1.ResourceInterpreterCustomization{customization(t, "c", script)},
			custom.Options{Convert: tiers.Convert}))
		hook := &configv1alpha1.ResourceInterpreterWebhookConfiguration{
			Webhooks: []configv1alpha1.ResourceInterpreterWebhook{{Name: "h.example.com",
				InterpreterContextVersions: []string{"v1alpha1"},
				Rules: []configv1alpha1.RuleWithOperations{{Operations: []configv1alpha1.InterpreterOperation{"AggregateStatus"},
					Rule: configv1alpha1.Rule{APIGroups: []string{"apps.kruise.io"}, APIVersions: []string{version},
						Kinds: []string{kind}}}}}}}
		hook.Name = "hooks"
		var sent []string
		asked := interpret.New(webhook.New([]*configv1alpha1.ResourceInterpreterWebhookConfiguration{hook},
			webhook.Options{Convert: tiers.Convert, NewID: func() types.UID { return "id" },
				Call: func(_ context.Context, _ webhook.Hook, body []byte) ([]byte, error) {
					var c configv1alpha1.ResourceInterpreterContext
					if err := json.Unmarshal(body, &c); err != nil {
						return nil, err
					}
					sent = nil
					for _, item := range c.Request.AggregatedStatus {
						if item.Status != nil {
							var status map[string]any
							_ = json.Unmarshal(item.Status.Raw, &status)
							sent = append(sent, fmt.Sprint(status[field], status[ours]))
						}
					}
					c.Response, c.Request = &configv1alpha1.ResourceInterpreterResponse{UID: c.Request.UID, Successful: true}, nil
					return json.Marshal(c)
				}}))
		for of, named := range fields {
			seen, err := i.Reflect(t.Context(), daemons(of, named, "x"))
			if err != nil || seen["seen"] != "x" {
				t.Errorf("of a member's %s a script for %s makes %v, %v", of, version, seen, err)
			}
			got, err := i.Aggregate(t.Context(), daemons(of, named, ""), items)
			if err != nil {
				t.Errorf("a template of %s by a script for %s: %v", of, version, err)
				continue
			}
			if all, _, _ := unstructured.NestedString(got.Object, "status", named); all != "a7b7" {
				t.Errorf("a template of %s has by a script for %s the status %v, want %s: a7b7", of, version, got.Object["status"],
					named)
			}
			if _, err := asked.Aggregate(t.Context(), daemons(of, named, ""), items); err != nil ||
				fmt.Sprint(sent) != "[a7 b7]" {
				t.Errorf("of a template of %s a webhook for %s is reported: %v, %v", of, version, sent, err)
			}
		}
	}
	if raw := string(items[1].Status.Raw); !strings.Contains(raw, "updateRevision") {
		t.Errorf("the items given are changed: %s", raw)
	}
}

// A controller on the hub that sets the same conditions as members would write against the hub for ever.
func TestACustomizationTurnsStandardConditionsOff(t *testing.T) {
	template := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "certs.example.com/v1",
		"kind": "Certificate", "metadata": map[string]any{"name": "c"}, "status": map[string]any{"conditions": []any{
			map[string]any{"type": "Ready", "status": "False"}}}}}
	items := []workv1alpha2.AggregatedStatusItem{{ClusterName: "m1", Applied: true,
		Status: &runtime.RawExtension{Raw: []byte(`{"conditions":[{"type":"Ready","status":"True"}]}`)}}}
	off := customization(t, "off", `{target: {apiVersion: certs.example.com/v1, kind: Certificate}, customizations: {
		statusAggregation: {luaScript: "function AggregateStatus(desiredObj, statusItems) return desiredObj end"}}}`)
	for want, all := range map[string][]*configv1alpha1.ResourceInterpreterCustomization{"True": nil, "False": {off}} {
		got, err := tiers.Offline(all).Aggregate(t.Context(), template, items)
		if err != nil {
			t.Fatal(err)
		}
		list, _, _ := unstructured.NestedSlice(got.Object, "status", "conditions")
		if is := list[0].(map[string]any)["status"]; is != want {
			t.Errorf("with %d customizations Ready is %v, want %s", len(all), is, want)
		}
	}
}
