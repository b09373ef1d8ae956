package proxy_test

import (
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/authentication/user"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	"github.com/argosy-io/argosy/internal/core/cluster/access"
	"github.com/argosy-io/argosy/internal/core/cluster/tenure"
	"github.com/argosy-io/argosy/internal/member/proxy"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

var roleKind = membertest.Kind{GroupVersionKind: rbacv1.SchemeGroupVersion.WithKind("ClusterRole"),
	Plural: "clusterroles"}

func TestCallerActsOnlyUnderAllowedNames(t *testing.T) {
	m, requests := membertest.New(t, roleKind), &seen{}
	// The hub's own token, and that by which it acts as others, are two.
	objects := joined(m, "eu")
	m.Take("acting")
	m.Behave(func(w http.ResponseWriter, r *http.Request) bool {
		requests.note(w, r.Clone(r.Context()))
		if r.Header.Get("Authorization") == "Bearer "+membertest.Token {
			r.Header.Set("Authorization", "Bearer acting")
		}
		return false
	})
	server, store, as := hubFor(t, append(objects[:2:2], impersonator("eu", "acting"))...)
	for name, c := range map[string]struct {
		caller  *user.DefaultInfo
		code    int
		user    string
		groups  []string
		message string
	}{
		"by name": {&user.DefaultInfo{Name: "alice", Groups: []string{"devs", "finance", "system:authenticated"}},
			200, "alice", []string{"devs"}, ""},
		"by a group": {&user.DefaultInfo{Name: "dora", UID: "7", Groups: []string{"devs"},
			Extra: map[string][]string{"scopes": {"all"}}}, 200, "dora", []string{"devs"}, ""},
		"by nobody's word": {&user.DefaultInfo{Name: "eve", Groups: []string{"finance", "system:authenticated"}}, 403, "",
			nil, `"eve" is not allowed by any ClusterRole for clusters/proxy`},
		"a service account": {&user.DefaultInfo{Name: "system:serviceaccount:ci:deployer",
			Groups: []string{"system:serviceaccounts", "system:serviceaccounts:ci", "system:authenticated"}}, 403, "", nil,
			"kubectl annotate cluster eu argosy.io/impersonate-system-names=system:serviceaccount:ci:deployer"},
		"a component": {&user.DefaultInfo{Name: "system:kube-scheduler", Groups: []string{"devs"}}, 403, "", nil,
			"a system user of Kubernetes"},
		"nobody": {&user.DefaultInfo{Name: "system:anonymous", Groups: []string{"devs", "system:unauthenticated"}}, 403,
			"", nil, "a system user of Kubernetes"},
	} {
		t.Run(name, func(t *testing.T) {
			as.Store(c.caller)
			before := requests.last()
			resp, body := raw(t, server, "GET "+proxy.Path("eu")+"/version HTTP/1.1")
			if resp.StatusCode != c.code || !strings.Contains(strings.ReplaceAll(body, `\"`, `"`), c.message) {
				t.Fatalf("%s: %s", resp.Status, body)
			}
			if c.code != http.StatusOK {
				if requests.last() != before {
					t.Errorf("the member was asked for %s", requests.last().URL)
				}
				return
			}
			got := requests.last().Header
			if got.Get("Authorization") != "Bearer acting" || got.Get("Impersonate-User") != c.user ||
				!slices.Equal(got["Impersonate-Group"], c.groups) || got.Get("Impersonate-Uid") != "" {
				t.Errorf("the member got %v", got)
			}
			role := m.Object(roleKind, "", access.Impersonator)
			if role == nil || !strings.Contains(strings.Join(namesIn(role, "users"), " "), c.user) {
				t.Errorf("the role of the member is %v", role)
			}
		})
	}

	t.Run("a service account that the Cluster names", func(t *testing.T) {
		cluster := &clusterv1alpha1.Cluster{}
		if err := store.Get(t.Context(), client.ObjectKey{Name: "eu"}, cluster); err != nil {
			t.Fatal(err)
		}
		cluster.Annotations = map[string]string{wellknown.SystemNamesAnnotation: "system:serviceaccount:ci:deployer"}
		if err := store.Update(t.Context(), cluster); err != nil {
			t.Fatal(err)
		}
		as.Store(&user.DefaultInfo{Name: "system:serviceaccount:ci:deployer",
			Groups: []string{"system:serviceaccounts", "system:authenticated"}})
		if resp, body := raw(t, server, "GET "+proxy.Path("eu")+"/version HTTP/1.1"); resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s", resp.Status, body)
		}
		if got := requests.last().Header; got.Get("Impersonate-User") != "system:serviceaccount:ci:deployer" ||
			got["Impersonate-Group"] != nil {
			t.Errorf("the member got %v", got)
		}
		if got := namesIn(m.Object(roleKind, "", access.Impersonator), "serviceaccounts"); !slices.Equal(got,
			[]string{"deployer"}) {
			t.Errorf("the role names accounts %v", got)
		}
	})

	t.Run("the administrator acts as the hub, whose credentials the administrator may read", func(t *testing.T) {
		as.Store(&user.DefaultInfo{Name: "admin", Groups: []string{"system:masters", "system:authenticated"}})
		resp, body := raw(t, server, "GET "+proxy.Path("eu")+
			"/version HTTP/1.1\nImpersonate-User: x\nAuthorization: Bearer mine")
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s", resp.Status, body)
		}
		if got := requests.last().Header; got.Get("Authorization") != "Bearer "+membertest.Token ||
			got.Get("Impersonate-User") != "" {
			t.Errorf("the member got %v", got)
		}
		if got := namesIn(m.Object(roleKind, "", access.Impersonator), "groups"); slices.Contains(got, "system:masters") {
			t.Errorf("the role names groups %v", got)
		}
	})
}

// namesIn returns those whom a role is about.
func namesIn(role *unstructured.Unstructured, resource string) []string {
	rules, _, _ := unstructured.NestedSlice(role.Object, "rules")
	for _, rule := range rules {
		of, _, _ := unstructured.NestedStringSlice(rule.(map[string]any), "resources")
		if slices.Contains(of, resource) {
			names, _, _ := unstructured.NestedStringSlice(rule.(map[string]any), "resourceNames")
			return names
		}
	}
	return nil
}

func TestReplacedTokenIsUsed(t *testing.T) {
	m, requests := membertest.New(t, roleKind), &seen{}
	var old atomic.Int32
	m.Behave(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Authorization") == "Bearer "+membertest.Token {
			old.Add(1)
		}
		return requests.note(w, r.Clone(r.Context()))
	})
	server, store, as := hubFor(t, joined(m, "eu")...)
	admin := &user.DefaultInfo{Name: "admin", Groups: []string{"system:masters", "system:authenticated"}}
	ask := func(who *user.DefaultInfo) {
		t.Helper()
		as.Store(who)
		if resp, body := raw(t, server, "GET "+proxy.Path("eu")+"/version HTTP/1.1"); resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s", resp.Status, body)
		}
	}
	ask(admin)
	ask(alice)
	for _, name := range []string{"eu", "eu-impersonator"} {
		secret := &corev1.Secret{}
		if err := store.Get(t.Context(), client.ObjectKey{Namespace: "karmada-cluster", Name: name}, secret); err != nil {
			t.Fatal(err)
		}
		secret.Data["token"] = []byte("rotated")
		if err := store.Update(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
	}
	m.Take("rotated")
	old.Store(0)
	ask(admin)
	ask(alice)
	ask(&user.DefaultInfo{Name: "dora", Groups: []string{"devs"}}) // that the member has to know
	if n := old.Load(); n > 0 {
		t.Errorf("%d requests carried the token from before", n)
	}
	if got := namesIn(m.Object(roleKind, "", access.Impersonator), "users"); !slices.Contains(got, "dora") {
		t.Errorf("the role names %v", got)
	}
}

// The proxy of a hub that lost a member still serves its users, but writes no roles there.
func TestProxyForwardsNothingToMemberOfAnotherHub(t *testing.T) {
	m := membertest.New(t, roleKind, membertest.Lease)
	lease := &coordinationv1.Lease{TypeMeta: metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"}}
	tenure.Stamp{Hub: "another", Since: time.Unix(0, 0), Renewed: time.Unix(0, 0)}.Write(lease)
	m.Put(lease)
	server, _, _ := hubFor(t, joined(m, "eu")...)
	if resp, body := raw(t, server, "GET "+proxy.Path("eu")+"/version HTTP/1.1"); resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s", resp.Status, body)
	}
	if got := m.Writes(); len(got) > 0 {
		t.Errorf("written: %v", got)
	}
	lease.Spec.HolderIdentity = new(identity)
	m.Put(lease)
	// Use another member: after a failure the hub waits before it writes the roles again.
	n := membertest.New(t, roleKind, membertest.Lease)
	n.Put(lease)
	server, _, _ = hubFor(t, joined(n, "us")...)
	if resp, body := raw(t, server, "GET "+proxy.Path("us")+"/version HTTP/1.1"); resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s", resp.Status, body)
	}
	if got := n.Object(roleKind, "", access.Impersonator); got == nil ||
		got.GetAnnotations()["argosy.io/hub"] != identity {
		t.Errorf("its own member has the role %v", got)
	}
}
