package interpret

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

// read returns the object that a YAML text describes.
func read(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if u.Object, err = decode(raw); err != nil {
		t.Fatal(err)
	}
	return u
}

func decode(raw []byte) (map[string]any, error) {
	u := &unstructured.Unstructured{}
	err := u.UnmarshalJSON(append([]byte(nil), raw...))
	return u.Object, err
}

// expectObject compares an object with a YAML text.
func expectObject(t *testing.T, got *unstructured.Unstructured, want string) {
	t.Helper()
	if w := read(t, want); !reflect.DeepEqual(got.Object, w.Object) {
		g, _ := yaml.Marshal(got.Object)
		t.Errorf("got\n%s\nwant\n%s", g, strings.TrimSpace(want))
	}
}

const widget = `{apiVersion: example.io/v2, kind: Widget, metadata: {namespace: a, name: b}, status: {phase: Fine}}`

func TestFirstTierWithHookIsUsed(t *testing.T) {
	kind := schema.GroupKind{Group: "example.io", Kind: "Widget"}
	health := func(h Health) *Hooks {
		return &Hooks{Health: func(context.Context, *unstructured.Unstructured) (Health, error) { return h, nil }}
	}
	replicas := &Hooks{Replicas: func(context.Context, *unstructured.Unstructured) (int32,
		*workv1alpha2.ReplicaRequirements, error) {
		return 7, nil, nil
	}}
	i := New(Kinds{kind: replicas}, Kinds{kind: health(Suspended)}, Kinds{kind: health(Degraded)})

	if h, err := i.Health(t.Context(), read(t, widget)); h != Suspended || err != nil {
		t.Errorf("health: got %v, %v; want the second tier's Suspended", h, err)
	}
	if n, _, workload, err := i.Replicas(t.Context(), read(t, widget)); n != 7 || !workload || err != nil {
		t.Errorf("replicas: got %d, %v, %v; want the first tier's 7, whatever version the object has", n, workload, err)
	}
}

func TestComponentsOutrankReplicasThatCannotBeRevised(t *testing.T) {
	kind := schema.GroupKind{Group: "example.io", Kind: "Widget"}
	replicas := &Hooks{Replicas: func(context.Context, *unstructured.Unstructured) (int32,
		*workv1alpha2.ReplicaRequirements, error) {
		return 7, nil, nil
	}}
	components := func(err error, names ...string) *Hooks {
		return &Hooks{Components: func(context.Context, *unstructured.Unstructured) (all []workv1alpha2.Component, _ error) {
			for _, name := range names {
				all = append(all, workv1alpha2.Component{Name: name, Replicas: 1})
			}
			return all, err
		}}
	}
	revise := &Hooks{Revise: func(_ context.Context, obj *unstructured.Unstructured,
		_ int32) (*unstructured.Unstructured, error) {
		return obj, nil
	}}
	for name, test := range map[string]struct {
		tiers    []*Hooks
		replicas bool
	}{
		"replicas alone":                         {[]*Hooks{replicas}, true},
		"one component describes the replicas":   {[]*Hooks{replicas, components(nil, "main")}, true},
		"no components, as without a cluster":    {[]*Hooks{replicas, components(nil)}, true},
		"several components":                     {[]*Hooks{replicas, components(nil, "a", "b")}, false},
		"several components of a higher tier":    {[]*Hooks{components(nil, "a", "b"), replicas}, false},
		"components that cannot be read":         {[]*Hooks{replicas, components(errors.New("broken"))}, false},
		"several components of equal replicas":   {[]*Hooks{replicas, components(nil, "a", "b"), revise}, true},
		"the user says how to divide":            {[]*Hooks{revise, replicas, components(nil, "a", "b")}, true},
		"what divides needs no components":       {[]*Hooks{revise, replicas, components(errors.New("broken"))}, true},
		"components alone, although it says how": {[]*Hooks{revise, components(nil, "a", "b")}, false},
	} {
		var all []Tier
		for _, h := range test.tiers {
			all = append(all, Kinds{kind: h})
		}
		if n, _, workload, err := New(all...).Replicas(t.Context(), read(t, widget)); workload != test.replicas ||
			err != nil || workload && n != 7 {
			t.Errorf("%s: got %d, %t, %v; want replicas: %t", name, n, workload, err, test.replicas)
		}
	}
}

func TestUnknownKindHasDefaults(t *testing.T) {
	i, obj := New(), read(t, widget)
	if _, _, workload, err := i.Replicas(t.Context(), obj); workload || err != nil {
		t.Errorf("replicas: got a workload, %v", err)
	}
	if got, err := i.Revise(t.Context(), obj, 3); got != obj || err != nil {
		t.Errorf("revise: got %v, %v; want the object itself", got, err)
	}
	if got, err := i.Retain(t.Context(), obj, read(t, widget)); got != obj || err != nil {
		t.Errorf("retain: got %v, %v; want the desired object itself", got, err)
	}
	if got, err := i.Aggregate(t.Context(), obj, nil); got != obj || err != nil {
		t.Errorf("aggregate: got %v, %v; want the template itself", got, err)
	}
	if h, err := i.Health(t.Context(), obj); h != Healthy || err != nil {
		t.Errorf("health: got %v, %v", h, err)
	}
	if deps, err := i.Dependencies(t.Context(), obj); deps != nil || err != nil {
		t.Errorf("dependencies: got %v, %v", deps, err)
	}
	status, err := i.Reflect(t.Context(), obj)
	if err != nil || !reflect.DeepEqual(status, map[string]any{"phase": "Fine"}) {
		t.Errorf("reflect: got %v, %v; want the whole status", status, err)
	}
	status["phase"] = "changed"
	if obj.Object["status"].(map[string]any)["phase"] != "Fine" {
		t.Error("reflect: the result shares memory with the object")
	}
	delete(obj.Object, "status")
	if status, err := i.Reflect(t.Context(), obj); status != nil || err != nil {
		t.Errorf("reflect without a status: got %v, %v", status, err)
	}
}

func TestHookErrorNamesActionAndObject(t *testing.T) {
	broken := errors.New("boom")
	i := New(Kinds{{Group: "example.io", Kind: "Widget"}: {
		Health: func(context.Context, *unstructured.Unstructured) (Health, error) { return Healthy, broken },
	}})
	h, err := i.Health(t.Context(), read(t, widget))
	if h != Unknown || !errors.Is(err, broken) || err.Error() != "interpret health of Widget a/b: boom" {
		t.Errorf("got %v, %v", h, err)
	}
}

func TestOnlyDegradedIsUnhealthyOutside(t *testing.T) {
	for h, want := range map[Health]workv1alpha1.ResourceHealth{
		Healthy: workv1alpha1.ResourceHealthy, Suspended: workv1alpha1.ResourceHealthy,
		Degraded:    workv1alpha1.ResourceUnhealthy,
		Progressing: workv1alpha1.ResourceUnknown, Unknown: workv1alpha1.ResourceUnknown, "": workv1alpha1.ResourceUnknown,
	} {
		if got := h.Karmada(); got != want {
			t.Errorf("%q: got %s, want %s", h, got, want)
		}
	}
}

func TestWithStatusSharesNothingWithTheTemplate(t *testing.T) {
	template := read(t, widget)
	got := WithStatus(template, map[string]any{"phase": "New"})
	got.SetName("other")
	expectObject(t, template, widget)
	expectObject(t, got, `{apiVersion: example.io/v2, kind: Widget, metadata: {namespace: a, name: other}, status: {phase: New}}`)
}
