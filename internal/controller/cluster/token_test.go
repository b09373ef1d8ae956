package cluster

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/cluster/credential"
	"github.com/argosy-io/argosy/test/kit/controllertest"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

// issuer is a member that issues tokens bound to Secrets. They are valid while their Secrets exist.
type issuer struct {
	*httptest.Server
	now func() time.Time

	mu      sync.Mutex
	secrets map[string]corev1.Secret
	made    int
	// refuses has it refuse to issue, keeps to delete.
	refuses, keeps bool
}

func newIssuer(t *testing.T, now func() time.Time) *issuer {
	i := &issuer{now: now, secrets: map[string]corev1.Secret{}}
	i.Server = membertest.Serve(i)
	t.Cleanup(i.Close)
	return i
}

func (i *issuer) token(account, secret string, life time.Duration) string {
	claims := fmt.Sprintf(`{"sub":"system:serviceaccount:karmada-cluster:%s","iat":%d,"exp":%d,"kubernetes.io":{"secret":{"name":%q}}}`,
		account, i.now().Unix(), i.now().Add(life).Unix(), secret)
	return "h." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".s"
}

// endless returns a token without expiry, as other tools create it.
func (i *issuer) endless(account string) string {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.secrets[account] = corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-cluster", Name: account,
		Annotations: map[string]string{corev1.ServiceAccountNameKey: account}}, Type: corev1.SecretTypeServiceAccountToken}
	return "h." + base64.RawURLEncoding.EncodeToString([]byte(fmt.Sprintf(
		`{"sub":"system:serviceaccount:karmada-cluster:%[1]s","kubernetes.io/serviceaccount/secret.name":%[1]q}`, account))) +
		".s"
}

func (i *issuer) takes(token string) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	is, ok := credential.Read(token)
	_, stands := i.secrets[is.Secret]
	return ok && stands && (is.Endless() || i.now().Before(is.Expires))
}

func (i *issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !i.takes(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")) {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if r.URL.Path == "/apis/authentication.k8s.io/v1/tokenreviews" {
		var tr authenticationv1.TokenReview
		_ = json.NewDecoder(r.Body).Decode(&tr)
		is, _ := credential.Read(tr.Spec.Token)
		tr.Status.Authenticated = i.takes(tr.Spec.Token)
		tr.Status.User.Username = "system:serviceaccount:" + is.Namespace + ":" + is.Account
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(tr)
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	const secrets, accounts = "/api/v1/namespaces/karmada-cluster/secrets",
		"/api/v1/namespaces/karmada-cluster/serviceaccounts/"
	answer := func(obj any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(obj)
	}
	name, one := strings.CutPrefix(r.URL.Path, secrets+"/")
	switch {
	case r.URL.Path == "/readyz":
		_, _ = w.Write([]byte("ok"))
	case r.Method == http.MethodPost && r.URL.Path == secrets:
		var s corev1.Secret
		_ = json.NewDecoder(r.Body).Decode(&s)
		i.made++
		s.Name, s.UID = fmt.Sprint(s.GenerateName, i.made), types.UID(fmt.Sprint(i.made))
		i.secrets[s.Name] = s
		answer(s)
	case r.Method == http.MethodPost && strings.HasPrefix(r.URL.Path, accounts) && !i.refuses:
		var tr authenticationv1.TokenRequest
		_ = json.NewDecoder(r.Body).Decode(&tr)
		account := strings.TrimSuffix(strings.TrimPrefix(r.URL.Path, accounts), "/token")
		tr.Status.Token = i.token(account, tr.Spec.BoundObjectRef.Name, time.Duration(*tr.Spec.ExpirationSeconds)*time.Second)
		answer(tr)
	case r.Method == http.MethodGet && r.URL.Path == secrets:
		list := corev1.SecretList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "SecretList"}}
		for _, s := range i.secrets {
			if of := s.Labels["argosy.io/token-of"]; of != "" &&
				strings.Contains(r.URL.Query().Get("labelSelector"), "argosy.io/token-of="+of) {
				list.Items = append(list.Items, s)
			}
		}
		answer(list)
	case r.Method == http.MethodGet && one:
		s, ok := i.secrets[name]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		answer(s)
	case r.Method == http.MethodDelete && one && !i.keeps:
		delete(i.secrets, name)
		answer(metav1.Status{Status: "Success"})
	default:
		w.WriteHeader(http.StatusInternalServerError)
	}
}

// tokens returns a collector with one member, whose tokens it rotates.
func tokens(t *testing.T, first func(i *issuer) string) (f *fleet, i *issuer, rotate func(), has func() string,
	events func() []string) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-cluster", Name: "m1"}}
	cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1", UID: "1"},
		Spec: clusterv1alpha1.ClusterSpec{
			SyncMode: clusterv1alpha1.Push, SecretRef: &clusterv1alpha1.LocalSecretReference{Namespace: "karmada-cluster",
				Name: "m1"}}}
	var at func() time.Time
	i = newIssuer(t, func() time.Time { return at() })
	cluster.Spec.APIEndpoint = i.URL
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at = func() time.Time { return now }
	secret.Data = map[string][]byte{"token": []byte(first(i))}
	f = newFleet(t, cluster, secret)
	at = f.clock.Now
	recorder := f.events.EventRecorder.(*record.FakeRecorder)
	rotate = func() {
		t.Helper()
		m, err := f.Members.Refresh(t.Context(), "m1")
		if err != nil {
			t.Fatal(err)
		}
		f.rotateTokens(t.Context(), m, cluster)
	}
	has = func() string {
		s := &corev1.Secret{}
		if err := f.hub.Get(t.Context(), types.NamespacedName{Namespace: "karmada-cluster", Name: "m1"}, s); err != nil {
			t.Fatal(err)
		}
		return string(s.Data["token"])
	}
	events = func() (all []string) {
		for len(recorder.Events) > 0 {
			all = append(all, <-recorder.Events)
		}
		return all
	}
	return f, i, rotate, has, events
}

func bound(i *issuer) string {
	i.secrets["first"] = corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-cluster", Name: "first",
		Labels: map[string]string{"argosy.io/token-of": "karmada-m1"}}}
	return i.token("karmada-m1", "first", credential.Life)
}

func TestTokenIsRotatedEarlyAndOldOneRevoked(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		f, i, rotate, has, events := tokens(t, bound)
		was := has()
		rotate()
		f.clock.Step(140 * 24 * time.Hour)
		rotate()
		if has() != was || len(events()) != 0 {
			t.Fatal("a young token was replaced")
		}
		f.clock.Step(10 * 24 * time.Hour) // 150 of 365 days
		rotate()
		is := has()
		if is == was || !i.takes(is) || i.takes(was) {
			t.Errorf("replaced %t; the member takes the new one %t, the old one %t", is != was, i.takes(is), i.takes(was))
		}
		if recorded := events(); len(recorded) != 1 || !strings.Contains(recorded[0], "MemberTokenRotated") ||
			strings.Contains(recorded[0], is) {
			t.Errorf("events are %q", recorded)
		}
		m, err := f.Members.Refresh(t.Context(), "m1")
		if err != nil {
			t.Fatal(err)
		}
		if got := m.Probe(t.Context()); got.Code != http.StatusOK {
			t.Errorf("with the new token the member answers %+v", got)
		}

		// A clock that runs wild by years does not have the hub rotate without end.
		for range 100 {
			f.clock.Step(time.Minute)
			rotate()
		}
		if has() != is || i.made != 1 {
			t.Errorf("%d tokens were made, want one", i.made)
		}
	})
}

func TestTokenWithoutExpiryIsReplacedAndRevoked(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		f, i, rotate, has, events := tokens(t, func(i *issuer) string { return i.endless("karmada-m1") })
		was := has()
		i.keeps = true
		rotate()
		if is, _ := credential.Read(has()); is.Endless() || !i.takes(was) {
			t.Fatalf("the hub has %+v; the old one was revoked: %t", is, !i.takes(was))
		}
		if recorded := events(); len(recorded) != 1 || !strings.Contains(recorded[0], "MemberTokenNotRotated") {
			t.Errorf("for the failed revocation the events are %q", recorded)
		}
		i.keeps = false
		f.clock.Step(time.Minute)
		rotate()
		if i.takes(was) || !i.takes(has()) {
			t.Errorf("later the member takes the old one: %t, the new one: %t", i.takes(was), i.takes(has()))
		}
	})
}

func TestFailedRotationIsReportedAndKeepsOldToken(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		f, i, rotate, has, events := tokens(t, func(i *issuer) string { return i.endless("karmada-m1") })
		was := has()
		i.refuses = true
		for range 30 {
			rotate()
		}
		if has() != was || !i.takes(was) || i.made != 1 {
			t.Errorf("the token was replaced: %t, is good: %t, after %d attempts, want one a minute", has() != was, i.takes(was),
				i.made)
		}
		if recorded := events(); len(recorded) != 1 || !strings.Contains(recorded[0], "argosy join m1 --cluster-kubeconfig") {
			t.Errorf("events are %q", recorded)
		}
		i.refuses = false
		f.clock.Step(time.Minute)
		rotate()
		if has() == was || i.takes(was) {
			t.Error("it was not replaced when the member issues tokens again")
		}
		if left := slices.Collect(func(yield func(string) bool) {
			for name := range i.secrets {
				if !yield(name) {
					return
				}
			}
		}); len(left) != 1 {
			t.Errorf("the member has the Secrets %v, want that of the token in use", left)
		}
	})
}

// A user who may write a Cluster may set impersonatorSecretRef to their own Secret. For a forged token the hub must not
// create a real token of that account.
func TestForgedTokenIsNotReplaced(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		f, i, _, _, events := tokens(t, bound)
		made := "h." + base64.RawURLEncoding.EncodeToString(
			[]byte(`{"sub":"system:serviceaccount:kube-system:clusterrole-aggregation-controller"}`)) + ".s"
		mine := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "mine"},
			Data: map[string][]byte{"token": []byte(made)}}
		if err := f.hub.Create(t.Context(), mine); err != nil {
			t.Fatal(err)
		}
		cluster := &clusterv1alpha1.Cluster{}
		if err := f.hub.Get(t.Context(), types.NamespacedName{Name: "m1"}, cluster); err != nil {
			t.Fatal(err)
		}
		cluster.Spec.ImpersonatorSecretRef = &clusterv1alpha1.LocalSecretReference{Namespace: "shop", Name: "mine"}
		m, err := f.Members.Refresh(t.Context(), "m1")
		if err != nil {
			t.Fatal(err)
		}
		f.rotateTokens(t.Context(), m, cluster)
		got := &corev1.Secret{}
		if err := f.hub.Get(t.Context(), types.NamespacedName{Namespace: "shop", Name: "mine"}, got); err != nil {
			t.Fatal(err)
		}
		if string(got.Data["token"]) != made || i.made != 0 {
			t.Errorf("the Secret has %q, and %d tokens were created", got.Data["token"], i.made)
		}
		if recorded := events(); len(recorded) != 1 || !strings.Contains(recorded[0], "does not authenticate it as that") {
			t.Errorf("events are %q", recorded)
		}
	})
}

// The hub was down for longer than the lifetime of its tokens.
func TestExpiredTokenIsExplainedInReady(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		f, _, _, _, _ := tokens(t, bound)
		f.clock.Step(2 * credential.Life)
		cluster, _ := f.look("m1")
		if got := meta.FindStatusCondition(cluster.Status.Conditions, clusterv1alpha1.ClusterConditionReady); got == nil ||
			got.Status != metav1.ConditionFalse || !strings.Contains(got.Message, "argosy join m1 --cluster-kubeconfig FILE") {
			t.Errorf("Ready is %+v", got)
		}
	})
}
