package customization_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/customization"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/script"
)

var kind = schema.GroupKind{Group: "example.com", Kind: "Shop"}

// ric returns a customization of the kind Shop in a version.
func ric(t *testing.T, name, version, rules string) *configv1alpha1.ResourceInterpreterCustomization {
	t.Helper()
	c := &configv1alpha1.ResourceInterpreterCustomization{}
	c.Name = name
	c.Spec.Target = configv1alpha1.CustomizationTarget{APIVersion: "example.com/" + version, Kind: "Shop"}
	if err := yaml.UnmarshalStrict([]byte(rules), &c.Spec.Customizations); err != nil {
		t.Fatal(err)
	}
	return c
}

func shop(t *testing.T, version, rest string) *unstructured.Unstructured {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte("{apiVersion: example.com/" + version + ", kind: Shop, metadata: {name: s}, " +
		rest + "}"))
	if err != nil {
		t.Fatalf("%v in %s", err, rest)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(raw); err != nil {
		t.Fatal(err)
	}
	return u
}

func expectHealth(t *testing.T, i interpret.Interpreter, obj *unstructured.Unstructured, want interpret.Health,
	texts ...string) {
	t.Helper()
	h, err := i.Health(t.Context(), obj)
	if h != want || (err == nil) != (len(texts) == 0) {
		t.Errorf("health %s, %v, want %s", h, err, want)
	}
	for _, text := range texts {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("error %v does not say %q", err, text)
		}
	}
}

const (
	fine   = `{healthInterpretation: {jsonPath: .status.phase, expected: Fine}}`
	opened = `{healthInterpretation: {jsonPath: .status.phase, expected: Open}}`
)

func TestCustomizationsOfAKindAreMergedByName(t *testing.T) {
	i := interpret.New(customization.New([]*configv1alpha1.ResourceInterpreterCustomization{
		ric(t, "b", "v1", opened),
		ric(t, "a", "v1", fine),
		ric(t, "c", "v1", `{replicaResource: {jsonPath: .spec.count}}`),
	}, customization.Options{}))
	expectHealth(t, i, shop(t, "v1", "status: {phase: Fine}"), interpret.Healthy)
	expectHealth(t, i, shop(t, "v1", "status: {phase: Open}"), interpret.Degraded)
	if n, _, _, err := i.Replicas(t.Context(), shop(t, "v1", "spec: {count: 3}")); n != 3 || err != nil {
		t.Errorf("replicas %d, %v", n, err)
	}
	if status, err := i.Reflect(t.Context(), shop(t, "v1", "status: {a: 1}")); status["a"] != int64(1) || err != nil {
		t.Errorf("what no customization says is %v, %v", status, err)
	}
}

func TestDependenciesAreJoined(t *testing.T) {
	script := func(name string) string {
		return fmt.Sprintf(`{dependencyInterpretation: {luaScript: "function GetDependencies(o) return {{apiVersion = 'v1', kind = 'ConfigMap', namespace = 'n', name = '%s'}} end"}}`, name)
	}
	tier := customization.New([]*configv1alpha1.ResourceInterpreterCustomization{
		ric(t, "b", "v1", script("z")), ric(t, "a", "v1", script("y")), ric(t, "c", "v1", script("z")),
		ric(t, "d", "v2", script("other-version")),
	}, customization.Options{})
	deps, err := interpret.New(tier).Dependencies(t.Context(), shop(t, "v1", "spec: {}"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, d := range deps {
		names = append(names, d.Name)
	}
	if diff := cmp.Diff([]string{"y", "z"}, names); diff != "" {
		t.Errorf("dependencies (-want +got):\n%s", diff)
	}
	gvk := kind.WithVersion("v1")
	if diff := cmp.Diff([]string{"a", "b", "c"},
		tier.Find(gvk, configv1alpha1.InterpreterOperationInterpretDependency).By); diff != "" {
		t.Errorf("who says them (-want +got):\n%s", diff)
	}
}

// versions converts between v1, with spec.count, and v2, with spec.size.
func versions(obj *unstructured.Unstructured, version string) (*unstructured.Unstructured, error) {
	if version == "v3" || obj.GroupVersionKind().Version == "v3" {
		return nil, nil
	}
	from, to := "count", "size"
	if version == "v1" {
		from, to = to, from
	}
	out := obj.DeepCopy()
	out.SetAPIVersion("example.com/" + version)
	if spec, ok := out.Object["spec"].(map[string]any); ok {
		spec[to] = spec[from]
		delete(spec, from)
	}
	return out, nil
}

func TestObjectIsConvertedForCustomization(t *testing.T) {
	i := interpret.New(customization.New([]*configv1alpha1.ResourceInterpreterCustomization{
		ric(t, "a", "v2", `{replicaResource: {jsonPath: .spec.size}, replicaRevision: {jsonPath: .spec.size}, retention: {jsonPaths: [.spec.size]}, statusAggregation: {jsonPaths: {sum: [.status.n]}}}`),
	}, customization.Options{Convert: versions}))
	obj := shop(t, "v1", "spec: {count: 4}")
	if n, _, _, err := i.Replicas(t.Context(), obj); n != 4 || err != nil {
		t.Errorf("replicas %d, %v", n, err)
	}
	revised, err := i.Revise(t.Context(), obj, 9)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(shop(t, "v1", "spec: {count: 9}").Object, revised.Object); diff != "" {
		t.Errorf("revised (-want +got):\n%s", diff)
	}
	retained, err := i.Retain(t.Context(), obj, shop(t, "v1", "spec: {count: 6}"))
	if err != nil || retained.Object["spec"].(map[string]any)["count"] != int64(6) ||
		retained.GetAPIVersion() != "example.com/v1" {
		t.Errorf("retained %v, %v", retained, err)
	}
	aggregated, err := i.Aggregate(t.Context(), obj,
		[]workv1alpha2.AggregatedStatusItem{{ClusterName: "m", Status: &runtime.RawExtension{Raw: []byte(`{"n":2}`)}}})
	if err != nil || aggregated.GetAPIVersion() != "example.com/v1" ||
		aggregated.Object["status"].(map[string]any)["n"] != int64(2) {
		t.Errorf("aggregated %v, %v", aggregated, err)
	}
	_, _, _, err = i.Replicas(t.Context(), shop(t, "v3", "spec: {}"))
	if err == nil || !strings.Contains(err.Error(),
		`customization "a" is written for v2: the object is v3, and there is no conversion between the two versions of Shop; write the customization for example.com/v3`) {
		t.Errorf("a version that nobody can convert: %v", err)
	}
}

func TestCustomizationForOwnVersionWins(t *testing.T) {
	tier := customization.New([]*configv1alpha1.ResourceInterpreterCustomization{ric(t, "a", "v1", fine),
		ric(t, "b", "v2", opened)}, customization.Options{Convert: versions})
	i := interpret.New(tier)
	expectHealth(t, i, shop(t, "v1", "status: {phase: Fine}"), interpret.Healthy)
	expectHealth(t, i, shop(t, "v2", "status: {phase: Open}"), interpret.Healthy)
	expectHealth(t, i, shop(t, "v3", "status: {phase: Open}"), interpret.Unknown, `customization "a" is written for v1`,
		`customization "b" is written for v2`)
	for version, want := range map[string]string{"v1": "a", "v2": "b", "v3": "a"} {
		if by := tier.Find(kind.WithVersion(version), configv1alpha1.InterpreterOperationInterpretHealth).By; len(by) != 1 ||
			by[0] != want {
			t.Errorf("health of %s is answered by %v, want %s", version, by, want)
		}
	}
}

func TestCustomizationForUnknownVersionIsIgnored(t *testing.T) {
	// v1 and v2 are versions of the kind; their differences are unknown.
	o := customization.Options{Schema: func(gvk schema.GroupVersionKind) *script.Schema {
		if gvk.GroupKind() == kind && (gvk.Version == "v1" || gvk.Version == "v2") {
			return &script.Schema{Type: "object"}
		}
		return nil
	}}
	tier := customization.New([]*configv1alpha1.ResourceInterpreterCustomization{ric(t, "typo", "v9", fine)}, o)
	expectHealth(t, interpret.New(tier), shop(t, "v1", "status: {phase: Open}"), interpret.Healthy)
	if by := tier.Find(kind.WithVersion("v1"), configv1alpha1.InterpreterOperationInterpretHealth).By; by != nil {
		t.Errorf("health is answered by %v", by)
	}
	if diff := cmp.Diff([]interpret.Besides{{Version: "v9", By: "typo"}},
		tier.Find(kind.WithVersion("v1"), configv1alpha1.InterpreterOperationInterpretHealth).Besides); diff != "" {
		t.Errorf("who would (-want +got):\n%s", diff)
	}
	expectHealth(t, interpret.New(tier), shop(t, "v9", "status: {phase: Open}"), interpret.Degraded)

	// The other version is handled as if the first did not exist; its author sees what is missing.
	i := interpret.New(customization.New([]*configv1alpha1.ResourceInterpreterCustomization{ric(t, "a-typo", "v9", fine),
		ric(t, "b", "v2", opened)}, o))
	expectHealth(t, i, shop(t, "v2", "status: {phase: Open}"), interpret.Healthy)
	expectHealth(t, i, shop(t, "v1", "status: {phase: Open}"), interpret.Unknown,
		`customization "b" is written for v2: the object is v1`)
}

func TestBesidesNamesUnusedCustomizations(t *testing.T) {
	tier := customization.New([]*configv1alpha1.ResourceInterpreterCustomization{ric(t, "c", "v1", fine),
		ric(t, "a", "v2", fine), ric(t, "b", "v1", opened)}, customization.Options{Convert: versions})
	o := configv1alpha1.InterpreterOperationInterpretHealth
	for version, want := range map[string]struct {
		by      string
		besides []interpret.Besides
	}{
		"v1": {"b", []interpret.Besides{{Version: "v2", By: "a"}, {Version: "v1", By: "c"}}},
		"v2": {"a", []interpret.Besides{{Version: "v1", By: "b"}, {Version: "v1", By: "c"}}},
	} {
		if by := tier.Find(kind.WithVersion(version), o).By; len(by) != 1 || by[0] != want.by {
			t.Errorf("%s is answered by %v, want %s", version, by, want.by)
		}
		if diff := cmp.Diff(want.besides, tier.Find(kind.WithVersion(version), o).Besides); diff != "" {
			t.Errorf("of %s, besides (-want +got):\n%s", version, diff)
		}
	}
}

func TestInvalidRuleFailsOnlyItsOperation(t *testing.T) {
	i := interpret.New(customization.New([]*configv1alpha1.ResourceInterpreterCustomization{
		ric(t, "a", "v1", `{replicaResource: {luaScript: "function GetReplicas("}, healthInterpretation: {jsonPath: .status.phase, expected: Fine}, statusReflection: {jsonPath: "{.status}"}}`),
	}, customization.Options{}))
	expectHealth(t, i, shop(t, "v1", "status: {phase: Fine}"), interpret.Healthy)
	_, _, _, err := i.Replicas(t.Context(), shop(t, "v1", "spec: {}"))
	if err == nil || !strings.Contains(err.Error(), `customization "a", InterpretReplica`) {
		t.Errorf("a script that is none: %v", err)
	}
	_, err = i.Reflect(t.Context(), shop(t, "v1", "status: {}"))
	if err == nil || !strings.Contains(err.Error(),
		`customization "a", InterpretStatus: jsonPath "{.status}": write it without braces: .status`) {
		t.Errorf("a path that is none: %v", err)
	}
}

// What a customization leaves out is what the tiers below make of it now, not what there was before.
func TestLowerTiersCompleteAnswers(t *testing.T) {
	below := interpret.Kinds{kind: &interpret.Hooks{
		Replicas: func(context.Context, *unstructured.Unstructured) (int32, *workv1alpha2.ReplicaRequirements, error) {
			return 99, &workv1alpha2.ReplicaRequirements{Namespace: "from-below"}, nil
		},
		Aggregate: func(_ context.Context, template *unstructured.Unstructured,
			items []workv1alpha2.AggregatedStatusItem) (*unstructured.Unstructured, error) {
			return interpret.WithStatus(template, map[string]any{"below": int64(len(items)), "sold": int64(-1)}), nil
		},
	}}
	i := interpret.New(customization.New([]*configv1alpha1.ResourceInterpreterCustomization{
		ric(t, "a", "v1", `{replicaResource: {jsonPath: .spec.count}, statusAggregation: {jsonPaths: {sum: [.status.sold]}}}`),
	}, customization.Options{Below: interpret.Tiers{below}}), below)
	n, req, _, err := i.Replicas(t.Context(), shop(t, "v1", "spec: {count: 3}"))
	if err != nil || n != 3 || req == nil || req.Namespace != "from-below" {
		t.Errorf("%d of %v, %v", n, req, err)
	}
	items := []workv1alpha2.AggregatedStatusItem{{ClusterName: "m1",
		Status: &runtime.RawExtension{Raw: []byte(`{"sold":2}`)}}}
	got, err := i.Aggregate(t.Context(), shop(t, "v1", "status: {below: 7, sold: 7}"), items)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(shop(t, "v1", "status: {below: 1, sold: 2}").Object, got.Object); diff != "" {
		t.Errorf("aggregated (-want +got):\n%s", diff)
	}
	again, err := i.Aggregate(t.Context(), got, items)
	if diff := cmp.Diff(got.Object, again.Object); diff != "" || err != nil {
		t.Errorf("a second time it is different: %v\n%s", err, diff)
	}
}
