package acting_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/argosy-io/argosy/internal/core/cluster/access"
	"github.com/argosy-io/argosy/internal/core/cluster/tenure"
	"github.com/argosy-io/argosy/internal/member"
	"github.com/argosy-io/argosy/internal/member/acting"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

var (
	roles    = membertest.Kind{GroupVersionKind: rbacv1.SchemeGroupVersion.WithKind("ClusterRole"), Plural: "clusterroles"}
	bindings = membertest.Kind{GroupVersionKind: rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"),
		Plural: "clusterrolebindings"}
)

// lets returns a role that lets into the proxies of all clusters.
func lets(name string) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{TypeMeta: metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{"cluster.karmada.io"},
			Resources: []string{"clusters/proxy"}}}}
}

func bound(name, role string, users ...string) *rbacv1.ClusterRoleBinding {
	b := &rbacv1.ClusterRoleBinding{TypeMeta: metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1",
		Kind: "ClusterRoleBinding"}, ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}}
	for _, u := range users {
		b.Subjects = append(b.Subjects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: "User", Name: u})
	}
	return b
}

// allowedUsers returns those let in by these bindings to lets("see").
func allowedUsers(users ...string) access.Allowed {
	return access.Derive([]rbacv1.ClusterRole{*lets("see")},
		[]rbacv1.ClusterRoleBinding{*bound("see", "see", users...)}).ForCluster("eu", nil)
}

// clientOf returns a client of the member for the hub of that identity.
func clientOf(t *testing.T, m *membertest.Server, hub string) dynamic.Interface {
	t.Helper()
	c, err := member.Guest(&rest.Config{Host: m.URL, BearerToken: membertest.Token}, time.Minute, "eu",
		func(context.Context) (string, error) { return hub, nil })
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// stamped marks the member as managed by the hub.
func stamped(m *membertest.Server, hub string) {
	lease := &coordinationv1.Lease{TypeMeta: metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"}}
	tenure.Stamp{Hub: hub, Address: "https://" + hub, Run: "1", Since: time.Unix(0, 0),
		Renewed: time.Unix(0, 0)}.Write(lease)
	m.Put(lease)
}

func users(m *membertest.Server) string {
	role := &rbacv1.ClusterRole{}
	u := m.Object(roles, "", access.Impersonator)
	if u == nil || runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, role) != nil {
		return "no role"
	}
	var names []string
	for _, r := range role.Rules {
		names = append(names, r.ResourceNames...)
	}
	return strings.Join(names, " ")
}

func TestRoleIsWrittenOnlyToMembersWithTheHubsStamp(t *testing.T) {
	for story, c := range map[string]struct {
		kinds    []membertest.Kind
		stamp    string
		notOwner bool
		message  string // "" if it is written
	}{
		"its own member": {kinds: []membertest.Kind{membertest.Lease}, stamp: "a"},
		"another hub's member": {kinds: []membertest.Kind{membertest.Lease}, stamp: "b", notOwner: true,
			message: "the hub at https://b (b)"},
		"nobody's yet": {kinds: []membertest.Kind{membertest.Lease},
			message: "is not claimed by this hub yet"},
		"one from before hubs had a stamp there": {},
	} {
		t.Run(story, func(t *testing.T) {
			m := membertest.New(t, append(c.kinds, roles, bindings)...)
			if c.stamp != "" {
				stamped(m, c.stamp)
			}
			client := clientOf(t, m, "a")
			_, kept := acting.Keep(t.Context(), client, "a", allowedUsers("alice"), access.Identity{})
			_, boundTo := acting.Bind(t.Context(), client, "a", "karmada-cluster", "karmada-impersonator", func() error {
				return nil
			})
			for what, err := range map[string]error{"role": kept, "binding": boundTo} {
				if (err == nil) != (c.message == "") || errors.Is(err, member.ErrNotOwner) != c.notOwner || err != nil &&
					!strings.Contains(err.Error(), c.message) {
					t.Errorf("the %s: %v, want %q", what, err, c.message)
				}
			}
			if wrote := len(m.Writes()) > 0; wrote != (c.message == "") {
				t.Errorf("written: %v", m.Writes())
			}
		})
	}
}

func TestTakenOverMemberAllowsImpersonationByTheNewHub(t *testing.T) {
	m := membertest.New(t, membertest.Lease, roles, bindings)
	for _, hub := range []string{"a", "b", "b"} {
		stamped(m, hub)
		if _, err := acting.Keep(t.Context(), clientOf(t, m, hub), hub, allowedUsers("of-"+hub),
			access.Identity{}); err != nil {
			t.Fatal(err)
		}
		role := m.Object(roles, "", access.Impersonator)
		if users(m) != "of-"+hub || role.GetAnnotations()["argosy.io/hub"] != hub {
			t.Errorf("under %s the role is of %s and has %v", hub, users(m), role.GetAnnotations())
		}
	}
	if got, want := m.Writes(), []string{"create clusterroles karmada-impersonator",
		"update clusterroles karmada-impersonator"}; !slices.Equal(got, want) {
		t.Errorf("written: %v, want %v", got, want)
	}
	// The hub that lost it changes nothing, whoever it lets in.
	if _, err := acting.Keep(t.Context(), clientOf(t, m, "a"), "a", allowedUsers("eve"),
		access.Identity{}); !errors.Is(err,
		member.ErrNotOwner) || users(m) != "of-b" {
		t.Errorf("the hub that lost the member: %v; the role is of %s", err, users(m))
	}
}

func TestChangeInMemberStaysAndIsReported(t *testing.T) {
	for story, change := range map[string]func(m *membertest.Server, role, binding *unstructured.Unstructured){
		"the role": func(m *membertest.Server, role, _ *unstructured.Unstructured) {
			role.Object["rules"] = []any{map[string]any{"verbs": []any{"impersonate"}, "apiGroups": []any{""},
				"resources": []any{"users"}}}
			m.Put(role)
		},
		"what the role is put together from": func(m *membertest.Server, role, _ *unstructured.Unstructured) {
			role.Object["aggregationRule"] = map[string]any{"clusterRoleSelectors": []any{map[string]any{
				"matchLabels": map[string]any{"a": "b"}}}}
			m.Put(role)
		},
		"the binding": func(m *membertest.Server, _, binding *unstructured.Unstructured) {
			binding.Object["subjects"] = []any{map[string]any{"kind": "User", "apiGroup": "rbac.authorization.k8s.io",
				"name": "eve"}}
			m.Put(binding)
		},
	} {
		t.Run(story, func(t *testing.T) {
			m := membertest.New(t, roles, bindings)
			keep := func(who ...string) error {
				_, kept := acting.Keep(t.Context(), clientOf(t, m, "a"), "a", allowedUsers(who...), access.Identity{})
				_, failed := acting.Bind(t.Context(), clientOf(t, m, "a"), "a", "karmada-cluster", "karmada-impersonator",
					func() error {
						return nil
					})
				return errors.Join(kept, failed)
			}
			if err := keep("alice"); err != nil {
				t.Fatal(err)
			}
			change(m, m.Object(roles, "", access.Impersonator), m.Object(bindings, "", access.Impersonator))
			was := fmt.Sprint(m.Object(roles, "", access.Impersonator), m.Object(bindings, "", access.Impersonator))
			err := keep("alice")
			if !errors.Is(err, acting.ErrTheirs) ||
				!strings.Contains(err.Error(), "karmada-impersonator: a client in the member created or changed it") {
				t.Errorf("it is told as %v", err)
			}
			if is := fmt.Sprint(m.Object(roles, "", access.Impersonator),
				m.Object(bindings, "", access.Impersonator)); is != was {
				t.Errorf("there was %s, and is %s", was, is)
			}
		})
	}
}

func TestLeavingHubRemovesOnlyItsOwnRight(t *testing.T) {
	for story, c := range map[string]struct {
		last   string // which hub wrote last
		change func(m *membertest.Server)
		want   string
	}{
		"its own":       {last: "a", want: ""},
		"another hub's": {last: "b", want: "both"},
		"one changed there": {last: "a", want: "role", change: func(m *membertest.Server) {
			role := m.Object(roles, "", access.Impersonator)
			role.Object["rules"] = []any{}
			m.Put(role)
		}},
		"made there": {want: "role", change: func(m *membertest.Server) { m.Put(lets(access.Impersonator)) }},
		"none":       {want: ""},
	} {
		t.Run(story, func(t *testing.T) {
			m := membertest.New(t, roles, bindings)
			if c.last != "" {
				_, kept := acting.Keep(t.Context(), clientOf(t, m, c.last), c.last, allowedUsers("alice"), access.Identity{})
				_, given := acting.Bind(t.Context(), clientOf(t, m, c.last), c.last, "karmada-cluster", "karmada-impersonator",
					func() error { return nil })
				if kept != nil || given != nil {
					t.Fatal(kept, given)
				}
			}
			if c.change != nil {
				c.change(m)
			}
			if err := acting.Leave(t.Context(), clientOf(t, m, "a"), "a"); err != nil {
				t.Fatal(err)
			}
			role, binding := m.Object(roles, "", access.Impersonator) != nil, m.Object(bindings, "", access.Impersonator) != nil
			if role != (c.want == "role" || c.want == "both") || binding != (c.want == "both") {
				t.Errorf("role %t, binding %t; want %q", role, binding, c.want)
			}
		})
	}
}

// refusing makes the member refuse roles with names that the hub may not act as, as Kubernetes does.
func refusing(m *membertest.Server, names ...string) {
	m.Behave(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPut && r.Method != http.MethodPost {
			return false
		}
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		role := &rbacv1.ClusterRole{}
		_ = json.Unmarshal(body, role)
		for _, rule := range role.Rules {
			for _, name := range rule.ResourceNames {
				if slices.Contains(names, name) {
					w.Header().Set("Content-Type", "application/json")
					w.WriteHeader(http.StatusForbidden)
					status := apierrors.NewForbidden(rbacv1.Resource("clusterroles"), role.Name,
						fmt.Errorf("user %q %s: %s", "hub", access.NotHeld, name)).Status()
					status.Kind, status.APIVersion = "Status", "v1"
					_ = json.NewEncoder(w).Encode(status)
					return true
				}
			}
		}
		return false
	})
}

// A hub with the role minimal takes rights back, whatever else it may not give.
func TestRightsEndThoughTheHubLacksOthers(t *testing.T) {
	for story, c := range map[string]struct {
		had, want, lacks []string
		system, left     string
	}{
		"a new user":      {had: []string{"ann", "bob"}, want: []string{"bob", "eve"}, lacks: []string{"eve"}, left: "bob"},
		"only a new user": {had: []string{"ann"}, want: []string{"ann", "eve"}, lacks: []string{"eve"}, left: "ann"},
		"a name of Kubernetes": {had: []string{"ann", "bob", "system:x"}, want: []string{"bob", "system:x"},
			lacks: []string{"system:x"}, system: "system:x", left: "bob"},
		"one who stays": {had: []string{"ann", "bob"}, want: []string{"bob"}, lacks: []string{"bob"}, left: "ann bob"},
		"a name of Kubernetes stays, ended none": {had: []string{"bob", "system:x"}, want: []string{"bob", "eve", "system:x"},
			lacks: []string{"eve", "system:x"}, system: "system:x", left: "bob system:x"},
		"one who stays, ended none": {had: []string{"bob"}, want: []string{"bob", "eve"}, lacks: []string{"bob", "eve"},
			left: "bob"},
	} {
		t.Run(story, func(t *testing.T) {
			m := membertest.New(t, roles)
			allowed := func(users []string) access.Allowed {
				return access.Derive([]rbacv1.ClusterRole{*lets("see")}, []rbacv1.ClusterRoleBinding{*bound("see", "see",
					users...)}).ForCluster("eu", map[string]string{"argosy.io/impersonate-system-names": c.system})
			}
			if _, err := acting.Keep(t.Context(), clientOf(t, m, "a"), "a", allowed(c.had), access.Identity{}); err != nil {
				t.Fatal(err)
			}
			refusing(m, c.lacks...)
			for range 2 {
				_, err := acting.Keep(t.Context(), clientOf(t, m, "a"), "a", allowed(c.want), access.Identity{})
				if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), access.NotHeld+": "+c.lacks[0]) ||
					users(m) != c.left {
					t.Errorf("%v; the role is of %q, want %q", err, users(m), c.left)
				}
			}
		})
	}
}

func TestBindingNeedsAVerifiedAccount(t *testing.T) {
	m := membertest.New(t, roles, bindings)
	no := errors.New("not the hub's")
	if _, err := acting.Bind(t.Context(), clientOf(t, m, "a"), "a", "shop", "mine",
		func() error { return no }); !errors.Is(err,
		no) || len(m.Writes()) > 0 {
		t.Errorf("%v, written %v", err, m.Writes())
	}
}

// A hostile member answers without end.
func TestAMembersAnswerIsReadNoFurtherThanAnObjectGoes(t *testing.T) {
	m := membertest.New(t, roles)
	var sent atomic.Int64
	m.Behave(func(w http.ResponseWriter, r *http.Request) bool {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"`))
		page := []byte(strings.Repeat("x", 1<<20))
		for r.Context().Err() == nil && sent.Load() < 200<<20 {
			n, err := w.Write(page)
			if sent.Add(int64(n)); err != nil {
				break
			}
		}
		return true
	})
	if _, err := acting.Keep(t.Context(), clientOf(t, m, "a"), "a", allowedUsers("alice"),
		access.Identity{}); err == nil ||
		!strings.Contains(err.Error(), "too large") {
		t.Errorf("it ends with %v", err)
	}
	if n := sent.Load(); n > 64<<20 { // sockets hold some
		t.Errorf("%d bytes were taken", n)
	}
}

// Replicas of the hub learn of different callers at the same time.
func TestConcurrentUsersAreAllInRole(t *testing.T) {
	m := membertest.New(t, roles)
	allowed := access.Derive([]rbacv1.ClusterRole{*lets("see")},
		[]rbacv1.ClusterRoleBinding{{RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "see"},
			Subjects: []rbacv1.Subject{{Kind: "Group", Name: "devs"}}}}).ForCluster("eu", nil)
	var all sync.WaitGroup
	for _, name := range []string{"ann", "bob"} {
		all.Go(func() {
			id, err := allowed.Judge(name, []string{"devs"})
			if err == nil {
				_, err = acting.Keep(t.Context(), clientOf(t, m, "a"), "a", allowed, id)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got := users(m); got != "ann bob devs" {
		t.Errorf("the role is of %s", got)
	}
}

func TestOnlyChangedSubjectsAreNews(t *testing.T) {
	hub := membertest.New(t, roles, bindings)
	hub.Put(lets("see"))
	hub.Put(bound("ann", "see", "ann"))
	hub.Put(bound("eve", "view", "eve"))
	done := make(chan struct{})
	t.Cleanup(func() { close(done) })
	source := acting.Follow(&rest.Config{Host: hub.URL, BearerToken: membertest.Token,
		ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON, AcceptContentTypes: runtime.ContentTypeJSON}},
		done)
	ask := func() (string, <-chan struct{}) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		grants, changed, err := source(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(grants.ForCluster("eu", nil).Users, " "), changed
	}
	got, changed := ask()
	if got != "ann" {
		t.Fatalf("let in are %s", got)
	}
	// Changes of other objects, and writes without a change, wake no waiter; then comes a relevant change.
	hub.Put(bound("eve", "view", "eve", "mallory"))
	again := bound("ann", "see", "ann")
	again.Labels = map[string]string{"a": "b"}
	hub.Put(again)
	hub.Put(bound("bob", "see", "bob"))
	select {
	case <-changed:
	case <-time.After(time.Minute):
		t.Fatal("no event was recorded of another who is let in")
	}
	if got, _ := ask(); got != "ann bob" {
		t.Errorf("somebody was told of nothing new: let in are %s", got)
	}
	wait := func(change func(), want string) {
		t.Helper()
		change()
		deadline := time.After(time.Minute)
		for {
			got, changed := ask()
			if got == want {
				return
			}
			select {
			case <-changed:
			case <-deadline:
				t.Fatalf("let in are %q, want %q", got, want)
			}
		}
	}
	wait(func() { hub.Remove(bindings, "", "ann") }, "bob")
	wait(func() { hub.Remove(roles, "", "see") }, "")
	wait(func() { hub.Put(lets("see")) }, "bob")
	wait(func() { hub.Put(lets("view")) }, "bob eve mallory")
}
