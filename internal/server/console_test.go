package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/argosy-io/argosy/internal/console"
	"github.com/argosy-io/argosy/test/kit"
)

// browser is a client of the console, as a page in a browser is.
type browser struct {
	t       *testing.T
	hub     string
	client  *http.Client
	cookies []*http.Cookie
}

func newBrowser(t *testing.T, hub string) *browser {
	return &browser{t: t, hub: hub, client: &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}} // the test is about logins, not about trust
}

func (b *browser) send(method, path string, body any) (int, string) {
	b.t.Helper()
	var raw []byte
	if body != nil {
		raw, _ = json.Marshal(body)
	}
	r, err := http.NewRequestWithContext(b.t.Context(), method, b.hub+path, bytes.NewReader(raw))
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header.Set("X-Argosy-Console", "1")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, c := range b.cookies {
		r.AddCookie(c)
	}
	resp, err := b.client.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	if path == "/console/session" && resp.StatusCode == http.StatusOK {
		b.cookies = resp.Cookies()
	}
	return resp.StatusCode, string(answer)
}

// tokenOf returns a token of a new service account.
func tokenOf(t *testing.T, client kubernetes.Interface, namespace, name string) string {
	t.Helper()
	accounts := client.CoreV1().ServiceAccounts(namespace)
	_, err := accounts.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}},
		metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	token, err := accounts.CreateToken(t.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return token.Status.Token
}

func TestConsoleLogsInByOneTimeLinkAsTheUserOfTheKubeconfig(t *testing.T) {
	h := useSharedHub(t)
	raw, err := h.admin.RESTClient().Post().AbsPath(console.LinkPath).DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var link console.Link
	if err := json.Unmarshal(raw, &link); err != nil {
		t.Fatal(err)
	}
	at, err := url.Parse(console.LinkURL(h.URL(), link.Code))
	if err != nil || strings.Contains(at.RequestURI(), link.Code) {
		t.Errorf("the browser would send the code in the address (%v)", err)
	}
	b := newBrowser(t, h.URL())
	if code, answer := b.send("GET", "/console/api/me", nil); code != http.StatusUnauthorized {
		t.Errorf("a stranger got %d %s", code, answer)
	}
	if code, answer := b.send("POST", "/console/session", map[string]string{"code": link.Code}); code != http.StatusOK {
		t.Fatalf("the link gave %d %s", code, answer)
	}
	if code, answer := b.send("GET", "/console/api/me", nil); code != http.StatusOK ||
		!strings.Contains(answer, `"master":true`) {
		t.Errorf("me is %d %s", code, answer)
	}
	if code, _ := b.send("GET", "/console/k8s/api/v1/secrets", nil); code != http.StatusOK {
		t.Errorf("the administrator may not list secrets: %d", code)
	}
	if code, answer := b.send("POST", "/console/api/link", map[string]string{}); code != http.StatusForbidden {
		t.Errorf("a session made a link: %d %s", code, answer)
	}
	thief := newBrowser(t, h.URL())
	if code, _ := thief.send("POST", "/console/session", map[string]string{"code": link.Code}); code != 401 {
		t.Errorf("the used link gave %d", code)
	}
	stolen := newBrowser(t, h.URL())
	stolen.cookies = b.cookies
	b.send("DELETE", "/console/session", nil)
	if code, _ := stolen.send("GET", "/console/api/me", nil); code != http.StatusUnauthorized {
		t.Errorf("a stolen cookie gave %d after the logout", code)
	}

	// The link is made for the user who asks, not for one whom the user impersonates.
	as := rest.CopyConfig(h.adminConfig)
	as.Impersonate = rest.ImpersonationConfig{UserName: "jane"}
	impersonator := kubernetes.NewForConfigOrDie(as).RESTClient()
	if _, err := impersonator.Post().AbsPath(console.LinkPath).DoRaw(t.Context()); err == nil {
		t.Error("a link was made while impersonating")
	}
}

// Each request gets the same status from the console as from kubectl.
func TestConsoleGivesNoMoreRightsThanKubectl(t *testing.T) {
	h := useSharedHub(t)
	client := kubernetes.NewForConfigOrDie(h.Config())
	const ns = "console-rights"
	if _, err := client.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitAggregation(t, client)
	paths := []string{"/api", "/apis", "/api/v1/secrets", "/api/v1/namespaces", "/api/v1/namespaces/" + ns + "/configmaps",
		"/api/v1/namespaces/" + ns + "/secrets", "/api/v1/namespaces/" + ns + "/none", "/metrics", "/argosy/health",
		"/apis/cluster.karmada.io/v1alpha1/clusters", "/apis/cluster.karmada.io/v1alpha1/clusters/eu/proxy/api",
		"/apis/work.karmada.io/v1alpha2/namespaces/" + ns + "/resourcebindings", "/apis/work.karmada.io/v1alpha1/works",
		"/apis/policy.karmada.io/v1alpha1/clusterpropagationpolicies", "/console/session", "/healthz", "/debug/pprof/heap"}
	codes := map[int]bool{}
	for _, role := range []string{"", "view", "edit", "argosy:operator"} {
		name := "c-" + strings.NewReplacer(":", "-").Replace(role)
		token := tokenOf(t, client, ns, strings.TrimSuffix(name, "-"))
		if role != "" {
			in := ns
			if role == "argosy:operator" {
				in = ""
			}
			bind(t, client, "system:serviceaccount:"+ns+":"+name, role, in)
		}
		config := rest.AnonymousClientConfig(h.adminConfig)
		config.BearerToken = token
		direct := kubernetes.NewForConfigOrDie(config)
		b := newBrowser(t, h.URL())
		if code, answer := b.send("POST", "/console/session", map[string]string{"token": token}); code != http.StatusOK {
			t.Fatalf("the token of %s gave %d %s", name, code, answer)
		}
		for _, path := range paths {
			for _, method := range []string{"GET", "POST", "DELETE"} {
				if method != "GET" && !strings.HasSuffix(path, "configmaps") {
					continue
				}
				kit.Eventually(t, fmt.Sprintf("%s of %s gives the same", method+" "+path, name), func() string {
					var want int
					direct.RESTClient().Verb(method).AbsPath(path).Do(t.Context()).StatusCode(&want)
					got, answer := b.send(method, "/console/k8s"+path, nil)
					codes[got] = true
					if got != want {
						return fmt.Sprintf("by console %d %.200s, by kubectl %d", got, answer, want)
					}
					return ""
				})
			}
		}
	}
	if !codes[http.StatusOK] || !codes[http.StatusForbidden] {
		t.Errorf("the requests show nothing: %v", codes)
	}
}

// Each route gives nothing of the fleet to a user without rights. A new route needs an entry here.
func TestConsoleRoutesRefuseUserWithoutRights(t *testing.T) {
	h := useSharedHub(t)
	client := kubernetes.NewForConfigOrDie(h.Config())
	b := newBrowser(t, h.URL())
	token := tokenOf(t, client, "default", "console-nobody")
	if code, answer := b.send("POST", "/console/session", map[string]string{"token": token}); code != http.StatusOK {
		t.Fatalf("the token gave %d %s", code, answer)
	}
	importBody := map[string]string{"name": "eu", "kubeconfig": "{}"}
	routes := map[string]struct {
		method, query string
		body          any
		code          int
		part          string
	}{
		"/console/api/me":     {"GET", "", nil, http.StatusOK, `"join":false`},
		"/console/api/link":   {"POST", "", map[string]string{}, http.StatusForbidden, "a session cannot make a link"},
		"/console/api/import": {"POST", "", importBody, http.StatusForbidden, `"verb":"create"`},
		"/console/api/why": {"GET", "?kind=clusters.cluster.karmada.io&name=eu", nil, http.StatusForbidden,
			`"missing":{"verb":"get","group":"cluster.karmada.io","resource":"clusters","role":"argosy:fleet"}`},
		"/console/api/actions": {"GET", "?kind=Deployment.apps&namespace=default&name=web", nil, http.StatusForbidden,
			`"missing":{"verb":"get","group":"apps","resource":"deployments","namespace":"default","role":"view"}`},
		"/console/api/pods": {"GET", "?kind=Deployment.apps&namespace=default&name=web&clusters=eu", nil,
			http.StatusForbidden, `"missing":{"verb":"get","group":"apps","resource":"deployments","namespace":"default","role":"view"}`},
		"/console/api/object": {"GET", "?kind=Secret&namespace=default&name=web", nil, http.StatusForbidden,
			`"missing":{"verb":"get","resource":"secrets","namespace":"default"}`},
		"/console/api/change": {"POST", "", map[string]any{"apply": true,
			"yaml": "{apiVersion: v1, kind: ConfigMap, metadata: {name: web, namespace: default}}"}, http.StatusOK,
			`"missing":{"verb":"create","resource":"configmaps","namespace":"default","role":"edit"}}],"applied":false`},
		"/console/api/release": {"GET", "?namespace=shop&name=web", nil, http.StatusForbidden,
			`"missing":{"verb":"get","group":"release.argosy.io","resource":"releases","namespace":"shop","role":"view"}`},
		"/console/api/evidence": {"GET", "?namespace=shop&name=web&gate=sign", nil, http.StatusForbidden,
			`"missing":{"verb":"get","group":"release.argosy.io","resource":"releases","namespace":"shop","role":"view"}`},
		"/console/api/revisions": {"GET", "?kind=Deployment.apps&namespace=default&name=web", nil, http.StatusForbidden,
			`"missing":{"verb":"get","group":"apps","resource":"deployments","namespace":"default","role":"view"}`},
		"/console/api/kinds": {"GET", "?cluster=eu", nil, http.StatusForbidden,
			`"missing":{"verb":"get","group":"cluster.karmada.io","resource":"clusters/proxy"}`},
		"/console/api/objects": {"GET", "?cluster=eu&apiVersion=v1&resource=pods", nil, http.StatusForbidden,
			`"missing":{"verb":"get","group":"cluster.karmada.io","resource":"clusters/proxy"}`},
		"/console/api/policies": {"GET", "", nil, http.StatusOK, `{"policies":[],"missing":[{"verb":"list"`},
		"/console/api/unclaimed": {"GET", "?kind=Deployment.apps", nil, http.StatusForbidden,
			`"missing":{"verb":"list","group":"apps","resource":"deployments","everywhere":true,"role":"view"}`},
		"/console/api/usage": {"GET", "?by=cluster", nil, http.StatusForbidden,
			`"missing":{"verb":"list","group":"work.karmada.io","resource":"resourcebindings","everywhere":true,"role":"argosy:view"}`},
		"/console/api/search": {"GET", "?q=pods", nil, http.StatusForbidden,
			`"missing":{"verb":"get","group":"search.karmada.io","resource":"search/api","role":"argosy:fleet"}`},
		"/console/api/timeline": {"GET", "", nil, http.StatusOK, `"missing":[{"verb":"list"`},
		"/console/api/stream":   {}, // TestConsoleStreamsOnlyReadableObjects
	}
	for _, path := range console.Paths {
		r, found := routes[path]
		if !found {
			t.Errorf("no entry for %s: what does a user without rights get?", path)
		}
		if r.method == "" {
			continue
		}
		code, answer := b.send(r.method, path+r.query, r.body)
		if code != r.code || !strings.Contains(answer, r.part) {
			t.Errorf("%s gave %d %s, want %d with %s", path, code, answer, r.code, r.part)
		}
	}
	// Where the buttons of a workload send their patches.
	for _, path := range []string{"web", "web/scale"} {
		if code, answer := b.send("PATCH", "/console/k8s/apis/apps/v1/namespaces/default/deployments/"+path,
			map[string]any{}); code != http.StatusForbidden {
			t.Errorf("a patch of %s gave %d %s", path, code, answer)
		}
	}
}

func TestAuditShowsTheUserOfTheConsole(t *testing.T) {
	h := useSharedHub(t)
	client := kubernetes.NewForConfigOrDie(h.Config())
	b := newBrowser(t, h.URL())
	token := tokenOf(t, client, "default", "console-audit")
	if code, answer := b.send("POST", "/console/session", map[string]string{"token": token}); code != http.StatusOK {
		t.Fatalf("the token gave %d %s", code, answer)
	}
	if code, _ := b.send("GET", "/console/k8s/api/v1/namespaces/default/secrets", nil); code != http.StatusForbidden {
		t.Errorf("a user without rights lists secrets: %d", code)
	}
	kit.Eventually(t, "the audit log has the request", func() string {
		log, err := os.ReadFile(h.config.KubeAPIServer.Audit.LogFile)
		if err != nil {
			return err.Error()
		}
		for line := range strings.Lines(string(log)) {
			if strings.Contains(line, "system:serviceaccount:default:console-audit") &&
				strings.Contains(line, `"userAgent":"argosy-console/`) && strings.Contains(line, `"code":403`) {
				return ""
			}
		}
		return "it does not"
	})
}

func TestConsoleStreamsOnlyReadableObjects(t *testing.T) {
	h := useSharedHub(t)
	client := kubernetes.NewForConfigOrDie(h.Config())
	b := newBrowser(t, h.URL())
	token := tokenOf(t, client, "default", "console-stream")
	if code, answer := b.send("POST", "/console/session", map[string]string{"token": token}); code != http.StatusOK {
		t.Fatalf("the token gave %d %s", code, answer)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, "GET", h.URL()+"/console/api/stream?topics=clusters", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Argosy-Console", "1")
	for _, c := range b.cookies {
		r.AddCookie(c)
	}
	resp, err := b.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	head := make([]byte, 4096)
	n, err := io.ReadAtLeast(resp.Body, head, 100)
	if err != nil || !strings.HasPrefix(string(head[:n]), "event: snapshot\n") ||
		!strings.Contains(string(head[:n]), `"missing":[{"verb":"list","group":"cluster.karmada.io","resource":"clusters","role":"argosy:fleet"}]`) {
		t.Errorf("%d %v: %s", resp.StatusCode, err, head[:n])
	}
}

// A user with the role view in one namespace opens its workloads. All rights that the answer does without are named
// together, and nothing of another namespace, no Secret and no Work is shown.
func TestViewerOfANamespaceOpensItsWorkloads(t *testing.T) {
	h := useSharedHub(t)
	client := kubernetes.NewForConfigOrDie(h.Config())
	const ns, other = "console-own", "console-other"
	for _, name := range []string{ns, other} {
		if _, err := client.CoreV1().Namespaces().Create(t.Context(),
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		pods := map[string]string{"app": "web"}
		if _, err := client.AppsV1().Deployments(name).Create(t.Context(), &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: appsv1.DeploymentSpec{
				Selector: &metav1.LabelSelector{MatchLabels: pods}, Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: pods}, Spec: corev1.PodSpec{Containers: []corev1.Container{{
						Name: "c", Image: "example.com/web:1"}}}}}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	awaitAggregation(t, client)
	token := tokenOf(t, client, ns, "viewer")
	bind(t, client, "system:serviceaccount:"+ns+":viewer", "view", ns)
	b := newBrowser(t, h.URL())
	if code, answer := b.send("POST", "/console/session", map[string]string{"token": token}); code != http.StatusOK {
		t.Fatalf("the token gave %d %s", code, answer)
	}
	fleet := func(resource string) string {
		group := map[bool]string{true: "cluster.karmada.io", false: "policy.karmada.io"}[resource == "clusters"]
		return `{"verb":"list","group":"` + group + `","resource":"` + resource + `","role":"argosy:fleet"}`
	}
	missing := `"missing":[` + fleet("clusterpropagationpolicies") + "," + fleet("clusteroverridepolicies") + "," +
		fleet("clusters") + "]"
	const web = "?kind=Deployment.apps&name=web&namespace="
	for _, path := range []string{"why", "actions", "object", "revisions"} {
		kit.Eventually(t, path+" of an own workload", func() string {
			code, answer := b.send("GET", "/console/api/"+path+web+ns, nil)
			if code != http.StatusOK || path == "why" && !strings.Contains(answer, missing) {
				return fmt.Sprint(code, answer)
			}
			return ""
		})
		if code, answer := b.send("GET", "/console/api/"+path+web+other, nil); code != http.StatusForbidden {
			t.Errorf("%s of another namespace gave %d %s", path, code, answer)
		}
	}
	for _, path := range []string{"/api/v1/namespaces/" + ns + "/secrets", "/api/v1/secrets",
		"/apis/work.karmada.io/v1alpha1/works", "/apis/cluster.karmada.io/v1alpha1/clusters",
		"/apis/policy.karmada.io/v1alpha1/clusterpropagationpolicies", "/api/v1/namespaces/karmada-cluster/secrets",
		"/apis/work.karmada.io/v1alpha2/namespaces/" + other + "/resourcebindings",
		"/apis/policy.karmada.io/v1alpha1/namespaces/" + other + "/propagationpolicies"} {
		if code, _ := b.send("GET", "/console/k8s"+path, nil); code != http.StatusForbidden {
			t.Errorf("%s gave %d", path, code)
		}
	}
}
