package server

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	"github.com/argosy-io/argosy/internal/core/cluster/pull"
)

// gate returns one whose hub has the objects. role is the ClusterRole of the agent of cluster eu, nil for none; cached
// is what the watch has.
func gate(t *testing.T, role, cached *rbacv1.ClusterRole, objects ...client.Object) *registered {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, clusterv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
	var roles []runtime.Object
	if role != nil {
		roles = append(roles, role)
	}
	g := &registered{hub: func() (client.Reader, error) { return reader, nil },
		roles: kubefake.NewClientset(roles...).RbacV1().ClusterRoles(), known: cache.NewStore(cache.MetaNamespaceKeyFunc),
		follow: func() {}}
	if cached != nil {
		if err := g.known.Add(cached); err != nil {
			t.Fatal(err)
		}
	}
	return g
}

// euRole returns the ClusterRole of the agent of cluster eu with one key; owned by a Cluster or not.
func euRole(key string, owned bool) *rbacv1.ClusterRole {
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: pull.RoleOf("eu")}}
	pull.RecordKeys(role, []string{pull.KeyHash([]byte(key))})
	if owned {
		role.OwnerReferences = []metav1.OwnerReference{{Kind: "Cluster", Name: "eu"}}
	}
	return role
}

// agentRequest returns a request of a user with a certificate of the agent of cluster eu.
func agentRequest(as, key string, info request.RequestInfo) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
	r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{{RawSubjectPublicKeyInfo: []byte(key),
		Subject: pkix.Name{CommonName: pull.User("eu"), Organization: []string{pull.Group}}}}}
	return r.WithContext(request.WithRequestInfo(request.WithUser(r.Context(), &user.DefaultInfo{Name: as}), &info))
}

func TestAgentsActOnlyWithTheCertificatesOfTheirRegistration(t *testing.T) {
	restored := request.RequestInfo{IsResourceRequest: true, Resource: "configmaps"}
	works := request.RequestInfo{IsResourceRequest: true, APIGroup: "work.karmada.io", Resource: "works", Verb: "list"}
	secret := request.RequestInfo{IsResourceRequest: true, Resource: "secrets", Verb: "get", Namespace: "karmada-cluster",
		Name: "eu"}
	cluster := func(mode clusterv1alpha1.ClusterSyncMode) client.Object {
		return &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "eu"},
			Spec: clusterv1alpha1.ClusterSpec{SyncMode: mode}}
	}
	joined := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-cluster", Name: "eu"}}
	own := joined.DeepCopy()
	pull.Report("eu", own)
	pulls, push := []client.Object{cluster("Pull")}, []client.Object{cluster("Push")}
	me := pull.User("eu")
	for story, tc := range map[string]struct {
		as, key      string
		role, cached *rbacv1.ClusterRole
		info         request.RequestInfo
		objects      []client.Object
		want         string // in the refusal; empty if it is served
	}{
		"the current certificate":           {me, "new", euRole("new", true), euRole("new", true), works, nil, ""},
		"the watch is behind":               {me, "new", euRole("new", true), euRole("old", true), works, nil, ""},
		"the watch has nothing yet":         {me, "new", euRole("new", true), nil, works, nil, ""},
		"a former certificate":              {me, "old", euRole("new", true), nil, works, nil, "not of the current"},
		"the cluster is not registered":     {me, "old", nil, nil, works, nil, "is not registered"},
		"a restore can be asked about":      {me, "old", nil, nil, restored, nil, ""},
		"another user, with such a name":    {"eve", "old", nil, nil, works, nil, ""},
		"during a registration":             {me, "new", euRole("new", false), nil, works, nil, ""},
		"a registration beside a join":      {me, "new", euRole("new", false), nil, works, push, "not in the fleet in Pull mode"},
		"a registration beside its Cluster": {me, "new", euRole("new", false), nil, works, pulls, ""},
		"its Secret":                        {me, "new", euRole("new", false), nil, secret, []client.Object{own}, ""},
		// A join could create it before the API server reads it.
		"no Secret": {me, "new", euRole("new", false), nil, secret, nil, `secrets \"eu\" not found`},
		"the Secret of a join": {me, "new", euRole("new", false), nil, secret, []client.Object{joined},
			"is not of the agent"},
		"the Secret of a join, with a Cluster": {me, "new", euRole("new", true), nil, secret,
			[]client.Object{joined, cluster("Pull")}, "is not of the agent"},
	} {
		served := false
		w := httptest.NewRecorder()
		gate(t, tc.role, tc.cached, tc.objects...).handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			served = true
		})).ServeHTTP(w, agentRequest(tc.as, tc.key, tc.info))
		code := http.StatusForbidden
		if strings.Contains(tc.want, "not found") {
			code = http.StatusNotFound
		}
		if served != (tc.want == "") || !served && w.Code != code ||
			!strings.Contains(w.Body.String(), tc.want) {
			t.Errorf("%s: served: %t, %d %s, want %q", story, served, w.Code, w.Body, tc.want)
		}
	}
}

// The API server copies it into certificate requests, where it shows which key of the agent requests.
func TestRequestsOfAgentsHaveTheKeyOfTheirCertificate(t *testing.T) {
	csr := request.RequestInfo{IsResourceRequest: true, APIGroup: "certificates.k8s.io",
		Resource: "certificatesigningrequests", Verb: "create"}
	for as, want := range map[string][]string{
		pull.User("eu"): {pull.KeyHash([]byte("new"))}, "eve": {"claimed"}} {
		r := agentRequest(as, "new", csr)
		sent := &user.DefaultInfo{Name: as, UID: "u", Groups: []string{"g"},
			Extra: map[string][]string{wellknown.AgentKeyExtra: {"claimed"}, "other": {"kept"}}}
		w := httptest.NewRecorder()
		gate(t, euRole("new", true), nil).handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			got, _ := request.UserFrom(r.Context())
			if !slices.Equal(got.GetExtra()[wellknown.AgentKeyExtra], want) || got.GetExtra()["other"][0] != "kept" ||
				got.GetName() != as || got.GetUID() != "u" || !slices.Equal(got.GetGroups(), []string{"g"}) {
				t.Errorf("%s became %+v", as, got)
			}
			w.WriteHeader(http.StatusAccepted)
		})).ServeHTTP(w, r.WithContext(request.WithUser(r.Context(), sent)))
		if w.Code != http.StatusAccepted || sent.Extra[wellknown.AgentKeyExtra][0] != "claimed" {
			t.Errorf("%s: %d %s, the user before became %v", as, w.Code, w.Body, sent.Extra)
		}
	}
}

// A watch that began before would show what the hub sends to the next cluster with the name.
func TestWatchesOfFormerCertificatesEnd(t *testing.T) {
	works := request.RequestInfo{IsResourceRequest: true, APIGroup: "work.karmada.io", Resource: "works", Verb: "watch"}
	for story, change := range map[string]func(*registered){
		"another registration": func(g *registered) { g.changed(pull.RoleOf("eu"), euRole("new", false)) },
		"its Cluster is gone":  func(g *registered) { g.changed(pull.RoleOf("eu"), nil) },
	} {
		g := gate(t, euRole("old", true), nil)
		began, ended := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(ended)
			g.handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				close(began)
				<-r.Context().Done()
			})).ServeHTTP(httptest.NewRecorder(), agentRequest(pull.User("eu"), "old", works))
		}()
		<-began
		g.changed(pull.RoleOf("eu"), euRole("old", true)) // a renewal ends nothing, nor does the end of another
		g.changed(pull.RoleOf("us"), nil)
		select {
		case <-ended:
			t.Errorf("%s: the watch ended before", story)
		default:
		}
		change(g)
		<-ended
		g.open.Range(func(any, any) bool {
			t.Errorf("%s: a request is still in progress", story)
			return true
		})
	}
}
