package execute_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/object/names"
)

// A hub that did not hold overrides to their templates left Works behind whose manifests are other objects.
func TestAWorkOfABindingAppliesNothingButItsTemplate(t *testing.T) {
	const grant = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"me"}}`
	const configMap = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"shop","name":"c"}}`
	bound := map[string]string{"resourcebinding.karmada.io/namespace": "shop",
		"resourcebinding.karmada.io/name": "c-configmap"}
	set := func(apiVersion string) string {
		return `{"apiVersion":"` + apiVersion + `","kind":"StatefulSet","metadata":{"namespace":"shop","name":"db"}}`
	}
	apart := map[string]string{"resourcebinding.karmada.io/namespace": "shop",
		"resourcebinding.karmada.io/name": names.BindingApart(schema.GroupKind{Group: "apps.kruise.io", Kind: "StatefulSet"},
			"db")}
	for _, c := range []struct {
		what, name, manifest string
		annotations          map[string]string
		refused              bool
	}{
		{"its template", names.Work("ConfigMap", "c", "shop"), configMap, bound, false},
		{"another kind", names.Work("ConfigMap", "c", "shop"), grant, bound, true},
		{"another kind in the namespace", names.Work("ConfigMap", "c", "shop"),
			`{"apiVersion":"v1","kind":"Secret","metadata":{"namespace":"shop","name":"c"}}`, bound, true},
		{"another name", names.Work("ConfigMap", "c", "shop"),
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"shop","name":"d"}}`, bound, true},
		{"another namespace", names.Work("ConfigMap", "c", "shop"),
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"bank","name":"c"}}`, bound, true},
		{"a Work of a namespace's binding with what is in none", names.Work("ClusterRoleBinding", "me", ""), grant, bound,
			true},
		{"a cluster-scoped template", names.Work("ClusterRoleBinding", "me", ""), grant,
			map[string]string{"clusterresourcebinding.karmada.io/name": "me-clusterrolebinding"}, false},
		{"another cluster-scoped one", names.Work("ClusterRole", "me", ""), grant,
			map[string]string{"clusterresourcebinding.karmada.io/name": "me-clusterrole"}, true},
		{"what a template encloses", names.Work("EnclosedManifest", "kruise.x", ""), configMap,
			map[string]string{"clusterresourcebinding.karmada.io/name": "kruise.x-enclosedmanifest"}, false},
		{"a binding of a namespace that is called like one that encloses", names.Work("EnclosedManifest", "x", ""), configMap,
			map[string]string{"resourcebinding.karmada.io/namespace": "shop",
				"resourcebinding.karmada.io/name": "x-enclosedmanifest"}, true},
		{"a template whose binding has a name apart",
			names.WorkApart(schema.GroupKind{Group: "apps.kruise.io", Kind: "StatefulSet"}, "db", "shop"),
			set("apps.kruise.io/v1beta1"), apart, false},
		{"one of another group", names.WorkApart(schema.GroupKind{Group: "apps.kruise.io", Kind: "StatefulSet"}, "db",
			"shop"), set("apps/v1"), apart, true},
		{"a Work that an administrator wrote", "anything", grant, nil, false},
	} {
		w := &workv1alpha1.Work{}
		w.Namespace, w.Name, w.Annotations = "karmada-es-eu", c.name, c.annotations
		w.Spec.Workload.Manifests = make([]workv1alpha1.Manifest, 1)
		w.Spec.Workload.Manifests[0].Raw = []byte(c.manifest)
		_, err := execute.Desired(w, nil, nil)
		if (err != nil) != c.refused || err != nil && !strings.Contains(err.Error(), "is not the template of that binding") {
			t.Errorf("%s: %v, want it refused: %t", c.what, err, c.refused)
		}
	}
}
