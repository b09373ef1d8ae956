package dependency

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

func parsed(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	return u
}

func TestInjectionSelectsPods(t *testing.T) {
	workload := func(kind, labels string) *unstructured.Unstructured {
		return parsed(t, "{apiVersion: apps/v1, kind: "+kind+
			", metadata: {name: w, namespace: shop}, spec: {template: {metadata: {labels: {"+labels+"}}}}}")
	}
	for _, c := range []struct {
		name, spec         string
		workload           *unstructured.Unstructured
		ok, into, selected bool
		err                string
	}{
		{name: "by the labels of pods, in all namespaces", spec: "selector: {matchLabels: {a: b}}",
			workload: workload("Deployment", "a: b, c: d"), ok: true, into: true, selected: true},
		{name: "not into others", spec: "selector: {matchLabels: {a: b}}", workload: workload("Deployment", "a: x"), ok: true,
			selected: true},
		{name: "not into what has no pods", spec: "selector: {matchLabels: {a: b}}", workload: workload("ConfigMap", "a: b"),
			ok: true, selected: true},
		{name: "in namespaces by label", spec: "selector: {matchLabels: {a: b}}, namespaceSelector: {matchLabels: {team: x}}",
			workload: workload("Deployment", "a: b"), ok: true, into: true},
		{name: "in a namespace by the label that all have",
			spec:     "selector: {matchLabels: {a: b}}, namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: shop}}",
			workload: workload("Deployment", "a: b"), ok: true, into: true, selected: true},
		{name: "in its own namespace", spec: "namespace: shop, selector: {matchLabels: {a: b}}",
			workload: workload("Deployment", "a: b")},
		{name: "nowhere without a selector", spec: "containers: []", workload: workload("Deployment", "a: b")},
		{name: "not by nonsense", spec: "selector: {matchExpressions: [{key: a, operator: Like}]}",
			workload: workload("Deployment", "a: b"), err: "read spec.selector of SidecarSet s"},
		{name: "nor in namespaces by nonsense", spec: "selector: {matchLabels: {a: b}}, namespaceSelector: {matchLabels: x}",
			workload: workload("Deployment", "a: b"), err: "read spec.namespaceSelector of SidecarSet s"},
	} {
		i, ok, err := InjectionOf(parsed(t,
			"{apiVersion: apps.kruise.io/v1alpha1, kind: SidecarSet, metadata: {name: s}, spec: {"+c.spec+"}}"))
		if ok != c.ok || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %v, %v; want %v, %q", c.name, ok, err, c.ok, c.err)
		}
		if !ok {
			continue
		}
		if got := i.Selects(c.workload); got != c.into {
			t.Errorf("%s: it injects: %v, want %v", c.name, got, c.into)
		}
		if got := i.SelectsNamespace("shop", nil); got != c.selected {
			t.Errorf("%s: the namespace is selected: %v, want %v", c.name, got, c.selected)
		}
	}
	if _, ok, err := InjectionOf(workload("Deployment", "a: b")); ok || err != nil {
		t.Errorf("a Deployment injects: %v, %v", ok, err)
	}
	narrowed, err := Narrowed(parsed(t, "{apiVersion: apps.kruise.io/v1alpha1, kind: SidecarSet, spec: {}}"),
		[]string{"a", "b"})
	if i, ok, _ := InjectionOf(parsed(t,
		"{apiVersion: apps.kruise.io/v1alpha1, kind: SidecarSet, spec: {selector: {matchLabels: {a: b}}}}")); err != nil ||
		!ok || !i.SelectsNamespace("c", nil) {
		t.Errorf("%v, %v", narrowed, err)
	}
	_ = unstructured.SetNestedField(narrowed.Object, map[string]any{"matchLabels": map[string]any{"a": "b"}}, "spec",
		"selector")
	if i, ok, err := InjectionOf(narrowed); err != nil || !ok || i.SelectsNamespace("c", nil) ||
		!i.SelectsNamespace("b", nil) {
		t.Errorf("narrowed to a and b it is %v: %v", narrowed.Object, err)
	}
}

func TestRestrictTo(t *testing.T) {
	b := &workv1alpha2.ResourceBinding{}
	b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "eu"}, {Name: "us"}}
	if RestrictTo(b, map[string]bool{"eu": true, "us": true, "asia": true}) != workv1alpha2.Binding(b) {
		t.Error("in all of them it is another one")
	}
	if got := RestrictTo(b, map[string]bool{"us": true}).BindingSpec().Clusters; len(got) != 1 || got[0].Name != "us" ||
		len(b.Spec.Clusters) != 2 {
		t.Errorf("in us it is in %v, itself in %v", got, b.Spec.Clusters)
	}
}
