package template_test

import (
	"context"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/core/source/dependency"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

func TestInjecting(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		h := newHub(t)
		h.served.set(core, &metav1.APIResourceList{GroupVersion: kruise.String(),
			APIResources: []metav1.APIResource{{Name: "sidecarsets", Kind: "SidecarSet"}}})
		h.start()
		namespaces := fake.NewClientBuilder().WithObjects(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop",
			Labels: map[string]string{"team": "x"}}}).Build()
		workload := object("apps/v1", "Deployment", "shop", "web")
		workload.Object["spec"] = map[string]any{"template": map[string]any{"metadata": map[string]any{
			"labels": map[string]any{"app": "web"}}}}
		injecting := func(when string, want ...string) {
			t.Helper()
			h.eventually(when, func() bool {
				sets, err := h.store.Injecting(t.Context(), namespaces, workload)
				if err != nil {
					t.Fatal(err)
				}
				var got []string
				for _, s := range sets {
					got = append(got, s.Name)
				}
				return slices.Equal(got, want)
			})
		}
		injecting("none while the kind is not wanted")
		if h.store.Wanted(dependency.SidecarSetKind) {
			t.Error("to ask for them has them watched")
		}
		h.store.Want(dependency.SidecarSetKind)
		sets := h.dynamic.Resource(kruise.WithResource("sidecarsets"))
		p := &policyv1alpha1.ClusterPropagationPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p",
			Labels: map[string]string{policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel: "id"}}}
		put := func(name, version, app, team string) {
			u := object("apps.kruise.io/v1alpha1", "SidecarSet", "", name)
			u.SetUID(types.UID(name))
			u.SetResourceVersion(version)
			u.Object["spec"] = map[string]any{"selector": map[string]any{"matchLabels": map[string]any{"app": app}},
				"namespaceSelector": map[string]any{"matchLabels": map[string]any{"team": team}}}
			propagate.Claim(u, p)
			do := func() error { _, err := sets.Create(context.Background(), u, metav1.CreateOptions{}); return err }
			if version != "1" {
				do = func() error { _, err := sets.Update(context.Background(), u, metav1.UpdateOptions{}); return err }
			}
			if err := do(); err != nil {
				t.Fatal(err)
			}
		}
		put("b", "1", "web", "x")
		put("a", "1", "web", "x")
		put("c", "1", "api", "x")
		put("d", "1", "web", "y")
		injecting("those that select its pods and its namespace, by name", "a", "b")
		put("b", "2", "api", "x")
		put("c", "2", "web", "x")
		injecting("when they select others", "a", "c")
		if err := sets.Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		injecting("when one is gone", "c")
	})
}
