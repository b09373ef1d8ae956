package dependency

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/propagate"
)

// A user deletes the binding of a claimed template. It is recreated, perhaps without clusters at first, and its
// dependencies stay, however often it is reconciled meanwhile.
func TestDependenciesStayWhileBindingIsRecreated(t *testing.T) {
	eachScope(t, func(t *testing.T, h *hub, web types.NamespacedName) {
		h.create(object("ConfigMap", "shop", "settings"))
		h.settle()
		stays := func(when string) {
			t.Helper()
			h.settle()
			if r := h.get(settings).BindingSpec().RequiredBy; len(r) != 1 || h.going(settings) {
				t.Errorf("%s, it is required by %v; going: %v", when, r, h.going(settings))
			}
		}

		old := h.get(web)
		kind, name := old.BindingSpec().Resource.Kind, old.BindingSpec().Resource.Name
		tpl := object(kind, web.Namespace, name)
		p := &policyv1alpha1.ClusterPropagationPolicy{}
		p.Name, p.Labels = "p", map[string]string{policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel: "id"}
		propagate.Claim(tpl, p)
		h.update(tpl)
		h.mustSucceed(h.client.Delete(t.Context(), old))
		stays("while the old binding goes")
		gone := h.get(web)
		if slices.Contains(gone.GetFinalizers(), workv1alpha2.DependenciesDistributorFinalizer) {
			t.Errorf("the old binding keeps the finalizers %v", gone.GetFinalizers())
		}
		gone.SetFinalizers(nil)
		h.mustSucceed(h.client.Update(t.Context(), gone))
		stays("while there is none")

		p.Spec.PropagateDeps = true
		b, err := propagate.Binding(tpl, p, propagate.Meaning{ID: "another id"}, nil)
		h.mustSucceed(err)
		h.mustSucceed(h.client.Create(t.Context(), b))
		stays("while the new one is not scheduled")

		h.place(web, "asia")
		stays("when the new one is placed")
		if by := h.get(settings).BindingSpec().RequiredBy[0]; len(by.Clusters) != 1 || by.Clusters[0].Name != "asia" {
			t.Errorf("it is required by %v", by)
		}
		h.place(web)
		h.settle()
		if !h.going(settings) {
			t.Error("it stays when the new one has lost its clusters")
		}
	})
}
