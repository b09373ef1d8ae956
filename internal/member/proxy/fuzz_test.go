package proxy_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/internal/member/acting"
	"github.com/argosy-io/argosy/internal/member/proxy"
)

// strict is a member below a path of a server that has others. It keeps what is wrong with a request.
type strict struct {
	mu    sync.Mutex
	wrong []string
}

func (s *strict) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var wrong []string
	h := r.Header
	// the hub's look at its role
	own := h.Get("Authorization") == "Bearer own" &&
		strings.HasPrefix(r.URL.Path, "/k8s/eu/apis/rbac.authorization.k8s.io/")
	if !own && (!slices.Equal(h["Authorization"], []string{"Bearer acting"}) ||
		!slices.Equal(h["Impersonate-User"], []string{"alice"}) || !slices.Equal(h["Impersonate-Group"], []string{"devs"})) {
		wrong = append(wrong, fmt.Sprintf("who calls: %q %q %q", h["Authorization"], h["Impersonate-User"],
			h["Impersonate-Group"]))
	}
	for name := range h {
		alike := strings.ReplaceAll(strings.ToLower(name), "_", "-")
		if strings.HasPrefix(alike, "impersonate-") && name != "Impersonate-User" && name != "Impersonate-Group" ||
			strings.HasPrefix(alike, "x-remote-") ||
			strings.HasPrefix(alike, "x-forwarded-") || alike == "cookie" || alike == "proxy-authorization" ||
			alike == "forwarded" || alike == "authorization" && name != "Authorization" {
			wrong = append(wrong, "header "+name)
		}
	}
	if upgrade := strings.ToLower(h.Get("Upgrade")); upgrade != "" && upgrade != "websocket" && upgrade != "spdy/3.1" {
		wrong = append(wrong, "upgrade to "+upgrade)
	}
	if len(r.Trailer) > 0 {
		wrong = append(wrong, fmt.Sprint("trailers ", r.Trailer))
	}
	// However often somebody on the way decodes it, or tidies it up.
	for at, i := r.RequestURI, 0; i < 4; i++ {
		at, _, _ = strings.Cut(at, "?")
		for _, reading := range []string{at, strings.ReplaceAll(at, `\`, "/")} {
			if clean := path.Clean(reading); clean != "/k8s/eu" && !strings.HasPrefix(clean, "/k8s/eu/") {
				wrong = append(wrong, fmt.Sprintf("path %q is %q", r.RequestURI, clean))
			}
		}
		again, err := url.PathUnescape(at)
		if err != nil || again == at {
			break
		}
		at = strings.ReplaceAll(again, "?", "%3F")
		at = strings.ReplaceAll(at, "%3F", "x")
	}
	if len(wrong) > 0 {
		s.mu.Lock()
		s.wrong = append(s.wrong, wrong...)
		s.mu.Unlock()
	}
	w.WriteHeader(http.StatusNotFound)
}

func (s *strict) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() { s.wrong = nil }()
	return s.wrong
}

// FuzzRequest sends arbitrary requests as alice: those that reach the member must be below their own path, and identify
// the caller as the hub does.
func FuzzRequest(f *testing.F) {
	for _, seed := range []struct{ method, path, header string }{
		{"GET", "/apis/cluster.karmada.io/v1alpha1/clusters/eu/proxy/api/v1/pods?limit=1", "Accept: */*"},
		{"GET", "/apis/cluster.karmada.io/v1alpha1/clusters/eu/proxy/..%2f..%2fus/api",
			"Impersonate-User: system:admin\nImpersonate-Group: system:masters"},
		{"POST", "/apis/cluster.karmada.io/v1alpha1/clusters/eu/proxy/%252e%252e/us",
			"X-Remote-User: admin\nX_Remote_Group: system:masters"},
		{"DELETE", "/apis/cluster.karmada.io/v1alpha1/clusters/eu%2F..%2Fus/proxy/",
			"Connection: Impersonate-User, Authorization\nAuthorization: Bearer stolen"},
		{"GET", "/apis/cluster.karmada.io/v1alpha1/clusters/*/proxy/api", "Connection: Upgrade\nUpgrade: websocket"},
		{"GET", "/apis/cluster.karmada.io/v1alpha1/clusters//proxy/api", "Connection: Upgrade\nUpgrade: h2c"},
		{"GET", "/apis/cluster.karmada.io/v1alpha1/clusters/eu/proxy?path=../us", "Cookie: a=b\nForwarded: for=x"},
		{"PATCH", "/apis/cluster.karmada.io/v1alpha1/clusters/eu/proxy/..;/us",
			"Transfer-Encoding: chunked\nTrailer: Impersonate-User"},
		{"GET", "//apis/cluster.karmada.io/v1alpha1/clusters/eu/proxy/./api",
			"Sec-WebSocket-Protocol: base64url.bearer.authorization.k8s.io.c3RvbGVu"},
		{"GET", `/apis/cluster.karmada.io/v1alpha1/clusters/eu/proxy/..\us`,
			"impersonate-extra-a: b\nX-Forwarded-User: admin"},
		{"GET", "http://elsewhere/apis/cluster.karmada.io/v1alpha1/clusters/eu/proxy/api", "Host: elsewhere"},
		{"GET", "/apis/cluster.karmada.io/v1alpha1/clusters/eu/proxy/api%3f/../../us", "Te: trailers"},
	} {
		f.Add(seed.method, seed.path, seed.header)
	}
	target := &strict{}
	m := httptest.NewServer(target)
	f.Cleanup(m.Close)
	s := runtime.NewScheme()
	_ = clientgoscheme.AddToScheme(s)
	_ = clusterv1alpha1.AddToScheme(s)
	c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "eu"},
		Spec: clusterv1alpha1.ClusterSpec{APIEndpoint: m.URL + "/k8s/eu",
			SecretRef:             &clusterv1alpha1.LocalSecretReference{Namespace: "karmada-cluster", Name: "eu"},
			ImpersonatorSecretRef: &clusterv1alpha1.LocalSecretReference{Namespace: "karmada-cluster", Name: "eu-impersonator"}}}
	own := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-cluster", Name: "eu"},
		Data: map[string][]byte{"token": []byte("own")}}
	store := fake.NewClientBuilder().WithScheme(s).WithObjects(c, own, impersonator("eu", "acting")).Build()
	handler := proxy.Handler(proxy.Options{Hub: func() (client.Reader, error) { return store, nil },
		Grants: acting.Fixed(letIn)}, http.NotFoundHandler())
	infos := &request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"),
		GrouplessAPIPrefixes: sets.NewString("api")}
	hub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, err := infos.NewRequestInfo(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		handler.ServeHTTP(w, r.WithContext(request.WithUser(request.WithRequestInfo(r.Context(), info), alice)))
	}))
	f.Cleanup(hub.Close)
	f.Fuzz(func(t *testing.T, method, path, header string) {
		if strings.ContainsAny(method+path, "\r\n \t") || strings.Contains(header, "\n\n") || strings.Contains(header, "\r") {
			return // it would be two requests
		}
		conn, err := net.Dial("tcp", hub.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		text := method + " " + path + " HTTP/1.1\nHost: hub\n" + strings.Trim(header, "\n")
		if !strings.Contains(strings.ToLower(header), "upgrade") {
			text += "\nConnection: close"
		}
		fmt.Fprint(conn, strings.ReplaceAll(text, "\n", "\r\n")+"\r\n\r\n0\r\nImpersonate-User: trailing\r\n\r\n")
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.CloseWrite()
		}
		if resp, err := http.ReadResponse(bufio.NewReader(conn), nil); err == nil {
			for name := range resp.Header {
				if name == "Location" || name == "Set-Cookie" {
					t.Errorf("answered with %s", name)
				}
			}
			_ = resp.Body.Close()
		}
		if wrong := target.take(); len(wrong) > 0 {
			t.Errorf("%s %s with %q: %q", method, path, header, wrong)
		}
	})
}
