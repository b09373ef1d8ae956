package dependency

import (
	"github.com/argosy-io/argosy/test/kit/controllertest"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The roles that let a Workflow's service account report results follow the Workflow, and no others.
func TestReportingRolesFollowWorkflow(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		h := newHub(t)
		h.workload("Workflow", "shop", "web", "eu")
		role := func(kind, namespace, name string, verbs ...any) *unstructured.Unstructured {
			u := object(kind, namespace, name)
			u.Object["rules"] = []any{map[string]any{"apiGroups": []any{"argoproj.io"},
				"resources": []any{"workflowtaskresults"}, "verbs": verbs}}
			return u
		}
		binds := func(namespace, name, kind, role, account string) *unstructured.Unstructured {
			u := object("RoleBinding", namespace, name)
			u.Object["roleRef"] = map[string]any{"kind": kind, "name": role}
			u.Object["subjects"] = []any{map[string]any{"kind": "ServiceAccount", "name": account, "namespace": "shop"}}
			return u
		}
		follow := func(when string, want ...string) {
			t.Helper()
			h.settle()
			var got []string
			for _, b := range h.bindings() {
				if b.GetName() != "web-workflow" && !h.going(client.ObjectKeyFromObject(b)) {
					got = append(got, strings.TrimPrefix(client.ObjectKeyFromObject(b).String(), "/"))
				}
			}
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("%s, %v follow, want %v", when, got, want)
			}
		}
		wakes := func(u *unstructured.Unstructured) {
			t.Helper()
			if !slices.Contains(h.r.index.dependents(u), client.ObjectKey{Namespace: "shop", Name: "web-workflow"}) {
				t.Errorf("%s %s does not wake the Workflow", u.GetKind(), u.GetName())
			}
		}
		follow("while there are none")
		wakes(binds("shop", "reports", "Role", "executor", "default"))
		h.create(binds("shop", "reports", "Role", "executor", "default"))
		follow("with a binding of no role")
		wakes(role("Role", "shop", "executor"))
		h.create(role("Role", "shop", "executor", "create", "patch"))
		h.create(role("Role", "shop", "reader", "get"))
		h.create(binds("shop", "reads", "Role", "reader", "default"))
		h.create(binds("shop", "theirs", "Role", "executor", "somebody"))
		h.create(role("ClusterRole", "", "workflows", "*"))
		h.create(binds("shop", "by-cluster", "ClusterRole", "workflows", "default"))
		follow("with a role and a binding of a cluster's", "shop/by-cluster-rolebinding", "shop/executor-role",
			"shop/reports-rolebinding")

		// One that a reconciler of another day recorded stays, and another that goes is let go.
		h.restart(h.r.Templates)
		if wrote := h.settle(); len(wrote) != 0 {
			t.Errorf("after a restart it wrote %v", wrote)
		}
		h.mustSucceed(h.templates.Resource(resources["RoleBinding"]).Namespace("shop").Delete(t.Context(), "reports",
			metav1.DeleteOptions{}))
		follow("without the binding of the role", "shop/by-cluster-rolebinding")

		// The account of a workload is not asked for its rights.
		h.workload("Deployment", "shop", "api", "eu")
		h.settle()
		if slices.Contains(h.r.index.dependents(role("Role", "shop", "executor")),
			client.ObjectKey{Namespace: "shop", Name: "api-deployment"}) {
			t.Error("roles wake a Deployment")
		}
	})
}
