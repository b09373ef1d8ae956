package scope_test

import (
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/scope"
	"github.com/argosy-io/argosy/test/kit/controllertest"
)

func hub(t *testing.T, objs ...client.Object) client.Client {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{policyv1alpha1.AddToScheme, workv1alpha1.AddToScheme,
		workv1alpha2.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	b := fake.NewClientBuilder().WithScheme(s).WithObjects(objs...)
	if err := scope.IndexWorks(t.Context(), controllertest.FieldIndexer(b)); err != nil {
		t.Fatal(err)
	}
	return b.Build()
}

// pair holds for every pair of kinds what is said of pairs.
func pair[T client.Object](t *testing.T, p scope.Pair[T]) {
	t.Helper()
	namespaced, cluster := p.New("shop"), p.New("")
	for _, obj := range []T{namespaced, cluster} {
		obj.SetName("a")
	}
	c := hub(t, namespaced, cluster)

	for _, namespace := range []string{"shop", ""} {
		obj, err := p.Get(t.Context(), c, types.NamespacedName{Namespace: namespace, Name: "a"})
		if err != nil || obj.GetNamespace() != namespace {
			t.Errorf("get from %q: %v in %q", namespace, err, obj.GetNamespace())
		}
		if _, err := p.Get(t.Context(), c,
			types.NamespacedName{Namespace: namespace, Name: "b"}); !apierrors.IsNotFound(err) {
			t.Errorf("get what is not there from %q: %v", namespace, err)
		}
	}
	for namespace, n := range map[string]int{"shop": 2, "bank": 1, "": 2} {
		if all, err := p.Over(t.Context(), c, namespace); err != nil || len(all) != n {
			t.Errorf("%d objects count for %q, want %d: %v", len(all), namespace, n, err)
		}
	}
	for name, want := range map[string]struct {
		opts []client.ListOption
		n    int
	}{
		"both scopes":           {nil, 2},
		"one namespace":         {[]client.ListOption{client.InNamespace("shop")}, 1},
		"a namespace with none": {[]client.ListOption{client.InNamespace("other")}, 0},
	} {
		all, err := p.List(t.Context(), c, want.opts...)
		if err != nil || len(all) != want.n {
			t.Errorf("list %s: %d, %v, want %d", name, len(all), err, want.n)
		}
	}
	if kinds := p.Kinds(); len(kinds) != 2 || fmt.Sprintf("%T", kinds[0]) == fmt.Sprintf("%T", kinds[1]) {
		t.Errorf("the kinds are %T", kinds)
	}
}

func TestAnEmptyNamespaceIsTheClusterScopedKind(t *testing.T) {
	t.Run("bindings", func(t *testing.T) { pair(t, scope.Bindings) })
	t.Run("propagations", func(t *testing.T) { pair(t, scope.Propagations) })
	t.Run("overrides", func(t *testing.T) { pair(t, scope.Overrides) })
}

func TestWorksAreFoundByTheirBindingInBothScopes(t *testing.T) {
	work := func(name string, notes map[string]string) *workv1alpha1.Work {
		return &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-m1", Name: name, Annotations: notes}}
	}
	c := hub(t,
		work("namespaced", map[string]string{workv1alpha2.ResourceBindingNamespaceAnnotation: "shop",
			workv1alpha2.ResourceBindingNameAnnotation: "b"}),
		work("other-namespace", map[string]string{workv1alpha2.ResourceBindingNamespaceAnnotation: "other",
			workv1alpha2.ResourceBindingNameAnnotation: "b"}),
		work("cluster", map[string]string{workv1alpha2.ClusterResourceBindingNameAnnotation: "b"}),
		work("unbound", nil),
	)
	for binding, want := range map[types.NamespacedName]string{
		{Namespace: "shop", Name: "b"}: "namespaced",
		{Name: "b"}:                    "cluster",
	} {
		works, err := scope.WorksOf(t.Context(), c, binding)
		if err != nil || len(works) != 1 || works[0].Name != want {
			t.Errorf("works of %s: %v, %v, want %s", binding, works, err, want)
		}
	}
	if key, bound := scope.BindingOf(work("unbound", nil)); bound {
		t.Errorf("a work of no binding is of %s", key)
	}
}

func TestNewBindingHasTheNameOfItsWorks(t *testing.T) {
	apps, kruise := schema.GroupKind{Group: "apps", Kind: "StatefulSet"},
		schema.GroupKind{Group: "apps.kruise.io", Kind: "StatefulSet"}
	karmadas, apart := names.Binding("StatefulSet", "db"), names.BindingApart(kruise, "db")
	binding := func(name, group string) client.Object {
		b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
		b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: group + "/v1", Kind: "StatefulSet", Namespace: "shop",
			Name: "db"}
		return b
	}
	workOf := func(binding string) client.Object {
		return &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-m1", Name: "of-" + binding,
			Annotations: map[string]string{workv1alpha2.ResourceBindingNamespaceAnnotation: "shop",
				workv1alpha2.ResourceBindingNameAnnotation: binding}}}
	}
	for name, c := range map[string]struct {
		gk      schema.GroupKind
		objects []client.Object
		want    string // empty if other templates have all names
	}{
		"without Works":                       {kruise, nil, karmadas},
		"Karmada's name is taken":             {kruise, []client.Object{binding(karmadas, "apps")}, apart},
		"Works of its own name remain":        {kruise, []client.Object{workOf(karmadas), workOf(apart)}, apart},
		"Works of another template's name":    {apps, []client.Object{workOf(karmadas), workOf(apart)}, karmadas},
		"another template has taken its name": {kruise, []client.Object{workOf(apart), binding(apart, "apps")}, karmadas},
		"other templates have taken both names": {kruise, []client.Object{binding(karmadas, "apps"),
			binding(apart, "example.com")}, ""},
		"its binding was created by another run": {kruise, []client.Object{binding(apart, "apps.kruise.io")}, apart},
	} {
		got, err := scope.NewBindingName(t.Context(), hub(t, c.objects...), c.gk, "shop", "db")
		if got != c.want || errors.Is(err, propagate.ErrTaken) != (c.want == "") || err != nil && c.want != "" {
			t.Errorf("%s: got %q, %v, want %q", name, got, err, c.want)
		}
	}
}
