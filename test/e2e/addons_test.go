package e2e

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/argosy-io/argosy/test/kit"
)

// An operator goes to each member with its own definitions and webhooks. The hub has a definition of the same kind, and
// acts on none of what it hands on; what the operator writes in a member stays.
func TestAnOperatorIsInstalledInMembersAndTheHubActsOnNoneOfIt(t *testing.T) {
	t.Parallel()
	const crds, defined = "apiextensions.k8s.io/v1", "workloadrebalancers.apps.karmada.io"
	const admission, space = "admissionregistration.k8s.io/v1", "addon-system"
	m1, m2 := fleet.Members["m1"], fleet.Members["m2"]
	theHubs := fleet.Hub.Find(t, crds, "CustomResourceDefinition", "", defined)
	if theHubs == nil {
		t.Fatal("the hub does not define the kind")
	}
	definition := func(label string) string {
		u := theHubs.DeepCopy()
		u.Object = map[string]any{"apiVersion": u.Object["apiVersion"], "kind": u.Object["kind"], "spec": u.Object["spec"],
			"metadata": map[string]any{"name": defined, "labels": map[string]any{"release": label}}}
		_ = unstructured.SetNestedMap(u.Object,
			map[string]any{"strategy": "Webhook", "webhook": map[string]any{"conversionReviewVersions": []any{"v1"},
				"clientConfig": map[string]any{"service": map[string]any{"namespace": space, "name": "operator",
					"path": "/convert"}}}}, "spec", "conversion")
		text, err := yaml.Marshal(u.Object)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	file := filepath.Join(t.TempDir(), "operator.yaml")
	render := func(label string) {
		t.Helper()
		text := fmt.Sprintf(`%[2]s
---
{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingWebhookConfiguration, metadata: {name: addon-test, labels: {release: "%[3]s"}}, webhooks: [{name: a.addon.example.com, failurePolicy: Fail,
  sideEffects: None, admissionReviewVersions: [v1], clientConfig: {service: {namespace: %[1]s, name: operator}}, rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}],
  objectSelector: {matchLabels: {addon-test: "yes"}}}]}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: operator, namespace: %[1]s}, spec: {replicas: 1, selector: {matchLabels: {app: operator}}, template: {metadata: {labels: {app: operator}}, spec: {containers: [{name: c, image: "example.com/o:1"}]}}}}
---
{apiVersion: v1, kind: Secret, metadata: {name: kruise-webhook-certs, namespace: %[1]s}, data: {key: eA==}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: "addon:test"}, rules: []}
---
{apiVersion: batch/v1, kind: Job, metadata: {name: hook, namespace: %[1]s, annotations: {helm.sh/hook: post-install}}, spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: x}]}}}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: %[1]s}}
`, space, definition(label), label)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := command(t, "addons", "enable", "operator", "-f", file, "--clusters", "m1,m2")
		if err != nil || !strings.Contains(out, "addon operator is enabled") ||
			!strings.Contains(out, "Job hook is a Helm hook (post-install)") {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	render("one")
	for _, m := range []kit.Cluster{m1, m2} {
		crd := m.Find(t, crds, "CustomResourceDefinition", "", defined)
		m.RemoveAtEnd(t, crd)
		for kind, of := range map[string]string{"Deployment": "apps/v1", "Secret": "v1"} {
			name := map[string]string{"Deployment": "operator", "Secret": "kruise-webhook-certs"}[kind]
			u := m.Find(t, of, kind, space, name)
			if u == nil || u.Object["data"] != nil {
				t.Errorf("%s: the %s is %v", m.Name, kind, u)
			}
		}
		if kit.Field(crd, "spec", "conversion", "strategy") != "Webhook" ||
			m.Find(t, admission, "MutatingWebhookConfiguration", "", "addon-test") == nil ||
			m.Find(t, "rbac.authorization.k8s.io/v1", "ClusterRole", "", "addon:test") == nil ||
			m.Find(t, "batch/v1", "Job", space, "hook") != nil {
			t.Errorf("%s has not what was rendered: %v", m.Name, crd.Object["metadata"])
		}
	}
	if fleet.Members["m3"].Find(t, crds, "CustomResourceDefinition", "", defined) != nil {
		t.Error("m3 has it, too")
	}
	ofHub := func(when string) {
		t.Helper()
		now := fleet.Hub.Find(t, crds, "CustomResourceDefinition", "", defined)
		if now.GetGeneration() != theHubs.GetGeneration() || now.GetUID() != theHubs.GetUID() {
			t.Errorf("%s, the hub's own definition is another: %v", when, now.Object["metadata"])
		}
		if fleet.Hub.Find(t, admission, "MutatingWebhookConfiguration", "", "addon-test") != nil ||
			fleet.Hub.Find(t, "apps/v1", "Deployment", space, "operator") != nil {
			t.Errorf("%s, the hub asks the webhook itself", when)
		}
	}
	ofHub("it is installed")

	// The operator in m1 signs for itself, which would be lost with the next release.
	ca := base64.StdEncoding.EncodeToString(m1.Config.CAData)
	m1.Change(t, crds, "CustomResourceDefinition", "", defined, func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(u.Object, ca, "spec", "conversion", "webhook", "clientConfig", "caBundle")
	})
	m1.Change(t, admission, "MutatingWebhookConfiguration", "", "addon-test", func(u *unstructured.Unstructured) {
		kit.Field(u, "webhooks").([]any)[0].(map[string]any)["clientConfig"] = map[string]any{"url": "https://127.0.0.1:1/a",
			"caBundle": ca}
	})
	render("two")
	kit.Eventually(t, "the next release is there, and what the operator signed, too", func() string {
		crd, hooks := m1.Find(t, crds, "CustomResourceDefinition", "", defined),
			m1.Find(t, admission, "MutatingWebhookConfiguration", "", "addon-test")
		config, _ := kit.Field(hooks, "webhooks").([]any)[0].(map[string]any)["clientConfig"].(map[string]any)
		if crd.GetLabels()["release"] != "two" || hooks.GetLabels()["release"] != "two" {
			return "the labels are " + fmt.Sprint(crd.GetLabels(), hooks.GetLabels())
		}
		if kit.Field(crd, "spec", "conversion", "webhook", "clientConfig", "caBundle") != ca || config["caBundle"] != ca ||
			config["url"] != "https://127.0.0.1:1/a" || config["service"] != nil {
			return fmt.Sprintf("they are reached as %v and %v", kit.Field(crd, "spec", "conversion"), config)
		}
		return ""
	})
	out, err := command(t, "addons", "list")
	if err != nil || !strings.Contains(out, "operator") || !strings.Contains(out, "6 objects, all applied") ||
		!strings.Contains(out, "karmada-descheduler") {
		t.Errorf("%v\n%s", err, out)
	}

	if out, err := command(t, "addons", "disable", "operator"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	kit.Eventually(t, "the operator is gone, its definition stays and is the member's", func() string {
		if m1.Find(t, admission, "MutatingWebhookConfiguration", "", "addon-test") != nil ||
			m1.Find(t, "apps/v1", "Deployment", space, "operator") != nil {
			return "it is there"
		}
		if crd := m1.Find(t, crds, "CustomResourceDefinition", "", defined); crd == nil ||
			crd.GetLabels()["karmada.io/managed"] != "" || crd.GetDeletionTimestamp() != nil {
			return fmt.Sprintf("the definition is %v", crd)
		}
		return ""
	})
	ofHub("it is gone")
	if out, err := command(t, "addons", "enable", "karmada-descheduler"); err != nil ||
		!strings.Contains(out, "is enabled") {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err := command(t, "addons", "enable", "openkruise"); err == nil || !strings.Contains(out, "helm template") {
		t.Errorf("%v\n%s", err, out)
	}
}
