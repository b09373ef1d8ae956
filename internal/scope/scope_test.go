package scope_test

import (
	"context"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/scope"
)

// indexer takes the index that it is given into a fake client.
type indexer struct{ client.Client }

func (i indexer) IndexField(_ context.Context, obj client.Object, field string, values client.IndexerFunc) error {
	return fake.AddIndex(i.Client, obj, field, values)
}

func hub(t *testing.T, objs ...client.Object) client.Client {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{policyv1alpha1.AddToScheme, workv1alpha1.AddToScheme,
		workv1alpha2.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	return fake.NewClientBuilder().WithScheme(s).WithObjects(objs...).Build()
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
	if err := scope.IndexWorks(t.Context(), indexer{c}); err != nil {
		t.Fatal(err)
	}
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
