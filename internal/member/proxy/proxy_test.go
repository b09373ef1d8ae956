package proxy_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/cluster/access"
	"github.com/argosy-io/argosy/internal/member/acting"
	"github.com/argosy-io/argosy/internal/member/proxy"
	podstreams "github.com/argosy-io/argosy/internal/member/streams"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

// alice is who asks.
var alice = &user.DefaultInfo{Name: "alice", Groups: []string{"devs", "system:authenticated"}}

// identity is the hub's.
const identity = "this-hub"

// letIn are alice and her group, and others.
var letIn = access.Derive(
	[]rbacv1.ClusterRole{{ObjectMeta: metav1.ObjectMeta{Name: "see"},
		Rules: []rbacv1.PolicyRule{{Verbs: []string{"*"}, APIGroups: []string{"cluster.karmada.io"},
			Resources: []string{"clusters/proxy"}}}}},
	[]rbacv1.ClusterRoleBinding{{RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "see"},
		Subjects: []rbacv1.Subject{{Kind: "User", Name: "alice"}, {Kind: "Group", Name: "devs"},
			{Kind: "Group", Name: "system:serviceaccounts"}, {Kind: "ServiceAccount", Namespace: "ci", Name: "deployer"}}}})

// hub serves the proxy as a hub's API server does, to alice. What is not the proxy's is a teapot.
func hub(t *testing.T, objects ...client.Object) (*httptest.Server, client.Client) {
	t.Helper()
	server, store, _ := hubFor(t, objects...)
	return server, store
}

// hubFor is hub with who calls: alice until another is stored.
func hubFor(t testing.TB, objects ...client.Object) (*httptest.Server, client.Client, *atomic.Value) {
	t.Helper()
	return hubOf(t, 0, objects...)
}

// hubOf has so many requests under way at once; 0 is the default.
func hubOf(t testing.TB, requests int, objects ...client.Object) (*httptest.Server, client.Client, *atomic.Value) {
	t.Helper()
	as := &atomic.Value{}
	as.Store(alice)
	s := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	if err := clusterv1alpha1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	store := fake.NewClientBuilder().WithScheme(s).WithObjects(objects...).Build()
	teapot := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	handler := proxy.Handler(proxy.Options{Hub: func() (client.Reader, error) { return store, nil },
		Grants:   acting.Fixed(letIn),
		Identity: func(context.Context) (string, error) { return identity, nil }, Requests: requests}, teapot)
	infos := &request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"),
		GrouplessAPIPrefixes: sets.NewString("api")}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, err := infos.NewRequestInfo(r)
		if err != nil {
			t.Errorf("%s: %v", r.URL, err)
		}
		w.Header().Set("Audit-Id", "the hub's")
		caller, _ := as.Load().(user.Info)
		handler.ServeHTTP(w, r.WithContext(request.WithUser(request.WithRequestInfo(r.Context(), info), caller)))
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	return server, store, as
}

// joined returns the objects of the hub about a member.
func joined(m *membertest.Server, name string) []client.Object {
	c := m.Cluster(name)
	c.Spec.ImpersonatorSecretRef = &clusterv1alpha1.LocalSecretReference{Namespace: "karmada-cluster", Name: name +
		"-impersonator"}
	return []client.Object{c, m.Secret(name), impersonator(name, membertest.Token)}
}

func impersonator(name, token string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-cluster", Name: name + "-impersonator"},
		Data: map[string][]byte{"token": []byte(token)}}
}

// through returns a client configuration for a member through the hub.
func through(server *httptest.Server, cluster string) *rest.Config {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return &rest.Config{Host: server.URL + proxy.Path(cluster), TLSClientConfig: rest.TLSClientConfig{CAData: ca},
		BearerToken: "alice's own", QPS: -1,
		ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
}

// raw sends a request line as it is, which http.Client would tidy up.
func raw(t *testing.T, server *httptest.Server, text string) (*http.Response, string) {
	t.Helper()
	conn, err := tls.Dial("tcp", server.Listener.Addr().String(),
		&tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, strings.ReplaceAll(text, "\n", "\r\n")+"\r\nHost: hub\r\nConnection: close\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return resp, string(body)
}

// seen remembers the requests that reach a member.
type seen struct {
	mu  sync.Mutex
	all []*http.Request
}

func (s *seen) note(w http.ResponseWriter, r *http.Request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, r)
	return false
}

func (s *seen) last() *http.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.all) == 0 {
		return nil
	}
	return s.all[len(s.all)-1]
}

func TestAMemberIsReadWrittenAndWatchedThroughTheHub(t *testing.T) {
	m := membertest.New(t)
	server, _ := hub(t, joined(m, "eu")...)
	c, err := kubernetes.NewForConfig(through(server, "eu"))
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	maps := c.CoreV1().ConfigMaps("shop")
	none, err := maps.List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	watch, err := maps.Watch(ctx, metav1.ListOptions{ResourceVersion: none.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	made, err := maps.Create(ctx, &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	made.Data = map[string]string{"k": "v"}
	if _, err := maps.Update(ctx, made, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := maps.Patch(ctx, "a", "application/merge-patch+json", []byte(`{"data":{"k":"w"}}`),
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if got, err := maps.Get(ctx, "a", metav1.GetOptions{}); err != nil || got.Data["k"] != "w" {
		t.Fatalf("got %v, %v", got, err)
	}
	if err := maps.Delete(ctx, "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"ADDED", "MODIFIED", "MODIFIED", "DELETED"} {
		if e := <-watch.ResultChan(); string(e.Type) != want {
			t.Fatalf("event %s %v, want %s", e.Type, e.Object, want)
		}
	}
}

func TestOnlyHubSetsUserForMember(t *testing.T) {
	m, requests := membertest.New(t), &seen{}
	m.Behave(requests.note)
	server, _ := hub(t, joined(m, "eu")...)
	for name, header := range map[string]string{
		"nothing":                             "Accept: application/json",
		"a token":                             "Authorization: Bearer stolen",
		"another user":                        "Impersonate-User: system:admin\nImpersonate-Group: system:masters\nImpersonate-Uid: 0\nImpersonate-Extra-Scopes: all",
		"in small letters":                    "impersonate-user: system:admin\nimpersonate-group: system:masters",
		"a front proxy's word":                "X-Remote-User: admin\nX-Remote-Group: system:masters\nX-Remote-Extra-Scopes: all",
		"a session":                           "Cookie: session=admin",
		"ours marked as hop-by-hop":           "Connection: Impersonate-User, Impersonate-Group, Authorization",
		"a token that a websocket carries":    "Sec-WebSocket-Protocol: base64url.bearer.authorization.k8s.io.c3RvbGVu, v5.channel.k8s.io",
		"a group more, and hop-by-hop at all": "Connection: close, impersonate-group\nImpersonate-Group: system:masters",
	} {
		t.Run(name, func(t *testing.T) {
			resp, body := raw(t, server, "GET "+proxy.Path("eu")+"/version HTTP/1.1\n"+header)
			if resp.StatusCode != http.StatusOK {
				t.Fatalf("%s: %s", resp.Status, body)
			}
			if ids := resp.Header["Audit-Id"]; len(ids) != 1 || ids[0] != "the hub's" {
				t.Errorf("audit ids are %q", ids)
			}
			got := requests.last().Header
			if got.Get("Authorization") != "Bearer "+membertest.Token || got.Get("Impersonate-User") != "alice" ||
				!slices.Equal(got["Impersonate-Group"], []string{"devs"}) {
				t.Errorf("the member got %v", got)
			}
			for header, values := range got {
				lower := strings.ToLower(header)
				if lower == "cookie" || lower == "impersonate-uid" || strings.HasPrefix(lower, "impersonate-extra") ||
					strings.HasPrefix(lower, "x-remote") ||
					strings.Contains(strings.Join(values, ","), "stolen") || strings.Contains(strings.Join(values, ","), "base64url") {
					t.Errorf("the member got %s: %q", header, values)
				}
			}
		})
	}
}

func TestAPathLeadsNowhereButBelowTheMembersAPI(t *testing.T) {
	m, requests := membertest.New(t), &seen{}
	m.Behave(func(w http.ResponseWriter, r *http.Request) bool {
		requests.note(w, r)
		_, _ = io.WriteString(w, "the member")
		return true
	})
	objects := joined(m, "eu")
	// A server with the APIs of several clusters.
	objects[0].(*clusterv1alpha1.Cluster).Spec.APIEndpoint = m.URL + "/k8s/eu"
	server, _ := hub(t, objects...)
	base := proxy.Path("eu")
	for name, c := range map[string]struct {
		path string
		code int
		want string // what the member is asked for
	}{
		"plain":              {base + "/api/v1/pods?limit=1", 200, "/k8s/eu/api/v1/pods?limit=1"},
		"nothing":            {base, 200, "/k8s/eu"},
		"the root":           {base + "/", 200, "/k8s/eu/"},
		"a slash at the end": {base + "/healthz/", 200, "/k8s/eu/healthz/"},
		"an escaped slash stays so": {base + "/api/v1/namespaces/a/services/s/proxy/x%2Fy%20z", 200,
			"/k8s/eu/api/v1/namespaces/a/services/s/proxy/x%2Fy%20z"},
		"the option of Karmada": {base + "?path=/api/v1/pods&limit=1", 200, "/k8s/eu/api/v1/pods?limit=1"},
		"dots in a name": {base + "/apis/apps.kruise.io/v1..2/...", 200,
			"/k8s/eu/apis/apps.kruise.io/v1..2/..."},
		"up":                          {base + "/../../us/api", 400, ""},
		"up, escaped":                 {base + "/%2e%2e/us/api", 400, ""},
		"up, half escaped":            {base + "/.%2E/us/api", 400, ""},
		"up, with an escaped slash":   {base + "/..%2fus/api", 400, ""},
		"up, escaped twice":           {base + "/%252e%252e/us/api", 400, ""},
		"up, with a parameter":        {base + "/..;x=1/us/api", 400, ""},
		"up, with backslashes":        {base + "/..%5cus/api", 400, ""},
		"here":                        {base + "/./api", 400, ""},
		"up, by the option":           {base + "?path=../us/api", 400, ""},
		"up at the end":               {base + "/api/..", 400, ""},
		"the name escaped":            {strings.Replace(base, "/eu/", "/e%75/", 1) + "/api", 400, ""},
		"a slash in the name escaped": {strings.Replace(base, "/eu/", "/eu%2F", 1) + "/api", 400, ""},
		"in a namespace": {strings.Replace(base, "/clusters/", "/namespaces/mine/clusters/", 1) + "/api", 418,
			""},
		"another version":      {strings.Replace(base, "v1alpha1", "v1", 1) + "/api", 418, ""},
		"another subresource":  {strings.Replace(base, "/proxy", "/status", 1), 418, ""},
		"something like proxy": {base + "x/api", 418, ""},
		"all clusters":         {proxy.Path("*") + "/api", 400, ""},
		"no cluster's name":    {proxy.Path("") + "/api", 404, ""},
	} {
		t.Run(name, func(t *testing.T) {
			before := requests.last()
			resp, body := raw(t, server, "GET "+c.path+" HTTP/1.1")
			if resp.StatusCode != c.code {
				t.Fatalf("%s: %s, want %d", resp.Status, body, c.code)
			}
			if c.want == "" && requests.last() != before {
				t.Errorf("the member was asked for %s", requests.last().URL)
			}
			if c.want != "" && requests.last().RequestURI != c.want {
				t.Errorf("the member was asked for %s, want %s", requests.last().RequestURI, c.want)
			}
		})
	}
}

// deadEnd returns an address without a listener.
func deadEnd(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return "https://" + l.Addr().String()
}

func TestForwardErrorNamesCluster(t *testing.T) {
	type change func(c *clusterv1alpha1.Cluster, secret, acting *corev1.Secret)
	for name, c := range map[string]struct {
		change  change
		code    int
		message string
	}{
		"nobody listens": {func(c *clusterv1alpha1.Cluster, _, _ *corev1.Secret) { c.Spec.APIEndpoint = deadEnd(t) }, 503,
			`cluster "eu" is not reachable at 127.0.0.1:`},
		"pull mode": {func(c *clusterv1alpha1.Cluster, _, _ *corev1.Secret) {
			c.Spec.SyncMode, c.Spec.APIEndpoint = "Pull", ""
		}, 503, `cluster "eu" is in Pull mode, and its agent is not connected to this hub`},
		"pull mode with an endpoint": {func(c *clusterv1alpha1.Cluster, _, _ *corev1.Secret) {
			c.Spec.SyncMode, c.Spec.SecretRef = "Pull", nil
		}, 503, `cluster "eu" is in Pull mode with spec.apiEndpoint, but without the secrets`},
		"no credentials": {func(c *clusterv1alpha1.Cluster, _, _ *corev1.Secret) { c.Spec.SecretRef = nil }, 503,
			`cluster "eu" has no spec.secretRef`},
		"nobody to act as": {func(c *clusterv1alpha1.Cluster, _,
			_ *corev1.Secret) {
			c.Spec.ImpersonatorSecretRef = nil
		}, 503, `cluster "eu" has no spec.impersonatorSecretRef`},
		"a secret that is missing": {func(c *clusterv1alpha1.Cluster, _,
			_ *corev1.Secret) {
			c.Spec.SecretRef.Name = "gone"
		}, 503, `cluster "eu": read the secret of spec.secretRef: secrets "gone" not found`},
		"a token that is missing": {func(_ *clusterv1alpha1.Cluster, _, s *corev1.Secret) { s.Data = nil }, 503,
			`cluster "eu": secret karmada-cluster/eu-impersonator of spec.impersonatorSecretRef has no key token`},
		"a token that is too old": {func(_ *clusterv1alpha1.Cluster, _,
			s *corev1.Secret) {
			s.Data["token"] = []byte("old")
		}, 503, `cluster "eu" rejects the token of spec.impersonatorSecretRef`},
		"a secret that says little": {func(_ *clusterv1alpha1.Cluster, s, _ *corev1.Secret) { s.Data = nil }, 503,
			`cluster "eu": secret karmada-cluster/eu: missing key token`},
		"another name": {func(c *clusterv1alpha1.Cluster, _, _ *corev1.Secret) { c.Name = "us" }, 404,
			`there is no cluster "eu"`},
	} {
		t.Run(name, func(t *testing.T) {
			objects := joined(membertest.New(t), "eu")
			c.change(objects[0].(*clusterv1alpha1.Cluster), objects[1].(*corev1.Secret), objects[2].(*corev1.Secret))
			server, _ := hub(t, objects...)
			resp, body := raw(t, server, "GET "+proxy.Path("eu")+"/version HTTP/1.1")
			var status metav1.Status
			if err := json.Unmarshal([]byte(body), &status); err != nil {
				t.Fatalf("%s: %v", body, err)
			}
			if resp.StatusCode != c.code || int(status.Code) != c.code || status.Kind != "Status" ||
				!strings.Contains(status.Message, c.message) {
				t.Errorf("%s: %s, want %d: %s", resp.Status, body, c.code, c.message)
			}
			if silent := apierrors.HasStatusCause(&apierrors.StatusError{ErrStatus: status},
				clusterv1alpha1.ReasonClusterNotReachable); silent != (name == "nobody listens" || name == "pull mode") {
				t.Errorf("clients take it for a silent member: %v; %s", silent, body)
			}
		})
	}
}

func TestMemberIsReachedAtOnceAfterANewAddressOrSecret(t *testing.T) {
	before, after := membertest.New(t), membertest.New(t)
	server, store := hub(t, joined(before, "eu")...)
	ask := func() int {
		resp, _ := raw(t, server, "GET "+proxy.Path("eu")+"/version HTTP/1.1")
		return resp.StatusCode
	}
	if code := ask(); code != 200 {
		t.Fatalf("at first %d", code)
	}
	before.Down(true)
	if code := ask(); code != 503 {
		t.Fatalf("while it is down %d", code)
	}
	after.Take("fresh")
	c := &clusterv1alpha1.Cluster{}
	if err := store.Get(t.Context(), client.ObjectKey{Name: "eu"}, c); err != nil {
		t.Fatal(err)
	}
	c.Spec.APIEndpoint = after.URL
	if err := store.Update(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if err := store.Update(t.Context(), impersonator("eu", "fresh")); err != nil {
		t.Fatal(err)
	}
	if code := ask(); code != 200 {
		t.Fatalf("after it moved %d", code)
	}
}

// As with Karmada, the hub reaches a cluster in Pull mode at its endpoint, if it has one, with its secrets.
func TestPullClusterWithAnEndpointIsReachedThere(t *testing.T) {
	m, requests := membertest.New(t), &seen{}
	m.Behave(requests.note)
	objects := joined(m, "eu")
	objects[0].(*clusterv1alpha1.Cluster).Spec.SyncMode = clusterv1alpha1.Pull
	server, _ := hub(t, objects...)
	resp, body := raw(t, server, "GET "+proxy.Path("eu")+"/version HTTP/1.1")
	if resp.StatusCode != http.StatusOK || requests.last().Header.Get("Impersonate-User") != "alice" {
		t.Errorf("%s %s", resp.Status, body)
	}
}

func TestLogsAreFollowed(t *testing.T) {
	m, more := membertest.New(t), make(chan string)
	m.Behave((&membertest.Kubelet{Log: map[string]string{"shop/web-1": "one\n"}, Follow: more}).Serve)
	server, _ := hub(t, joined(m, "eu")...)
	c, err := kubernetes.NewForConfig(through(server, "eu"))
	if err != nil {
		t.Fatal(err)
	}
	stream, err := c.CoreV1().Pods("shop").GetLogs("web-1", &corev1.PodLogOptions{Follow: true}).Stream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	lines := bufio.NewScanner(stream)
	if !lines.Scan() || lines.Text() != "one" {
		t.Fatalf("read %q, %v", lines.Text(), lines.Err())
	}
	more <- "two\n" // it is read while the log goes on
	if !lines.Scan() || lines.Text() != "two" {
		t.Fatalf("read %q, %v", lines.Text(), lines.Err())
	}
	close(more)
	if lines.Scan() || lines.Err() != nil {
		t.Fatalf("read %q, %v", lines.Text(), lines.Err())
	}
}

// members answer over plain HTTP, over TLS that the hub verifies or not, and behind a proxy.
func TestACommandRunsInAPodOverEitherProtocolAndAnyWay(t *testing.T) {
	kubelet := &membertest.Kubelet{Exec: func(pod string, command []string, stdin io.Reader, stdout,
		stderr io.Writer) error {
		in, err := io.ReadAll(stdin)
		if err != nil {
			return err
		}
		fmt.Fprintf(stdout, "%s %q %s", pod, command, in)
		fmt.Fprint(stderr, "careful")
		return podstreams.ExitCode(3)
	}}
	for way, setUp := range map[string]func(t *testing.T, c *clusterv1alpha1.Cluster, s *corev1.Secret){
		"plainly": func(t *testing.T, c *clusterv1alpha1.Cluster, s *corev1.Secret) {},
		"over TLS": func(t *testing.T, c *clusterv1alpha1.Cluster, s *corev1.Secret) {
			c.Spec.APIEndpoint, s.Data["caBundle"] = overTLS(t, c.Spec.APIEndpoint)
		},
		"over TLS that is not verified": func(t *testing.T, c *clusterv1alpha1.Cluster, s *corev1.Secret) {
			c.Spec.APIEndpoint, _ = overTLS(t, c.Spec.APIEndpoint)
			c.Spec.InsecureSkipTLSVerification = true
		},
		"through a proxy that wants a header": func(t *testing.T, c *clusterv1alpha1.Cluster, s *corev1.Secret) {
			c.Spec.APIEndpoint, s.Data["caBundle"] = overTLS(t, c.Spec.APIEndpoint)
			c.Spec.ProxyURL = connectProxy(t, "X-Tenant", "ours")
			c.Spec.ProxyHeader = map[string]string{"X-Tenant": "ours"}
		},
	} {
		m := membertest.New(t)
		m.Behave(kubelet.Serve)
		objects := joined(m, "eu")
		setUp(t, objects[0].(*clusterv1alpha1.Cluster), objects[1].(*corev1.Secret))
		server, _ := hub(t, objects...)
		config := through(server, "eu")
		target, err := url.Parse(config.Host +
			"/api/v1/namespaces/shop/pods/web-1/exec?command=sh&command=-c&stdin=true&stdout=true&stderr=true")
		if err != nil {
			t.Fatal(err)
		}
		for protocol, make := range map[string]func() (remotecommand.Executor, error){
			"SPDY": func() (remotecommand.Executor, error) { return remotecommand.NewSPDYExecutor(config, "POST", target) },
			"websocket": func() (remotecommand.Executor, error) {
				return remotecommand.NewWebSocketExecutor(config, "GET", target.String())
			},
		} {
			t.Run(way+" by "+protocol, func(t *testing.T) {
				executor, err := make()
				if err != nil {
					t.Fatal(err)
				}
				var out, errOut bytes.Buffer
				err = executor.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdin: strings.NewReader("typed"),
					Stdout: &out, Stderr: &errOut})
				if err == nil || err.Error() != "command terminated with exit code 3" {
					t.Errorf("ended with %v", err)
				}
				if out.String() != `shop/web-1 ["sh" "-c"] typed` || errOut.String() != "careful" {
					t.Errorf("printed %q and %q", out.String(), errOut.String())
				}
			})
		}
	}
}

// overTLS serves what is at a URL over TLS, as HTTP/2 where that is asked for.
func overTLS(t *testing.T, at string) (endpoint string, ca []byte) {
	t.Helper()
	target, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// A copy that does not know what it copies: connections are joined as they are.
		if strings.HasPrefix(r.URL.Path, "/apis/") { // the hub's own look at its role
			http.NotFound(w, r)
			return
		}
		if r.ProtoMajor != 1 {
			t.Errorf("a connection to upgrade came as %s", r.Proto)
		}
		from, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		to, err := net.Dial("tcp", target.Host)
		if err != nil {
			t.Error(err)
			return
		}
		if err := r.Write(to); err != nil {
			t.Error(err)
		}
		join(from, buffered, to)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
}

func join(a net.Conn, fromA io.Reader, b net.Conn) {
	var once sync.Once
	end := func() { once.Do(func() { a.Close(); b.Close() }) }
	go func() { defer end(); _, _ = io.Copy(b, fromA) }()
	defer end()
	_, _ = io.Copy(a, b)
}

// connectProxy returns a proxy for CONNECT requests with a header. It fails the test if there is none.
func connectProxy(t *testing.T, header, want string) string {
	t.Helper()
	var opened atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect || r.Header.Get(header) != want {
			http.Error(w, "no", http.StatusForbidden)
			return
		}
		opened.Add(1)
		to, err := net.Dial("tcp", r.Host)
		if err != nil {
			t.Error(err)
			return
		}
		w.WriteHeader(http.StatusOK)
		from, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		join(from, buffered, to)
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() {
		if opened.Load() == 0 {
			t.Error("nothing went through the proxy")
		}
	})
	return server.URL
}

func TestAnEndedRequestEndsInTheMember(t *testing.T) {
	m, ended := membertest.New(t), make(chan struct{})
	m.Behave(func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/api/v1/pods" {
			return false
		}
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		close(ended)
		return true
	})
	server, _ := hub(t, joined(m, "eu")...)
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+proxy.Path("eu")+"/api/v1/pods?watch=1", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := server.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	_ = resp.Body.Close()
	<-ended
}
