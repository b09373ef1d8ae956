package dependency

import (
	"github.com/argosy-io/argosy/test/kit/controllertest"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
)

// A Workflow needs the dependencies of all templates that it refers to, directly or not. Cycles end.
func TestDependenciesOfWorkflowTemplatesFollow(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		h := newHub(t)
		template := func(kind, namespace, name, refers string, clusterScope bool, settings string) {
			u := object(kind, namespace, name)
			u.Object["spec"] = map[string]any{"templates": []any{
				map[string]any{"container": map[string]any{"envFrom": []any{map[string]any{"configMapRef": map[string]any{
					"name": settings}}}}},
				map[string]any{"steps": []any{[]any{map[string]any{"templateRef": map[string]any{"name": refers,
					"clusterScope": clusterScope}}}}},
			}}
			h.create(u)
		}
		h.needs = []configv1alpha1.DependentObjectReference{
			{APIVersion: "argoproj.io/v1alpha1", Kind: "WorkflowTemplate", Namespace: "shop", Name: "first"},
			{APIVersion: "v1", Kind: "ServiceAccount", Namespace: "shop", Name: "runner"},
		}
		for _, name := range []string{"one", "two", "three"} {
			h.create(object("ConfigMap", "shop", name))
		}
		h.workload("Deployment", "shop", "web", "eu")
		follow := func(when string, want ...string) {
			t.Helper()
			h.settle()
			var got []string
			for _, b := range h.bindings() {
				if b.GetName() != "web-deployment" && !h.going(client.ObjectKeyFromObject(b)) {
					got = append(got, strings.TrimPrefix(client.ObjectKeyFromObject(b).String(), "/"))
				}
			}
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("%s, %v follow, want %v", when, got, want)
			}
		}
		follow("while none is there")
		template("WorkflowTemplate", "shop", "first", "all", true, "one")
		follow("with one that is itself", "shop/first-workflowtemplate", "shop/one-configmap")
		template("ClusterWorkflowTemplate", "", "all", "second", false, "two")
		template("WorkflowTemplate", "shop", "second", "first", false, "three")
		account := object("ServiceAccount", "shop", "runner")
		account.Object["imagePullSecrets"] = []any{map[string]any{"name": "registry"}}
		account.Object["secrets"] = []any{map[string]any{"name": "runner-token-x"}}
		h.create(account)
		h.create(object("Secret", "shop", "registry"))
		h.create(object("Secret", "shop", "runner-token-x"))
		follow("with a circle of them", "all-clusterworkflowtemplate", "shop/first-workflowtemplate", "shop/one-configmap",
			"shop/registry-secret",
			"shop/runner-serviceaccount", "shop/second-workflowtemplate", "shop/three-configmap", "shop/two-configmap")

		web := types.NamespacedName{Namespace: "shop", Name: "web-deployment"}
		if !slices.Contains(h.r.index.dependents(object("ConfigMap", "shop", "three")), web) {
			t.Error("a change of what the last template needs does not wake the Workflow")
		}
	})
}
