package cluster

import (
	"encoding/base64"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/internal/member/membertest"
)

func TestAMemberLetsTheHubActAsItsUsersAndKeepsWhatItHas(t *testing.T) {
	roles := membertest.Kind{GroupVersionKind: rbacv1.SchemeGroupVersion.WithKind("ClusterRole"), Plural: "clusterroles"}
	bindings := membertest.Kind{GroupVersionKind: rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"), Plural: "clusterrolebindings"}
	token := "e30." + base64.RawURLEncoding.EncodeToString([]byte(`{"sub":"system:serviceaccount:ours:acting"}`)) + ".x"
	for name, c := range map[string]struct {
		token  string
		before bool // the role is there and allows less
		want   bool
	}{
		"nothing is there":           {token: token, want: true},
		"a role is there":            {token: token, before: true, want: true},
		"a token of somebody else's": {token: "opaque"},
	} {
		t.Run(name, func(t *testing.T) {
			m := membertest.New(t, roles, bindings)
			if c.before {
				m.Put(&rbacv1.ClusterRole{TypeMeta: metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole"}, ObjectMeta: metav1.ObjectMeta{Name: impersonator},
					Rules: []rbacv1.PolicyRule{{Verbs: []string{"impersonate"}, APIGroups: []string{""}, Resources: []string{"users"}, ResourceNames: []string{"alice"}}}})
			}
			cluster := m.Cluster("eu")
			cluster.Spec.ImpersonatorSecretRef = &clusterv1alpha1.LocalSecretReference{Namespace: "karmada-cluster", Name: "eu-impersonator"}
			f := newFleet(t, cluster, m.Secret("eu"), &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-cluster", Name: "eu-impersonator"}, Data: map[string][]byte{"token": []byte(c.token)}})
			f.look("eu")
			role, binding := m.Object(roles, "", impersonator), m.Object(bindings, "", impersonator)
			if (role != nil) != c.want || (binding != nil) != c.want {
				t.Fatalf("there are %v and %v", role, binding)
			}
			if !c.want {
				return
			}
			subjects, _, _ := unstructured.NestedSlice(binding.Object, "subjects")
			if s := subjects[0].(map[string]any); s["namespace"] != "ours" || s["name"] != "acting" {
				t.Errorf("the binding is of %v", s)
			}
			rules, _, _ := unstructured.NestedSlice(role.Object, "rules")
			if narrow := rules[0].(map[string]any)["resourceNames"] != nil; narrow != c.before {
				t.Errorf("the role has rules %v", rules)
			}
			asked := len(m.Requests("GET /apis/rbac"))
			f.look("eu")
			if again := len(m.Requests("GET /apis/rbac")); again != asked {
				t.Errorf("the member was asked again: %v", m.Requests("GET /apis/rbac"))
			}
		})
	}
}
