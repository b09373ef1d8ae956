package release_test

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/internal/core/release"
)

func overrideOf(image string) policyv1alpha1.Override {
	p := &policyv1alpha1.OverridePolicy{}
	p.Namespace, p.Name = "shop", "o"
	p.Spec.ResourceSelectors = []policyv1alpha1.ResourceSelector{{APIVersion: "apps.kruise.io/v1alpha1", Kind: "CloneSet"}}
	p.Spec.OverrideRules = []policyv1alpha1.RuleWithCluster{{Overriders: policyv1alpha1.Overriders{
		ImageOverrider: []policyv1alpha1.ImageOverrider{{Component: "Tag", Operator: "replace", Value: image}}}}}
	return p
}

func TestARevisionIsNamedByAllThatMembersGet(t *testing.T) {
	w := newWorld(t, cloneSet, 2)
	name := func(overrides []policyv1alpha1.Override) string {
		r := release.NewRevision(w.template, overrides)
		return r.Name
	}
	plain := name(nil)
	w.edit(int64(9), "spec", "replicas")
	if name(nil) != plain {
		t.Error("the number of replicas makes another revision")
	}
	names := map[string]bool{plain: true}
	for what, other := range map[string]string{
		"an override":      name([]policyv1alpha1.Override{overrideOf("a")}),
		"another override": name([]policyv1alpha1.Override{overrideOf("b")}),
	} {
		if names[other] {
			t.Errorf("%s makes no other revision", what)
		}
		names[other] = true
	}
	w.image("web:9")
	if name(nil) == plain {
		t.Error("another image makes no other revision")
	}
}

func TestARevisionHasNoSelectorsOfOtherWorkloads(t *testing.T) {
	w := newWorld(t, cloneSet, 2)
	p := overrideOf("a")
	spec := p.OverrideSpec()
	own := spec.ResourceSelectors[0]
	alone := release.NewRevision(w.template, []policyv1alpha1.Override{p})
	spec.ResourceSelectors = []policyv1alpha1.ResourceSelector{{APIVersion: "v1", Kind: "Secret", Name: "of-another-team"},
		own}
	r := release.NewRevision(w.template, []policyv1alpha1.Override{p})
	if raw := string(r.Spec.Overrides[0].Spec.Raw); strings.Contains(raw, "of-another-team") {
		t.Errorf("the revision has %s", raw)
	}
	if r.Name != alone.Name {
		t.Error("a selector of another workload makes another revision")
	}
	if len(spec.ResourceSelectors) != 2 {
		t.Error("the policy was changed")
	}
}

func TestARevisionChangesOnlyThePodsOfItsWorkload(t *testing.T) {
	w := newWorld(t, cloneSet, 2)
	r := release.NewRevision(w.template, []policyv1alpha1.Override{overrideOf("a")})
	other := w.template.DeepCopy()
	other.SetLabels(map[string]string{"of": "the template"})
	if err := unstructured.SetNestedSlice(other.Object, []any{map[string]any{"name": "main", "image": "web:9"}}, "spec",
		"template", "spec", "containers"); err != nil {
		t.Fatal(err)
	}
	got, err := release.WithPods(other, r)
	if err != nil {
		t.Fatal(err)
	}
	if image := fields.Text(fields.Objects(got.Object, "spec", "template", "spec", "containers")[0], "image"); image !=
		"web:2" || got.GetLabels()["of"] != "the template" {
		t.Errorf("it has image %s and labels %v", image, got.GetLabels())
	}
	overrides, err := release.Overrides(r)
	if err != nil || len(overrides) != 1 || overrides[0].GetNamespace() != "shop" ||
		overrides[0].OverrideSpec().OverrideRules[0].Overriders.ImageOverrider[0].Value != "a" {
		t.Errorf("its overrides are %+v (%v)", overrides, err)
	}

	other.SetName("other")
	if _, err := release.WithPods(other, r); err == nil {
		t.Error("a revision of another workload is applied")
	}
	r.Spec.Pods[0].Path = "metadata.name"
	if _, err := release.WithPods(w.template, r); err == nil {
		t.Error("a revision changes the name of the workload")
	}
}

func TestARevisionNamesTheConfigurationOfItsPods(t *testing.T) {
	w := newWorld(t, cloneSet, 2)
	configuration := func() []string {
		t.Helper()
		r := release.NewRevision(w.template, nil)
		names, err := release.Configuration(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		return names
	}
	if names := configuration(); len(names) > 0 {
		t.Errorf("pods that read nothing need %q", names)
	}
	w.edit([]any{
		map[string]any{"name": "a", "configMap": map[string]any{"name": "web"}},
		map[string]any{"name": "b", "secret": map[string]any{"secretName": "key"}},
		map[string]any{"name": "c", "configMap": map[string]any{"name": "web"}},
		map[string]any{"name": "d", "persistentVolumeClaim": map[string]any{"claimName": "data"}},
	}, "spec", "template", "spec", "volumes")
	if names := configuration(); !slices.Equal(names, []string{"ConfigMap web", "Secret key"}) {
		t.Errorf("the configuration is %q", names)
	}
}
