package controller

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/scope"
	"github.com/argosy-io/argosy/test/kit/controllertest"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

// The server of these tests takes names of any length, so that they are held to the limits here.
func TestTemplatesWithTheLongestNamesPropagate(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		h, members := fleet(t, controllertest.Deployment)
		longest := func(first string) string { return first + strings.Repeat("x", 253-len(first)) }
		configs, roles, workloads := policy("shop", "v1", "ConfigMap"),
			policy("", "rbac.authorization.k8s.io/v1", "ClusterRole"), policy("shop", "apps/v1", "Deployment")
		configs.PropagationSpec().ResourceSelectors[0].Name = longest("own")
		workloads.SetName("workloads")
		workloads.SetLabels(map[string]string{"propagationpolicy.karmada.io/permanent-id": "workloads"})
		workloads.PropagationSpec().PropagateDeps = true
		for _, p := range []client.Object{configs, roles, workloads} {
			h.Make(p)
		}
		own := claimed(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: longest("own")},
			Data: map[string]string{"a": "1"}}, configs)
		needed := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: longest("needed")},
			Data: map[string]string{"a": "1"}}
		role := claimed(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: longest("Team:")}}, roles)
		web := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"replicas": int64(1),
			"template": map[string]any{"spec": map[string]any{
				"containers": []any{map[string]any{"name": "web", "image": "web",
					"envFrom": []any{map[string]any{"configMapRef": map[string]any{"name": needed.Name}}}}}}}}}}
		web.SetGroupVersionKind(controllertest.Deployment.GroupVersionKind)
		web.SetNamespace("shop")
		web.SetName(longest("web"))
		propagate.Claim(web, workloads)
		for _, obj := range []client.Object{needed, own, role, web} {
			h.Make(obj)
		}
		applied(h, t, own, membertest.ConfigMap)
		applied(h, t, role, controllertest.ClusterRole)
		applied(h, t, web, controllertest.Deployment)
		applied(h, t, needed, membertest.ConfigMap)

		var objs []client.Object
		bindings, err := scope.Bindings.List(t.Context(), h)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range bindings {
			objs = append(objs, b)
		}
		var works workv1alpha1.WorkList
		if err := h.List(t.Context(), &works); err != nil {
			t.Fatal(err)
		}
		for i := range works.Items {
			objs = append(objs, &works.Items[i])
		}
		for _, obj := range objs {
			if errs := validation.IsDNS1123Subdomain(obj.GetName()); len(errs) > 0 {
				t.Errorf("%T %s: %v", obj, obj.GetName(), errs)
			}
			for key, value := range obj.GetLabels() {
				if errs := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)...); len(errs) > 0 {
					t.Errorf("%T %s: label %s=%s: %v", obj, obj.GetName(), key, value, errs)
				}
			}
		}
		if want := 4; len(bindings) != want {
			t.Errorf("%d bindings, want %d", len(bindings), want)
		}

		h.Gone(own)
		h.Eventually("the one that was deleted goes", func() string {
			for name, m := range members {
				if m.Object(membertest.ConfigMap, "shop", own.Name) != nil {
					return name + " has it"
				}
			}
			return ""
		})
		if members["m1"].Object(membertest.ConfigMap, "shop", needed.Name) == nil {
			t.Error("another ConfigMap went with it")
		}
	})
}
