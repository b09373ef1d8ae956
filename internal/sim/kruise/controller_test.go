package kruise

import (
	"context"
	"errors"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/yaml"
)

// The real manager writes no status while it cannot write a subset, so that observedGeneration stays behind.
func TestAUnitedDeploymentHasNoStatusWhileItsSubsetsAreRefused(t *testing.T) {
	u := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "web",
		"namespace": "default", "uid": "1", "generation": int64(1)}}}
	u.SetGroupVersionKind(UnitedDeploymentKind.WithVersion("v1alpha1"))
	var spec map[string]any
	if err := yaml.Unmarshal([]byte(unitedText), &spec); err != nil {
		t.Fatal(err)
	}
	u.Object["spec"] = spec
	refused := true
	c := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(u).WithStatusSubresource(u).
		WithInterceptorFuncs(interceptor.Funcs{Apply: func(ctx context.Context, c client.WithWatch,
			o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			if refused {
				return errors.New("denied by policy")
			}
			return c.Apply(ctx, o, opts...)
		}}).Build()
	versions := Versions{UnitedDeploymentKind: "v1alpha1", CloneSetKind.GroupKind(): "v1alpha1"}
	r := &reconciler{client: c, reader: c, gvk: u.GroupVersionKind(), versions: versions}
	r.sync = r.syncUnitedDeployment
	observed := func() any {
		t.Helper()
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(u), u); err != nil {
			t.Fatal(err)
		}
		n, _, _ := unstructured.NestedFieldNoCopy(u.Object, "status", "observedGeneration")
		return n
	}
	request := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(u)}
	if _, err := r.Reconcile(t.Context(), request); err == nil {
		t.Error("the refused subsets are no error, so nothing tries again")
	}
	if n := observed(); n != nil {
		t.Errorf("while subsets are refused, observedGeneration is %v", n)
	}
	refused = false
	if _, err := r.Reconcile(t.Context(), request); err != nil {
		t.Error(err)
	}
	if n := observed(); n != int64(1) {
		t.Errorf("once they are taken, observedGeneration is %v", n)
	}

	// A subset that is no more goes, and the other stays.
	subsets := func() (names []string) {
		t.Helper()
		all := listOf(CloneSetKind)
		if err := c.List(t.Context(), all); err != nil {
			t.Fatal(err)
		}
		for _, set := range all.Items {
			names = append(names, set.GetName())
		}
		return names
	}
	if got := subsets(); !slices.Equal(got, []string{"web-a", "web-b"}) {
		t.Errorf("the CloneSets are %v", got)
	}
	if err := unstructured.SetNestedSlice(u.Object, []any{map[string]any{"name": "b"}, map[string]any{"name": "c"}},
		"spec", "topology", "subsets"); err != nil {
		t.Fatal(err)
	}
	if err := c.Update(t.Context(), u); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Reconcile(t.Context(), request); err != nil {
		t.Error(err)
	}
	if got := subsets(); !slices.Equal(got, []string{"web-b", "web-c"}) {
		t.Errorf("with other subsets, the CloneSets are %v", got)
	}
}

// The garbage collector may not have removed the revisions of an earlier object of the name.
func TestRevisionOfAnEarlierObjectDoesNotStopTheNextOne(t *testing.T) {
	c := fake.NewClientBuilder().WithScheme(scheme.Scheme).Build()
	r := &reconciler{client: c, reader: c}
	var names []string
	for _, uid := range []types.UID{"1", "2"} {
		u := object(t, cloneSetText)
		u.SetUID(uid)
		var o observed
		if err := r.revise(t.Context(), u, &o); err != nil {
			t.Fatal(err)
		}
		if template := o.revisions[o.update]; template == nil || template.Spec.Containers[0].Image != "web:1" {
			t.Errorf("object %s has the revisions %v", uid, o.revisions)
		}
		names = append(names, o.update)
	}
	if names[0] != names[1] {
		t.Errorf("the same template is the revisions %v", names)
	}
}
