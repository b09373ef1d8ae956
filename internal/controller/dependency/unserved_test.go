package dependency

import (
	"context"
	"github.com/argosy-io/argosy/test/kit/controllertest"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
)

// Objects stay attached while the hub temporarily does not serve their kind.
func TestDependenciesStayWhileKindIsNotServed(t *testing.T) {
	web := types.NamespacedName{Namespace: "shop", Name: "web-deployment"}
	for _, tc := range []struct {
		story, kind string
		needs       configv1alpha1.DependentObjectReference
		deletes     bool
		want        time.Duration
	}{
		{story: "the kind of what is needed by name", kind: "ConfigMap",
			needs: configv1alpha1.DependentObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "one"}},
		{story: "the kind of what labels select", kind: "ConfigMap", want: unservedRetry,
			needs: configv1alpha1.DependentObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop",
				LabelSelector: &metav1.LabelSelector{}}},
		{story: "the kind of what leads to it", kind: "WorkflowTemplate", want: unservedRetry,
			needs: configv1alpha1.DependentObjectReference{APIVersion: "argoproj.io/v1alpha1", Kind: "WorkflowTemplate",
				Namespace: "shop", Name: "first"}},
		{story: "the kind of the template, whose binding somebody deletes", kind: "Deployment", deletes: true, want: endRetry,
			needs: configv1alpha1.DependentObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "one"}},
	} {
		t.Run(tc.story, func(t *testing.T) {
			controllertest.Run(t, func(t *testing.T) {
				h := newHub(t)
				first := object("WorkflowTemplate", "shop", "first")
				first.Object["spec"] = map[string]any{"templates": []any{
					map[string]any{"container": map[string]any{"envFrom": []any{map[string]any{"configMapRef": map[string]any{
						"name": "one"}}}}},
				}}
				h.create(first)
				h.create(object("ConfigMap", "shop", "one"))
				h.needs = []configv1alpha1.DependentObjectReference{tc.needs}
				h.workload("Deployment", "shop", "web", "eu")
				h.settle()
				follower := types.NamespacedName{Namespace: "shop", Name: "one-configmap"}
				if r := h.get(follower).BindingSpec().RequiredBy; len(r) != 1 {
					t.Fatalf("the ConfigMap is required by %v", r)
				}

				h.unserve(tc.kind)
				if tc.deletes {
					h.mustSucceed(h.client.Delete(t.Context(), h.get(web)))
				}
				h.writes = nil
				for range 2 {
					got, err := h.r.Reconcile(context.Background(), reconcile.Request{NamespacedName: web})
					if err != nil || got.RequeueAfter != tc.want {
						t.Errorf("looked at again after %s (%v), want %s", got.RequeueAfter, err, tc.want)
					}
				}
				if r := h.get(follower).BindingSpec().RequiredBy; len(r) != 1 || h.going(follower) || len(h.writes) > 0 &&
					!tc.deletes {
					t.Errorf("the ConfigMap is required by %v, going: %v; written: %v", r, h.going(follower), h.writes)
				}
			})
		})
	}
}

// An unknown kind blocks only dependencies of that kind.
func TestUnservedKindDoesNotBlockDetachment(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		web := types.NamespacedName{Namespace: "shop", Name: "web-deployment"}
		h := newHub(t)
		h.create(object("ConfigMap", "shop", "one"))
		selects := configv1alpha1.DependentObjectReference{APIVersion: "example.com/v1", Kind: "Misspelt", Namespace: "shop",
			LabelSelector: &metav1.LabelSelector{}}
		h.needs = []configv1alpha1.DependentObjectReference{{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop",
			Name: "one"}, selects}
		h.workload("Deployment", "shop", "web", "eu")
		h.settle()
		follower := types.NamespacedName{Namespace: "shop", Name: "one-configmap"}
		if r := h.get(follower).BindingSpec().RequiredBy; len(r) != 1 {
			t.Fatalf("the ConfigMap is required by %v", r)
		}
		h.needs = h.needs[1:]
		got, err := h.r.Reconcile(t.Context(), reconcile.Request{NamespacedName: web})
		if err != nil || got.RequeueAfter == 0 {
			t.Errorf("looked at again after %s (%v), want soon", got.RequeueAfter, err)
		}
		if !h.going(follower) {
			t.Error("the ConfigMap follows still")
		}
	})
}
