package execute

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/object/identity"
	"github.com/argosy-io/argosy/internal/core/object/names"
)

// formerlyApplied returns a Work of that name that is applied, and the member's object.
func formerlyApplied(name string) (*workv1alpha1.Work, *unstructured.Unstructured) {
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

func TestRenamedWorkChangesNothingInMember(t *testing.T) {
	present, former := names.Work("ConfigMap", "c", "shop"), names.FormerWork("ConfigMap", "c", "shop")
	old, observed := formerlyApplied(former)
	if name, is := FormerName(old, observed); !is || name != present {
		t.Fatalf("%s is now called %s (%t), want %s", former, name, is, present)
	}
	w, err := Renamed(old, present)
	if err != nil {
		t.Fatal(err)
	}
	w.Generation = 1
	if w.UID != "" || w.ResourceVersion != "" || w.Labels[workv1alpha2.WorkPermanentIDLabel] != "id" ||
		len(w.Finalizers) != 1 || old.Status.Conditions[0].ObservedGeneration != 3 {
		t.Errorf("the copy is %+v of %+v", w.ObjectMeta, old)
	}
	if m, err := Manifest(w); err != nil || m.GetAnnotations()[workv1alpha2.WorkNameAnnotation] != present {
		t.Errorf("its manifest is %v, %v", m, err)
	}
	if got := MarkedWork(observed); got != (types.NamespacedName{Namespace: "karmada-es-eu", Name: present}) {
		t.Errorf("the object is of %s", got)
	}

	plan := func(w *workv1alpha1.Work) Action {
		desired, err := Desired(w, observed, nil)
		if err != nil {
			t.Fatal(err)
		}
		return HubID("hub").Plan(w, desired, observed)
	}
	for name, w := range map[string]*workv1alpha1.Work{"the copy": w, "the original": old} {
		if a := plan(w); a.Kind != Nothing {
			t.Errorf("%s: %s since %s, want Nothing", name, a.Kind, a.Reason)
		}
		going := w.DeepCopy()
		going.DeletionTimestamp = &metav1.Time{}
		if a := Plan(going, nil, observed); a.Kind != Delete {
			t.Errorf("the end of %s: %s since %s, want Delete", name, a.Kind, a.Reason)
		}
	}
	if err := unstructured.SetNestedField(observed.Object, "2", "data", "a"); err != nil {
		t.Fatal(err)
	}
	if a := plan(w); a.Kind != Apply || a.Path != "data.a" ||
		a.Object.GetAnnotations()[workv1alpha2.WorkNameAnnotation] != present {
		t.Errorf("drift: %+v, want an Apply that names the Work anew", a)
	}
}

func TestRenamedWorkKeepsAppliedState(t *testing.T) {
	present, former := names.Work("ConfigMap", "c", "shop"), names.FormerWork("ConfigMap", "c", "shop")
	for name, c := range map[string]struct {
		generation int64
		want       int64
		suspended  bool
	}{"as it is": {3, 1, false}, "as it was before": {2, 1, true}, "never": {0, 0, false}} {
		w, _ := formerlyApplied(former)
		w.Status.Conditions[0].ObservedGeneration = c.generation
		got, err := Renamed(w, present)
		if err != nil {
			t.Fatal(err)
		}
		if is := meta.FindStatusCondition(got.Status.Conditions, workv1alpha1.WorkApplied).ObservedGeneration; is != c.want ||
			Suspended(got) != c.suspended {
			t.Errorf("applied %s: generation %d, suspended %t", name, is, Suspended(got))
		}
	}
}

func TestEnclosedObjectsNameTheirRenamedWork(t *testing.T) {
	obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"namespace": "shop", "name": "c"}}}
	obj.SetAnnotations(map[string]string{workv1alpha2.WorkNamespaceAnnotation: "karmada-es-eu",
		workv1alpha2.WorkNameAnnotation:                   names.FormerWork("EnclosedManifest", "kruise.x", ""),
		workv1alpha2.ClusterResourceBindingNameAnnotation: "kruise.x-enclosedmanifest"})
	if got, want := MarkedWork(obj).Name, names.Work("EnclosedManifest", "kruise.x", ""); got != want {
		t.Errorf("the object is of %s, want %s", got, want)
	}
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
		_, observed := formerlyApplied(either[1-i])
		w, _ := formerlyApplied(name)
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
	_, observed := formerlyApplied(names.Longer(either[0], gk, "c", "bank"))
	w, _ := formerlyApplied(either[0])
	if a := Plan(w, observed, observed); a.Kind != Conflict {
		t.Errorf("an object of another Work: %+v, want a Conflict", a)
	}
}
