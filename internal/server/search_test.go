package server

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/argosy-io/argosy/internal/core/hub/roles"
	"github.com/argosy-io/argosy/internal/search"
	"github.com/argosy-io/argosy/test/kit"
)

// The right to search, and the right to the global proxy, give no right to any cluster. What the global proxy passes to
// the hub is authorized as the user.
func TestSearchAndGlobalProxyNeedTheirRights(t *testing.T) {
	h := useSharedHub(t)
	as := func(name string) rest.Interface {
		config := rest.CopyConfig(h.adminConfig)
		config.Impersonate = rest.ImpersonationConfig{UserName: name, Groups: []string{"system:authenticated"}}
		return kubernetes.NewForConfigOrDie(config).RESTClient()
	}
	bind := func(user, role string) {
		_, err := h.admin.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: user},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	bind("search-viewer", roles.View)
	if _, err := h.admin.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "search-proxy"}, Rules: []rbacv1.PolicyRule{{Verbs: []string{"*"},
			APIGroups: []string{"search.karmada.io"}, Resources: []string{"proxying/proxy"}}}},
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	bind("search-proxied", "search-proxy")
	for _, c := range []struct {
		user, path string
		code       int
		text       string
	}{
		{"search-stranger", search.CachePath + "/api/v1/pods", http.StatusForbidden, `cannot get resource "search/api"`},
		{"search-stranger", search.ProxyPath + "/api/v1/pods", http.StatusForbidden, `cannot get resource "proxying/proxy"`},
		{"search-viewer", search.CachePath + "/api/v1/pods", http.StatusForbidden, "you may not list pods in any cluster"},
		{"search-viewer", search.ProxyPath + "/api/v1/pods", http.StatusForbidden, `cannot get resource "proxying/proxy"`},
		{"search-proxied", search.ProxyPath + "/api/v1/pods", http.StatusForbidden,
			`User "search-proxied" cannot list resource "pods"`},
		{"search-proxied", search.ProxyPath + "/apis/apps/v1", http.StatusOK, ""},
	} {
		kit.Eventually(t, c.user+" gets "+c.path, func() string { // the authorizer sees a new role a moment later
			err := as(c.user).Get().AbsPath(c.path).Do(t.Context()).Error()
			code := http.StatusOK
			if status, ok := err.(apierrors.APIStatus); ok {
				code = int(status.Status().Code)
			}
			if code != c.code || c.text != "" && !strings.Contains(err.Error(), c.text) {
				return fmt.Sprintf("%d %v", code, err)
			}
			return ""
		})
	}
	// The administrator: no cluster is joined.
	raw, err := h.admin.RESTClient().Get().AbsPath(search.ProxyPath + "/api/v1/namespaces/default").DoRaw(t.Context())
	if err != nil || !strings.Contains(string(raw), `"name":"default"`) {
		t.Errorf("the global proxy passes on %s: %v", raw, err)
	}
}
