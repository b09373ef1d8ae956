package execute

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/object/identity"
	"github.com/argosy-io/argosy/internal/core/object/names"
)

// appliedAs returns a Work of that name that is applied, and the member's object.
func appliedAs(name string) (*workv1alpha1.Work, *unstructured.Unstructured) {
	w := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-eu", Name: name, UID: "uid",
		ResourceVersion: "7", Generation: 3,
		Labels:     map[string]string{workv1alpha2.WorkPermanentIDLabel: "id"},
		Finalizers: []string{workv1alpha2.ExecutionFinalizer}}}
	m := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"namespace": "shop", "name": "c"}, "data": map[string]any{"a": "1"}}}
	Mark(m, w)
	raw, err := m.MarshalJSON()
	if err != nil {
		panic(err)
	}
	w.Spec.Workload.Manifests = []workv1alpha1.Manifest{{}}
	w.Spec.Workload.Manifests[0].Raw = raw
	w.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkApplied, Status: metav1.ConditionTrue,
		ObservedGeneration: 3}}
	return w, m
}

// Objects of other namespaces and kinds may have Works of one name.
func TestAWorkIsOfItsObject(t *testing.T) {
	mine := identity.Object{Kind: "ConfigMap", Namespace: "shop", Name: "c"}
	bound := map[string]string{workv1alpha2.ResourceBindingNamespaceAnnotation: "shop",
		workv1alpha2.ResourceBindingNameAnnotation: "c-configmap"}
	enclosing := map[string]string{workv1alpha2.ClusterResourceBindingNameAnnotation: "x-enclosedmanifest"}
	manifest := func(apiVersion, kind, namespace, name string) string {
		return fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"namespace":%q,"name":%q}}`, apiVersion, kind, namespace,
			name)
	}
	for _, c := range []struct {
		what        string
		annotations map[string]string
		manifest    string
		of          identity.Object
		want        bool
	}{
		{"its object", nil, manifest("v1", "ConfigMap", "shop", "c"), mine, true},
		{"the template of its binding", bound, manifest("v1", "ConfigMap", "", "other"), mine, true},
		{"an unreadable manifest of its binding", bound, `{`, mine, true},
		{"an unreadable manifest of nobody", nil, `{`, mine, true},
		{"an unreadable manifest of another binding", enclosing, `{`, mine, false},
		{"another namespace", nil, manifest("v1", "ConfigMap", "bank", "c"), mine, false},
		{"another name", nil, manifest("v1", "ConfigMap", "shop", "d"), mine, false},
		{"another kind", nil, manifest("v1", "Secret", "shop", "c"), mine, false},
		{"another group", nil, manifest("x/v1", "ConfigMap", "shop", "c"), mine, false},
		{"a binding of the same name in another namespace", map[string]string{
			workv1alpha2.ResourceBindingNamespaceAnnotation: "bank", workv1alpha2.ResourceBindingNameAnnotation: "c-configmap"},
			manifest("v1", "ConfigMap", "bank", "c"), mine, false},
		{"a template that encloses it", enclosing, manifest("v1", "ConfigMap", "", "c"),
			identity.Object{Group: "release.argosy.io", Kind: "EnclosedManifest", Name: "x"}, true},
		{"another template that encloses it", enclosing, manifest("v1", "ConfigMap", "", "c"),
			identity.Object{Group: "release.argosy.io", Kind: "EnclosedManifest", Name: "y"}, false},
	} {
		w := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Annotations: c.annotations}}
		w.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(c.manifest)}}}
		if got := IsOf(w, c.of); got != c.want {
			t.Errorf("%s: %v, want %v", c.what, got, c.want)
		}
	}
}

// The Work that is created again after a restore may get the other of its two names, if another object was first.
func TestAnObjectIsOfItsWorkUnderEitherName(t *testing.T) {
	gk := schema.GroupKind{Kind: "ConfigMap"}
	either := names.Either(names.Work("ConfigMap", "c", "shop"), gk, "c", "shop")
	for i, name := range either {
		_, observed := appliedAs(either[1-i])
		w, _ := appliedAs(name)
		w.Labels[workv1alpha2.WorkPermanentIDLabel], w.Status.Conditions = "new", nil
		for key, value := range map[string]string{workv1alpha2.ResourceBindingNamespaceAnnotation: "shop",
			workv1alpha2.ResourceBindingNameAnnotation: "c-configmap"} {
			metav1.SetMetaDataAnnotation(&w.ObjectMeta, key, value)
		}
		desired, err := Desired(w, observed, nil)
		if err != nil {
			t.Fatal(err)
		}
		if a := Plan(w, desired, observed); a.Kind != Apply || a.Adopts ||
			a.Object.GetAnnotations()[workv1alpha2.WorkNameAnnotation] != name {
			t.Errorf("%s in place of %s: %+v, want an Apply that names it", name, either[1-i], a)
		}
	}
	// The longer name of another object is no name of this one.
	_, observed := appliedAs(names.Longer(either[0], gk, "c", "bank"))
	w, _ := appliedAs(either[0])
	if a := Plan(w, observed, observed); a.Kind != Conflict {
		t.Errorf("an object of another Work: %+v, want a Conflict", a)
	}
}
