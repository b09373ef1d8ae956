package e2e

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
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
	fleet.Hub.Apply(t, policy(ns, "p", "apps/v1", "Deployment", to("m1", "m2")))
	fleet.Hub.Apply(t, deployment(ns, "web", 1, "example.com/shop/web:1"))
	kit.Eventually(t, "it is applied", func() string { return applied(t, ns, "web-deployment", "m1", "m2") })

	for _, want := range []struct{ member, image, command, args, labels, note, ready string }{
		{"m1", "registry.eu.example.com/shop/web:2", "[serve]", "[--fast]", "eu <nil>", "plain", "1"},
		{"m2", "example.com/shop/web:1", "<nil>", "<nil>", "<nil> web", "<nil>", "<nil>"},
	} {
		u := fleet.Members[want.member].Find(t, "apps/v1", "Deployment", ns, "web")
		field := func(name string) any { return container(t, want.member, "apps/v1", "Deployment", ns, "web", name) }
		for what, pair := range map[string][2]string{
			"image":           {fmt.Sprint(field("image")), want.image},
			"command":         {fmt.Sprint(field("command")), want.command},
			"args":            {fmt.Sprint(field("args")), want.args},
			"labels":          {fmt.Sprint(kit.Field(u, "metadata", "labels", "where"), " ", kit.Field(u, "metadata", "labels", "app")), want.labels},
			"annotation":      {fmt.Sprint(kit.Field(u, "metadata", "annotations", "note")), want.note},
			"minReadySeconds": {fmt.Sprint(kit.Field(u, "spec", "minReadySeconds")), want.ready},
		} {
			if pair[0] != pair[1] {
				t.Errorf("%s in %s is %s, want %s", what, want.member, pair[0], pair[1])
			}
		}
	}
	if got := work(t, "m1", "Deployment", ns, "web").Annotations[policyv1alpha1.AppliedOverridesAnnotation]; !strings.Contains(got, `"policyName":"o"`) {
		t.Errorf("the Work records the overrides %q", got)
	}
	template := fleet.Hub.Find(t, "apps/v1", "Deployment", ns, "web")
	if template.GetLabels()["app"] != "web" || template.GetAnnotations()["note"] != "" {
		t.Error("the template was changed by the override")
	}
}

func TestAFieldOverriderReachesIntoJSONAndYAML(t *testing.T) {
	t.Parallel()
	ns := fleet.Namespace(t)
	fleet.Hub.Apply(t, override(ns, "o", `
  resourceSelectors: [{apiVersion: v1, kind: ConfigMap}]
  overrideRules:
  - targetCluster: {clusterNames: [m2]}
    overriders:
      fieldOverrider:
      - fieldPath: /data/app.json
        json: [{subPath: /db/host, operator: replace, value: db.us}, {subPath: /db/pool, operator: add, value: 7}]
      - fieldPath: /data/app.yaml
        yaml: [{subPath: /level, operator: replace, value: debug}]`))
	fleet.Hub.Apply(t, policy(ns, "p", "v1", "ConfigMap", to("m1", "m2")))
	fleet.Hub.Apply(t, fmt.Sprintf(`
apiVersion: v1
kind: ConfigMap
metadata: {name: c, namespace: %s}
data:
  app.json: '{"db":{"host":"localhost"}}'
  app.yaml: "level: info\n"`, ns))
	kit.Eventually(t, "it is applied", func() string { return applied(t, ns, "c-configmap", "m1", "m2") })
	for member, want := range map[string]string{
		"m1": `map[app.json:{"db":{"host":"localhost"}} app.yaml:level: info` + "\n]",
		"m2": `map[app.json:{"db":{"host":"db.us","pool":7}} app.yaml:level: debug` + "\n]",
	} {
		if got := fmt.Sprint(inMember(t, member, "v1", "ConfigMap", ns, "c", "data")); got != want {
			t.Errorf("%s has %s, want %s", member, got, want)
		}
	}
}

func TestNamespacedOverridesComeAfterClusterOnesAndNamesAfterLabelsAfterAll(t *testing.T) {
	t.Parallel()
	ns := fleet.Namespace(t)
	rule := func(selector, value string) string {
		return fmt.Sprintf(`{resourceSelectors: [{apiVersion: v1, kind: ConfigMap, %s}], overrideRules: [{overriders: {
			annotationsOverrider: [{operator: add, value: {last: %[2]s, by-%[2]s: "yes"}}]}}]}`, selector, value)
	}
	for _, o := range []struct{ namespace, name, selector, value string }{
		{ns, "a", "name: c", "op-name"},
		{ns, "b", "labelSelector: {matchLabels: {app: c}}", "op-label"},
		{"", ns + "-a", "name: c, namespace: " + ns, "cop-name"},
		{"", ns + "-z", "namespace: " + ns, "cop-all"},
	} {
		fleet.Hub.Apply(t, override(o.namespace, o.name, rule(o.selector, o.value)))
	}
	fleet.Hub.Apply(t, policy(ns, "p", "v1", "ConfigMap", to("m1")))
	fleet.Hub.Apply(t, configMap(ns, "c", "1"))
	last := func() any { return inMember(t, "m1", "v1", "ConfigMap", ns, "c", "metadata", "annotations", "last") }
	for _, step := range []struct{ want, namespace, name string }{
		{"op-name", ns, "a"}, {"op-label", ns, "b"}, {"cop-name", "", ns + "-a"}, {"cop-all", "", ns + "-z"}, {"", "", ""},
	} {
		var want any
		if step.want != "" {
			want = step.want
		}
		is(t, "the last word is of "+step.want, want, last)
		if step.name == "" {
			break
		}
		kind := "OverridePolicy"
		if step.namespace == "" {
			kind = "Cluster" + kind
		}
		fleet.Hub.Remove(t, "policy.karmada.io/v1alpha1", kind, step.namespace, step.name)
	}
}

func TestAnImageOverrideKnowsTheContainersOfACloneSet(t *testing.T) {
	t.Parallel()
	ns := fleet.Namespace(t)
	fleet.Hub.Apply(t, policy(ns, "p", "apps.kruise.io/v1alpha1", "CloneSet", to("m1", "m2")))
	fleet.Hub.Apply(t, cloneSet(ns, "shop", 2, "example.com/shop:1", ""))
	image := func(member string) func() any {
		return func() any { return container(t, member, "apps.kruise.io/v1alpha1", "CloneSet", ns, "shop", "image") }
	}
	is[any](t, "it is in m1 as it is", "example.com/shop:1", image("m1"))

	// An override that comes later, changes, and goes.
	o := func(tag string) string {
		return override(ns, "o", fmt.Sprintf(`{resourceSelectors: [{apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet}], overrideRules: [
			{targetCluster: {clusterNames: [m1]}, overriders: {imageOverrider: [{component: Tag, operator: replace, value: %q}], argsOverrider: [{containerName: c, operator: add, value: [%s]}]}}]}`, tag, tag))
	}
	fleet.Hub.Apply(t, o("canary"))
	is[any](t, "it follows a new override", "example.com/shop:canary", image("m1"))
	fleet.Hub.Apply(t, o("v3"))
	is[any](t, "it follows a changed override", "example.com/shop:v3", image("m1"))
	if got := fmt.Sprint(container(t, "m1", "apps.kruise.io/v1alpha1", "CloneSet", ns, "shop", "args")); got != "[v3]" {
		t.Errorf("args are %s", got)
	}
	fleet.Hub.Remove(t, "policy.karmada.io/v1alpha1", "OverridePolicy", ns, "o")
	is[any](t, "it is as it was without the override", "example.com/shop:1", image("m1"))
	is[any](t, "no args are left behind", nil, func() any {
		return container(t, "m1", "apps.kruise.io/v1alpha1", "CloneSet", ns, "shop", "args")
	})
	if got := image("m2")(); got != "example.com/shop:1" {
		t.Errorf("m2 has %v", got)
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

func TestAnOverriderThatTouchesNothingSaysSo(t *testing.T) {
	t.Parallel()
	ns := fleet.Namespace(t)
	fleet.Hub.Apply(t, override(ns, "o", `{resourceSelectors: [{apiVersion: v1, kind: ConfigMap}], overrideRules: [
		{overriders: {imageOverrider: [{component: Tag, operator: replace, value: "2"}]}}]}`))
	fleet.Hub.Apply(t, policy(ns, "p", "v1", "ConfigMap", to("m1")))
	fleet.Hub.Apply(t, configMap(ns, "c", "1"))
	kit.Eventually(t, "it is sent all the same", func() string { return applied(t, ns, "c-configmap", "m1") })
	for _, on := range []struct{ kind, name string }{{"ConfigMap", "c"}, {"ResourceBinding", "c-configmap"}} {
		kit.Eventually(t, "its "+on.kind+" says so", func() string {
			told := fleet.Hub.Told(t, on.kind, ns, on.name, workv1alpha2.EventApplyOverridePolicyFailed)
			if len(told) != 1 || !strings.Contains(told[0], "OverridePolicy "+ns+"/o") || !strings.Contains(told[0], "imageOverrider[0]") {
				return fmt.Sprintf("it says %q", told)
			}
			return ""
		})
	}
}

// An override that cannot be applied keeps back its cluster alone, says why, and lets go when it is mended.
func TestAnOverrideThatCannotBeAppliedKeepsBackItsClusterAlone(t *testing.T) {
	t.Parallel()
	ns := fleet.Namespace(t)
	o := func(operator string) string {
		return override(ns, "o", `{resourceSelectors: [{apiVersion: v1, kind: ConfigMap}], overrideRules: [
		{targetCluster: {clusterNames: [m1]}, overriders: {plaintext: [{path: /data/absent, operator: `+operator+`, value: x}]}}]}`)
	}
	fleet.Hub.Apply(t, o("replace"))
	fleet.Hub.Apply(t, policy(ns, "p", "v1", "ConfigMap", to("m1", "m2")))
	fleet.Hub.Apply(t, configMap(ns, "c", "1"))
	kit.Eventually(t, "m2 has it", func() string { return holds(t, "v1", "ConfigMap", ns, "c", "m2") })
	kit.Eventually(t, "the template says why m1 has not", func() string {
		told := fleet.Hub.Told(t, "ConfigMap", ns, "c", workv1alpha2.EventSyncWorkFailed)
		if len(told) != 1 || !strings.Contains(told[0], `"m1"`) || !strings.Contains(told[0], "plaintext[0]") {
			return fmt.Sprintf("it says %q", told)
		}
		return ""
	})
	fleet.Hub.Apply(t, o("add"))
	kit.Eventually(t, "m1 has it when the override is mended", func() string { return applied(t, ns, "c-configmap", "m1", "m2") })
}

func TestAnOverrideFollowsTheLabelsOfItsClusters(t *testing.T) {
	t.Parallel()
	ns := fleet.Namespace(t)
	label(t, "m1", ns, "blue")
	fleet.Hub.Apply(t, override(ns, "o", `{resourceSelectors: [{apiVersion: v1, kind: ConfigMap}], overrideRules: [
		{targetCluster: {labelSelector: {matchLabels: {`+ns+`: blue}}}, overriders: {plaintext: [{path: /data/key, operator: replace, value: blue}]}},
		{targetCluster: {fieldSelector: {matchExpressions: [{key: region, operator: In, values: [ap-south]}]}}, overriders: {plaintext: [{path: /data/key, operator: replace, value: far}]}}]}`))
	fleet.Hub.Apply(t, policy(ns, "p", "v1", "ConfigMap", to("m1", "m2", "m3")))
	fleet.Hub.Apply(t, configMap(ns, "c", "plain"))
	values := func() string {
		var all []string
		for _, m := range []string{"m1", "m2", "m3"} {
			all = append(all, fmt.Sprint(inMember(t, m, "v1", "ConfigMap", ns, "c", "data", "key")))
		}
		return strings.Join(all, " ")
	}
	is(t, "m1 is blue, m3 is far", "blue plain far", values)
	label(t, "m2", ns, "blue")
	is(t, "m2 turns blue", "blue blue far", values)
	label(t, "m1", ns, "")
	is(t, "m1 is plain again", "plain blue far", values)
}
