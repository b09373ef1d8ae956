package cluster

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/cluster/access"
	"github.com/argosy-io/argosy/internal/member/acting"
	"github.com/argosy-io/argosy/test/kit/controllertest"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

var (
	roleKind = membertest.Kind{GroupVersionKind: rbacv1.SchemeGroupVersion.WithKind("ClusterRole"),
		Plural: "clusterroles"}
	bindingKind = membertest.Kind{GroupVersionKind: rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"),
		Plural: "clusterrolebindings"}
	actingToken = "e30." + base64.RawURLEncoding.EncodeToString([]byte(`{"sub":"system:serviceaccount:ours:acting"}`)) +
		".x"
)

// letting returns roles that admit the users to the proxy of eu.
func letting(users ...string) acting.Source {
	b := rbacv1.ClusterRoleBinding{RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "see"}}
	for _, u := range users {
		b.Subjects = append(b.Subjects, rbacv1.Subject{Kind: "User", Name: u})
	}
	return acting.Fixed(access.Derive([]rbacv1.ClusterRole{{ObjectMeta: metav1.ObjectMeta{Name: "see"},
		Rules: []rbacv1.PolicyRule{
			{Verbs: []string{"get"}, APIGroups: []string{"cluster.karmada.io"}, Resources: []string{"clusters/proxy"},
				ResourceNames: []string{"eu"}}}}}, []rbacv1.ClusterRoleBinding{b}))
}

// acted returns a fleet with the cluster eu, whose impersonator has a token.
func acted(t *testing.T, m *membertest.Server, token string) *fleet {
	cluster := m.Cluster("eu")
	cluster.Spec.ImpersonatorSecretRef = &clusterv1alpha1.LocalSecretReference{Namespace: "karmada-cluster",
		Name: "eu-impersonator"}
	return newFleet(t, cluster, m.Secret("eu"), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-cluster", Name: "eu-impersonator"},
		Data:       map[string][]byte{"token": []byte(token)}})
}

// reviewing makes a member answer TokenReviews; good is whether tokens are valid.
func reviewing(m *membertest.Server, good bool) {
	m.Behave(func(w http.ResponseWriter, r *http.Request) bool { return review(w, r, good) })
}

func review(w http.ResponseWriter, r *http.Request, good bool) bool {
	if r.URL.Path != "/apis/authentication.k8s.io/v1/tokenreviews" {
		return false
	}
	review := authenticationv1.TokenReview{TypeMeta: metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1",
		Kind: "TokenReview"}}
	review.Status.Authenticated, review.Status.User.Username = good, "system:serviceaccount:ours:acting"
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(review)
	return true
}

// eventsOf returns the events about the impersonator.
func eventsOf(events *record.FakeRecorder) (out []string) {
	for len(events.Events) > 0 {
		if e := <-events.Events; strings.Contains(e, "SyncImpersonationConfig") {
			out = append(out, e)
		}
	}
	return out
}

func TestImpersonationIsGrantedForProxyUsers(t *testing.T) {
	anybody := []rbacv1.PolicyRule{{Verbs: []string{"impersonate"}, APIGroups: []string{""},
		Resources: []string{"users", "groups", "serviceaccounts"}}}
	for name, c := range map[string]struct {
		token  string
		before *rbacv1.ClusterRole
		want   string // who is in the role; "" for no role
		event  bool
	}{
		"nothing is there": {token: actingToken, want: "[alice]"},
		"one of a hub of before is there": {token: actingToken, want: "[alice]",
			before: &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: access.Impersonator,
				Labels: map[string]string{"karmada.io/system": "true"}}, Rules: anybody}},
		"one of somebody is there": {token: actingToken, want: "[bob]", event: true,
			before: &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: access.Impersonator},
				Rules: []rbacv1.PolicyRule{{Verbs: []string{"impersonate"}, APIGroups: []string{""}, Resources: []string{"users"},
					ResourceNames: []string{"bob"}}}}},
		"a token of somebody else's": {token: "opaque"},
	} {
		t.Run(name, func(t *testing.T) {
			controllertest.Run(t, func(t *testing.T) {
				m := membertest.NewInMemory(t, roleKind, bindingKind)
				if c.before != nil {
					c.before.TypeMeta = metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole"}
					m.Put(c.before)
				}
				reviewing(m, true)
				f := acted(t, m, c.token)
				events := record.NewFakeRecorder(10)
				f.Grants, f.auth = letting("alice", "system:kube-scheduler"), commit.Events{EventRecorder: events}
				f.look("eu")
				role, binding := m.Object(roleKind, "", access.Impersonator), m.Object(bindingKind, "", access.Impersonator)
				if (role != nil) != (c.want != "") || (binding != nil) != (c.want != "") {
					t.Fatalf("there are %v and %v", role, binding)
				}
				if c.want == "" {
					return
				}
				subjects, _, _ := unstructured.NestedSlice(binding.Object, "subjects")
				if s := subjects[0].(map[string]any); s["namespace"] != "ours" || s["name"] != "acting" {
					t.Errorf("the binding is of %v", s)
				}
				if got := inRole(role); got != c.want {
					t.Errorf("the hub may act as %s, want %s", got, c.want)
				}
				const succeeded = "Normal SyncImpersonationConfigSucceed Sync impersonation config succeed."
				recorded := eventsOf(events)
				if len(recorded) != 1 || (recorded[0] == succeeded) == c.event {
					t.Errorf("events: %q", recorded)
				}
				for _, e := range recorded {
					if e == succeeded {
						continue
					}
					for _, part := range []string{"Warning SyncImpersonationConfigFailed", `cluster "eu"`,
						"ClusterRole karmada-impersonator", "delete it, and the hub recreates it"} {
						if !strings.Contains(e, part) {
							t.Errorf("the event %s does not contain %q", e, part)
						}
					}
				}
				asked, wrote := len(m.Requests("GET /apis/rbac")), len(m.Writes())
				f.look("eu")
				if again := len(m.Requests("GET /apis/rbac")); again != asked || len(m.Writes()) != wrote {
					t.Errorf("the member was asked again: %v", m.Requests("GET /apis/rbac"))
				}
				// Others are let in.
				f.Grants = letting("carl")
				f.look("eu")
				want := "[carl]"
				if c.event {
					want = c.want
				}
				if got := inRole(m.Object(roleKind, "", access.Impersonator)); got != want {
					t.Errorf("then the hub may act as %s, want %s", got, want)
				}
				// A user of the member deletes both. They are restored at the next check.
				m.Remove(roleKind, "", access.Impersonator)
				m.Remove(bindingKind, "", access.Impersonator)
				f.look("eu")
				if role := m.Object(roleKind, "", access.Impersonator); role != nil {
					t.Errorf("the member was asked at once")
				}
				f.clock.Step(grantCheck)
				f.look("eu")
				if got := inRole(m.Object(roleKind, "", access.Impersonator)); got != "[carl]" ||
					m.Object(bindingKind, "", access.Impersonator) == nil {
					t.Errorf("after some minutes the hub may act as %s", got)
				}
				// Only a write records a success; no change and a repeated failure record nothing.
				wrotes := []string{succeeded, succeeded}
				if c.event {
					wrotes = wrotes[1:]
				}
				if recorded := eventsOf(events); !slices.Equal(recorded, wrotes) {
					t.Errorf("then events: %q", recorded)
				}
			})
		})
	}
}

// A user who may set impersonatorSecretRef could use a forged token that names another account of the member.
func TestForgedTokenGetsNoImpersonation(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		m := membertest.NewInMemory(t, roleKind, bindingKind)
		reviewing(m, false)
		f := acted(t, m, actingToken)
		events := record.NewFakeRecorder(10)
		f.Grants, f.auth = letting("alice"), commit.Events{EventRecorder: events}
		f.look("eu")
		f.look("eu")
		if binding := m.Object(bindingKind, "", access.Impersonator); binding != nil {
			t.Errorf("it is given by %v", binding)
		}
		if warned := eventsOf(events); len(warned) != 1 ||
			!strings.Contains(warned[0], "the cluster does not authenticate it as that") {
			t.Errorf("said: %q", warned)
		}
		reviewing(m, true)
		f.look("eu")
		if binding := m.Object(bindingKind, "", access.Impersonator); binding == nil {
			t.Error("it is not given to the account of a good token")
		}
	})
}

// After a join with another account only the new account has the permissions.
func TestImpersonationFollowsTheAccountOfTheHub(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		m := membertest.NewInMemory(t, roleKind, bindingKind)
		reviewing(m, true)
		f := acted(t, m, actingToken)
		f.Grants = letting("alice")
		f.look("eu")
		secret := &corev1.Secret{}
		if err := f.hub.Get(t.Context(), client.ObjectKey{Namespace: "karmada-cluster", Name: "eu-impersonator"},
			secret); err != nil {
			t.Fatal(err)
		}
		rotated := strings.Replace(actingToken, ".x", ".y", 1)
		secret.Data["token"] = []byte(rotated)
		if err := f.hub.Update(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
		wrote := len(m.Writes())
		f.clock.Step(grantCheck)
		f.look("eu")
		if got := m.Writes()[wrote:]; len(got) != 0 {
			t.Errorf("another token of the same account makes writes: %v", got)
		}
		secret.Data["token"] = []byte("e30." +
			base64.RawURLEncoding.EncodeToString([]byte(`{"sub":"system:serviceaccount:ours:other"}`)) + ".x")
		if err := f.hub.Update(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
		m.Behave(func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path != "/apis/authentication.k8s.io/v1/tokenreviews" {
				return false
			}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusCreated)
			fmt.Fprint(w, `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview","status":{"authenticated":true,"user":{"username":"system:serviceaccount:ours:other"}}}`)
			return true
		})
		f.clock.Step(grantCheck)
		f.look("eu")
		subjects, _, _ := unstructured.NestedSlice(m.Object(bindingKind, "", access.Impersonator).Object, "subjects")
		if len(subjects) != 1 || subjects[0].(map[string]any)["name"] != "other" {
			t.Errorf("the binding is of %v", subjects)
		}
	})
}

// inRole returns the users of a role.
func inRole(role *unstructured.Unstructured) string {
	if role == nil {
		return "no role"
	}
	rules, _, _ := unstructured.NestedSlice(role.Object, "rules")
	if len(rules) == 0 {
		return "no user"
	}
	return fmt.Sprint(rules[0].(map[string]any)["resourceNames"])
}

// A right that the hub lacks in a member keeps neither others from ending nor the binding from being restored.
func TestRefusedRightIsReportedAndOthersEnd(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		m := membertest.NewInMemory(t, roleKind, bindingKind)
		reviewing(m, true)
		f := acted(t, m, actingToken)
		events := record.NewFakeRecorder(10)
		f.Grants, f.auth = letting("alice", "bob"), commit.Events{EventRecorder: events}
		f.look("eu")
		m.Behave(func(w http.ResponseWriter, r *http.Request) bool {
			body, _ := io.ReadAll(r.Body)
			if r.Body = io.NopCloser(bytes.NewReader(body)); !bytes.Contains(body, []byte("carl")) {
				return review(w, r, true)
			}
			status := apierrors.NewForbidden(rbacv1.Resource("clusterroles"), access.Impersonator, errors.New(
				`user "system:serviceaccount:karmada-cluster:karmada-eu" (groups=["a"]) is attempting to grant RBAC `+
					"permissions not currently held: carl")).Status()
			status.Kind, status.APIVersion = "Status", "v1"
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusForbidden)
			_ = json.NewEncoder(w).Encode(status)
			return true
		})
		m.Remove(bindingKind, "", access.Impersonator)
		f.Grants = letting("bob", "carl")
		_ = eventsOf(events)
		f.look("eu")
		said := strings.Join(eventsOf(events), "\n")
		if got := inRole(m.Object(roleKind, "", access.Impersonator)); got != "[bob]" ||
			m.Object(bindingKind, "", access.Impersonator) == nil ||
			!strings.Contains(said, "the hub may not grant rights in cluster eu") || !strings.Contains(said, "held: carl") {
			t.Errorf("the hub may act as %s; events: %s", got, said)
		}
	})
}
