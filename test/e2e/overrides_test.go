package e2e

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/test/kit"
)

// label gives a member cluster a label until the test ends; value "" takes it off.
func label(t *testing.T, member, key, value string) {
	t.Helper()
	set := func(value string) func(*unstructured.Unstructured) {
		return func(u *unstructured.Unstructured) {
			labels := map[string]string{key: value}
			for k, v := range u.GetLabels() {
				if k != key {
					labels[k] = v
				}
			}
			if value == "" {
				delete(labels, key)
			}
			u.SetLabels(labels)
		}
	}
	changeCluster(t, member, set(value), set(""))
}

// changeCluster edits the Cluster of a member, and undoes that when the test ends.
func changeCluster(t *testing.T, member string, do, undo func(*unstructured.Unstructured)) {
	t.Helper()
	fleet.Hub.Change(t, "cluster.karmada.io/v1alpha1", "Cluster", "", member, do)
	t.Cleanup(func() { fleet.Hub.Change(t, "cluster.karmada.io/v1alpha1", "Cluster", "", member, undo) })
}

// container is a field of the first container of a workload in a member.
func container(t *testing.T, member, apiVersion, kind, namespace, name, field string) any {
	t.Helper()
	all, _ := inMember(t, member, apiVersion, kind, namespace, name, "spec", "template", "spec", "containers").([]any)
	if len(all) == 0 {
		return nil
	}
	return all[0].(map[string]any)[field]
}

func TestEveryOverriderChangesTheManifestOfItsClusterAlone(t *testing.T) {
	t.Parallel()
	ns := fleet.Namespace(t)
	fleet.Hub.Apply(t, override(ns, "o", `
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}]
  overrideRules:
  - targetCluster: {clusterNames: [m1]}
    overriders:
      imageOverrider:
      - {component: Registry, operator: replace, value: registry.eu.example.com}
      - {component: Tag, operator: replace, value: "2"}
      commandOverrider: [{containerName: c, operator: add, value: [serve]}]
      argsOverrider: [{containerName: c, operator: add, value: [--fast]}]
      labelsOverrider: [{operator: add, value: {where: eu}}, {operator: remove, value: {app: web}}]
      annotationsOverrider: [{operator: add, value: {note: eu}}]
      plaintext:
      - {path: /spec/minReadySeconds, operator: add, value: 1}
      - {path: /metadata/annotations/note, operator: replace, value: plain}`))
	fleet.Hub.Apply(t, policy(ns, "p", "apps/v1", "Deployment", placedOn("m1", "m2")))
	fleet.Hub.Apply(t, deployment(ns, "web", 1, "example.com/shop/web:1"))
	kit.Eventually(t, "it is applied", func() string { return applied(t, ns, "web-deployment", "m1", "m2") })

	for _, want := range []struct{ member, image, command, args, labels, note, ready string }{
		{"m1", "registry.eu.example.com/shop/web:2", "[serve]", "[--fast]", "eu <nil>", "plain", "1"},
		{"m2", "example.com/shop/web:1", "<nil>", "<nil>", "<nil> web", "<nil>", "<nil>"},
	} {
		u := fleet.Members[want.member].Find(t, "apps/v1", "Deployment", ns, "web")
		field := func(name string) any { return container(t, want.member, "apps/v1", "Deployment", ns, "web", name) }
		for what, pair := range map[string][2]string{
			"image":   {fmt.Sprint(field("image")), want.image},
			"command": {fmt.Sprint(field("command")), want.command},
			"args":    {fmt.Sprint(field("args")), want.args},
			"labels": {fmt.Sprint(kit.Field(u, "metadata", "labels", "where"), " ",
				kit.Field(u, "metadata", "labels", "app")), want.labels},
			"annotation":      {fmt.Sprint(kit.Field(u, "metadata", "annotations", "note")), want.note},
			"minReadySeconds": {fmt.Sprint(kit.Field(u, "spec", "minReadySeconds")), want.ready},
		} {
			if pair[0] != pair[1] {
				t.Errorf("%s in %s is %s, want %s", what, want.member, pair[0], pair[1])
			}
		}
	}
	if got := work(t, "m1", "Deployment", ns,
		"web").Annotations[policyv1alpha1.AppliedOverridesAnnotation]; !strings.Contains(got, `"policyName":"o"`) {
		t.Errorf("the Work records the overrides %q", got)
	}
	template := fleet.Hub.Find(t, "apps/v1", "Deployment", ns, "web")
	if template.GetLabels()["app"] != "web" || template.GetAnnotations()["note"] != "" {
		t.Error("the template was changed by the override")
	}
}

func cloneSet(ns, name string, replicas int, image, spec string) string {
	return fmt.Sprintf(`
apiVersion: apps.kruise.io/v1alpha1
kind: CloneSet
metadata: {name: %[2]s, namespace: %[1]s}
spec:
  replicas: %[3]d
  selector: {matchLabels: {app: %[2]s}}
  template:
    metadata: {labels: {app: %[2]s}}
    spec:
      containers: [{name: c, image: "%[4]s", resources: {requests: {cpu: 10m, memory: 16Mi}}}]%[5]s`, ns, name, replicas, image, spec)
}
