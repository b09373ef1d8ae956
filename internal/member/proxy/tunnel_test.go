package proxy_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/util/connrotation"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/cluster/pull"
	"github.com/argosy-io/argosy/internal/member"
	"github.com/argosy-io/argosy/internal/member/acting"
	"github.com/argosy-io/argosy/internal/member/proxy"
	"github.com/argosy-io/argosy/internal/member/tunnel"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

// userHeader and groupHeader name the user that sends a request; alice sends those without.
const userHeader, groupHeader = "Test-User", "Test-Group"

// pullHub is a hub with clusters in Pull mode that it cannot dial.
type pullHub struct {
	*httptest.Server
	store     client.Client
	tunnels   *tunnel.Tunnels
	connected chan string // the clusters whose agents connected
}

func newPullHub(t *testing.T, clusters ...string) *pullHub {
	t.Helper()
	s := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	if err := clusterv1alpha1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	objects := make([]client.Object, len(clusters))
	for i, name := range clusters {
		// The versions of later Clusters with this name are not lower, as in a real store.
		objects[i] = &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name),
			ResourceVersion: "1"}, Spec: clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Pull}}
	}
	store := fake.NewClientBuilder().WithScheme(s).WithObjects(objects...).Build()
	reader := func() (client.Reader, error) { return store, nil }
	h := &pullHub{store: store, tunnels: tunnel.New(false), connected: make(chan string, 100)}
	h.tunnels.OnChange(func(cluster string, connected bool) {
		if connected {
			h.connected <- cluster
		}
	})
	handler := h.tunnels.Handler(reader, proxy.Handler(proxy.Options{Hub: reader, Grants: acting.Fixed(letIn),
		Identity: func(context.Context) (string, error) { return identity, nil }, Tunnels: h.tunnels},
		http.NotFoundHandler()))
	infos := &request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"),
		GrouplessAPIPrefixes: sets.NewString("api")}
	h.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, err := infos.NewRequestInfo(r)
		if err != nil {
			t.Errorf("%s: %v", r.URL, err)
		}
		caller := alice
		if name := r.Header.Get(userHeader); name != "" {
			caller = &user.DefaultInfo{Name: name, Groups: r.Header.Values(groupHeader)}
		}
		handler.ServeHTTP(w, r.WithContext(request.WithUser(request.WithRequestInfo(r.Context(), info), caller)))
	}))
	h.EnableHTTP2 = true
	h.StartTLS()
	t.Cleanup(h.Close)
	t.Cleanup(h.tunnels.Close)
	return h
}

// asUser sends requests as a user.
type asUser struct {
	next        http.RoundTripper
	user, group string
}

// RoundTrip implements http.RoundTripper.
func (a asUser) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set(userHeader, a.user)
	r.Header.Set(groupHeader, a.group)
	return a.next.RoundTrip(r)
}

// transport returns a transport to the hub as a user, whose connections the dialer opens.
func (h *pullHub) transport(dialer *connrotation.Dialer, user, group string) http.RoundTripper {
	pool := x509.NewCertPool()
	pool.AddCert(h.Certificate())
	return asUser{&http.Transport{DialContext: dialer.DialContext,
		TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: "example.com"}}, user, group}
}

// connect runs the agent of a member until the test ends. It returns the dialer of its connections.
func (h *pullHub) connect(t *testing.T, cluster string, m *membertest.Server) *connrotation.Dialer {
	t.Helper()
	config, err := member.Config(m.Cluster(cluster), m.Secret(cluster))
	if err != nil {
		t.Fatal(err)
	}
	config.Dial = (&net.Dialer{}).DialContext
	dialer := connrotation.NewDialer((&net.Dialer{}).DialContext)
	agent := &tunnel.Agent{Cluster: cluster, Hub: h.URL, Member: config, Log: logr.Discard(),
		Transport: h.transport(dialer, pull.User(cluster), pull.Group)}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- agent.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	h.await(t, cluster)
	return dialer
}

// await waits until the agent of a cluster has connected.
func (h *pullHub) await(t *testing.T, cluster string) {
	t.Helper()
	select {
	case got := <-h.connected:
		if got != cluster {
			t.Fatalf("the agent of %s connected, want %s", got, cluster)
		}
	case <-time.After(time.Minute):
		t.Fatal("the agent did not connect")
	}
}

func TestRequestsReachAMemberThroughTheTunnelOfItsAgent(t *testing.T) {
	m, requests, more := membertest.New(t), &seen{}, make(chan string)
	kubelet := &membertest.Kubelet{Log: map[string]string{"shop/web-1": "one\n"}, Follow: more,
		Exec: func(pod string, command []string, stdin io.Reader, stdout, _ io.Writer) error {
			in, err := io.ReadAll(stdin)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(stdout, "%s %q %d", pod, command, len(in))
			return err
		}}
	m.Behave(func(w http.ResponseWriter, r *http.Request) bool {
		requests.note(w, r.Clone(r.Context()))
		return kubelet.Serve(w, r)
	})
	h := newPullHub(t, "eu")
	h.connect(t, "eu", m)
	config := through(h.Server, "eu")
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}

	// 1. Objects are written, read and watched. The member gets the user from the hub, and the credentials of the agent.
	created, err := c.CoreV1().ConfigMaps("shop").Create(t.Context(), &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "settings"},
		Data:       map[string]string{"big": strings.Repeat("x", 900_000)}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got := requests.last().Header
	if got.Get("Authorization") != "Bearer "+membertest.Token || got.Get("Impersonate-User") != "alice" ||
		!slices.Equal(got["Impersonate-Group"], []string{"devs"}) {
		t.Errorf("the member got %v", got)
	}
	read, err := c.CoreV1().ConfigMaps("shop").Get(t.Context(), "settings", metav1.GetOptions{})
	if err != nil || len(read.Data["big"]) != 900_000 {
		t.Errorf("read %d bytes: %v", len(read.Data["big"]), err)
	}
	watch, err := c.CoreV1().ConfigMaps("shop").Watch(t.Context(),
		metav1.ListOptions{ResourceVersion: created.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.CoreV1().ConfigMaps("shop").Delete(t.Context(), "settings", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if event := <-watch.ResultChan(); event.Type != "DELETED" {
		t.Errorf("the watch has %+v", event)
	}
	watch.Stop()

	// 2. Logs are followed.
	stream, err := c.CoreV1().Pods("shop").GetLogs("web-1", &corev1.PodLogOptions{Follow: true}).Stream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	lines := bufio.NewScanner(stream)
	if !lines.Scan() || lines.Text() != "one" {
		t.Fatalf("read %q, %v", lines.Text(), lines.Err())
	}
	more <- "two\n" // It is read while the log goes on.
	if !lines.Scan() || lines.Text() != "two" {
		t.Fatalf("read %q, %v", lines.Text(), lines.Err())
	}
	close(more)

	// 3. Commands run in pods over both protocols.
	target, err := url.Parse(config.Host + "/api/v1/namespaces/shop/pods/web-1/exec?command=sh&stdin=true&stdout=true")
	if err != nil {
		t.Fatal(err)
	}
	spdy, err := remotecommand.NewSPDYExecutor(config, "POST", target)
	if err != nil {
		t.Fatal(err)
	}
	socket, err := remotecommand.NewWebSocketExecutor(config, "GET", target.String())
	if err != nil {
		t.Fatal(err)
	}
	for protocol, executor := range map[string]remotecommand.Executor{"SPDY": spdy, "websocket": socket} {
		var out bytes.Buffer
		err := executor.StreamWithContext(t.Context(), remotecommand.StreamOptions{
			Stdin: strings.NewReader(strings.Repeat("y", 500_000)), Stdout: &out})
		if err != nil || out.String() != `shop/web-1 ["sh"] 500000` {
			t.Errorf("%s: printed %q: %v", protocol, out.String(), err)
		}
	}
}

// A tunnel gives no right: roles on the hub decide who may use clusters/proxy, and whom the member sees.
func TestTunnelGivesUsersNoRight(t *testing.T) {
	m, requests := membertest.New(t), &seen{}
	m.Behave(requests.note)
	h := newPullHub(t, "eu")
	h.connect(t, "eu", m)
	for name, header := range map[string]string{
		"a user without a role": "Test-User: eve",
		"a system user":         "Test-User: system:kube-scheduler",
		"an agent":              "Test-User: system:karmada:agent:eu\nTest-Group: system:karmada:agents",
	} {
		if resp, body := raw(t, h.Server, "GET "+proxy.Path("eu")+"/version HTTP/1.1\n"+
			header); resp.StatusCode != http.StatusForbidden {
			t.Errorf("%s: %s %s", name, resp.Status, body)
		}
	}
	if last := requests.last(); last != nil {
		t.Errorf("the member got %s", last.URL)
	}
	resp, body := raw(t, h.Server, "GET "+proxy.Path("eu")+
		"/version HTTP/1.1\nImpersonate-User: root\nImpersonate-Group: system:masters\nAuthorization: Bearer stolen")
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("%s %s", resp.Status, body)
	}
	if got := requests.last().Header; got.Get("Authorization") != "Bearer "+membertest.Token ||
		!slices.Equal(got["Impersonate-User"], []string{"alice"}) ||
		!slices.Equal(got["Impersonate-Group"], []string{"devs"}) {
		t.Errorf("the member got %v", got)
	}
}

func TestTunnelIsOnlyForTheClusterOfItsAgent(t *testing.T) {
	m, requests := membertest.New(t), &seen{}
	m.Behave(requests.note)
	h := newPullHub(t, "eu", "us")
	dialer := h.connect(t, "eu", m)
	push := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "push", UID: "uid-push"},
		Spec: clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Push}}
	if err := h.store.Create(t.Context(), push); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		cluster, user, group, protocol string
		code                           int
		text                           string
	}{
		"the agent of another cluster": {"us", pull.User("eu"), pull.Group, tunnel.Protocol, 403,
			`only the agent of cluster "us"`},
		"a user with the name of the agent": {"us", pull.User("us"), "devs", tunnel.Protocol, 403,
			`only the agent of cluster "us"`},
		"an administrator": {"us", "admin", "system:masters", tunnel.Protocol, 403, `only the agent of cluster "us"`},
		"a registrar":      {"us", pull.Registrar, pull.Group, tunnel.Protocol, 403, `only the agent of cluster "us"`},
		"the agent of a cluster in Push mode": {"push", pull.User("push"), pull.Group, tunnel.Protocol, 403,
			`cluster "push" is not in Pull mode`},
		"the agent of a removed cluster": {"gone", pull.User("gone"), pull.Group, tunnel.Protocol, 404,
			`there is no cluster "gone"`},
		"an agent with another protocol": {"us", pull.User("us"), pull.Group, "websocket", 400, "upgrade the connection to"},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.URL+tunnel.Path(c.cluster), http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Connection", "Upgrade")
		r.Header.Set("Upgrade", c.protocol)
		resp, err := h.transport(dialer, c.user, c.group).RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != c.code || !strings.Contains(string(text), c.text) {
			t.Errorf("%s: %s %s", name, resp.Status, text)
		}
	}
	resp, body := raw(t, h.Server, "GET "+proxy.Path("us")+"/version HTTP/1.1")
	if resp.StatusCode != http.StatusServiceUnavailable || !strings.Contains(body, "is not connected to this hub") {
		t.Errorf("%s %s", resp.Status, body)
	}
	if last := requests.last(); last != nil {
		t.Errorf("the member of another cluster got %s", last.URL)
	}
}

// An agent runs on while its Cluster is deleted and created again. Its tunnel is for the former Cluster.
func TestAgentConnectsAgainForANewClusterOfItsName(t *testing.T) {
	m, requests := membertest.New(t), &seen{}
	m.Behave(requests.note)
	recreate := func(h *pullHub, uid types.UID) {
		t.Helper()
		cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "eu"}}
		if err := h.store.Delete(t.Context(), cluster); err != nil {
			t.Fatal(err)
		}
		if err := h.store.Create(t.Context(), &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "eu", UID: uid},
			Spec: clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Pull}}); err != nil {
			t.Fatal(err)
		}
	}

	// 1. A request of a user finds the former tunnel: it is not used, and the agent connects again.
	h := newPullHub(t, "eu")
	h.connect(t, "eu", m)
	recreate(h, "second")
	resp, body := raw(t, h.Server, "GET "+proxy.Path("eu")+"/version HTTP/1.1")
	if resp.StatusCode != http.StatusServiceUnavailable || requests.last() != nil {
		t.Errorf("over the tunnel of a former cluster: %s %s", resp.Status, body)
	}
	h.await(t, "eu")
	if resp, body := raw(t, h.Server, "GET "+proxy.Path("eu")+"/version HTTP/1.1"); resp.StatusCode != http.StatusOK {
		t.Errorf("over the tunnel of the new cluster: %s %s", resp.Status, body)
	}

	// 2. So does a controller.
	members := member.New(member.Options{Clusters: h.store, Tunnels: h.tunnels})
	answered := make(chan string, 100)
	members.OnAnswer(func(cluster string) { answered <- cluster })
	former, err := members.Get("eu")
	if err != nil {
		t.Fatal(err)
	}
	recreate(h, "third")
	if _, err := members.Get("eu"); !errors.Is(err, tunnel.ErrNotConnected) {
		t.Errorf("a controller over the tunnel of a former cluster: %v", err)
	}
	select {
	case <-answered:
	case <-time.After(time.Minute):
		t.Fatal("the agent did not connect again")
	}
	if current, err := members.Get("eu"); err != nil || current == former {
		t.Errorf("a controller over the tunnel of the new cluster: %v", err)
	}
}

func TestBrokenTunnelIsReportedAndOpenedAgain(t *testing.T) {
	m, blocked, released := membertest.New(t), make(chan struct{}), make(chan struct{})
	m.Behave(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/blocked" {
			blocked <- struct{}{}
			<-r.Context().Done()
			released <- struct{}{}
		}
		return false
	})
	h := newPullHub(t, "eu")
	dialer := h.connect(t, "eu", m)
	ended := make(chan string)
	go func() {
		resp, body := raw(t, h.Server, "GET "+proxy.Path("eu")+"/blocked HTTP/1.1")
		ended <- resp.Status + " " + body
	}()
	<-blocked
	dialer.CloseAll()
	if answer := <-ended; !strings.HasPrefix(answer, "503 ") ||
		!strings.Contains(answer, `cluster \"eu\" is not reachable through its agent`) ||
		!strings.Contains(answer, clusterv1alpha1.ReasonClusterNotReachable) {
		t.Errorf("a request while the tunnel broke: %s", answer)
	}
	<-released       // The request in the member ends too.
	h.await(t, "eu") // The agent connects again by itself.

	// A request in the member ends with that of the user.
	ctx, leave := context.WithCancel(t.Context())
	c, err := kubernetes.NewForConfig(through(h.Server, "eu"))
	if err != nil {
		t.Fatal(err)
	}
	go func() { ended <- fmt.Sprint(c.RESTClient().Get().AbsPath("/blocked").Do(ctx).Error()) }()
	<-blocked
	leave()
	<-released
	<-ended
	if resp, body := raw(t, h.Server, "GET "+proxy.Path("eu")+"/version HTTP/1.1"); resp.StatusCode != http.StatusOK {
		t.Errorf("after that: %s %s", resp.Status, body)
	}
	m.Take("another") // The member does not accept the credentials of the agent.
	if resp, body := raw(t, h.Server, "GET "+proxy.Path("eu")+
		"/version HTTP/1.1"); resp.StatusCode != http.StatusServiceUnavailable ||
		!strings.Contains(body, `cluster \"eu\" rejects the credentials of its agent: check the service account`) {
		t.Errorf("without a service account of the agent: %s %s", resp.Status, body)
	}
	m.Down(true) // The API server of the member is down.
	if resp, body := raw(t, h.Server, "GET "+proxy.Path("eu")+
		"/version HTTP/1.1"); resp.StatusCode != http.StatusServiceUnavailable ||
		!strings.Contains(body, `the agent of cluster \"eu\" cannot reach its API server`) {
		t.Errorf("without an API server: %s %s", resp.Status, body)
	}
}

// slice returns an EndpointSlice of the Service shop/web.
func slice(name string) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{TypeMeta: metav1.TypeMeta{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name,
			Labels: map[string]string{discoveryv1.LabelServiceName: "web"}}}
}

// The controllers of the hub read a member over the same tunnel. The agent makes all changes.
func TestControllersReadAMemberThroughTheTunnel(t *testing.T) {
	m := membertest.New(t)
	m.Serve(membertest.Kind{GroupVersionKind: discoveryv1.SchemeGroupVersion.WithKind("EndpointSlice"),
		Plural: "endpointslices", Namespaced: true})
	m.Put(slice("web-a"))
	m.Behave(func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/apis/metrics.k8s.io/v1beta1/namespaces/shop/pods" {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"items": [{"metadata": {"name": "web-1"}, "containers": [{"name": "main"}]}]}`)
		return true
	})
	h := newPullHub(t, "eu")
	members := member.New(member.Options{Clusters: h.store, Tunnels: h.tunnels})
	answered := make(chan string, 100)
	members.OnAnswer(func(cluster string) { h.connected <- cluster; answered <- cluster })
	changed := make(chan struct{}, 100)
	members.OnEndpoints(func(string, types.NamespacedName) { changed <- struct{}{} })
	if _, err := members.Get("eu"); !errors.Is(err, tunnel.ErrNotConnected) ||
		!strings.Contains(err.Error(), `cluster "eu" is in Pull mode, and its agent is not connected`) {
		t.Errorf("without an agent: %v", err)
	}
	dialer := h.connect(t, "eu", m)
	if got := <-answered; got != "eu" {
		t.Errorf("cluster %s responds", got)
	}
	eu, err := members.Get("eu")
	if err != nil {
		t.Fatal(err)
	}
	if probe := eu.Probe(t.Context()); probe.Code != http.StatusOK {
		t.Errorf("the member responds with %+v", probe)
	}
	cluster := &clusterv1alpha1.Cluster{}
	if err := h.store.Get(t.Context(), client.ObjectKey{Name: "eu"}, cluster); err != nil {
		t.Fatal(err)
	}
	if members.Serves(cluster) {
		t.Error("the hub acts in the cluster")
	}
	configMaps := eu.Client().Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace("shop")
	_, err = configMaps.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1",
		"kind": "ConfigMap", "metadata": map[string]any{"name": "settings"}}}, metav1.CreateOptions{})
	if !errors.Is(err, member.ErrElsewhere) || len(m.Writes()) > 0 {
		t.Errorf("the hub writes %q: %v", m.Writes(), err)
	}

	// FederatedHPAs read metrics, ManifestWorks objects, and MultiClusterServices watch endpoints.
	if usage, err := eu.Usage(t.Context(), "shop", "app=web"); err != nil || len(usage) != 1 || usage[0].Pod != "web-1" {
		t.Errorf("the usage is %+v: %v", usage, err)
	}
	if got, err := eu.Get(t.Context(), discoveryv1.SchemeGroupVersion.WithKind("EndpointSlice"), "shop",
		"web-a"); err != nil || got == nil {
		t.Errorf("read %v: %v", got, err)
	}
	web := types.NamespacedName{Namespace: "shop", Name: "web"}
	watches := func(count int) {
		t.Helper()
		for all, _ := eu.EndpointSlices(web); len(all) != count; all, _ = eu.EndpointSlices(web) {
			select {
			case <-changed:
			case <-time.After(time.Minute):
				t.Fatalf("the endpoints are %+v, want %d", all, count)
			}
		}
	}
	watches(1)
	dialer.CloseAll()
	<-answered // The agent connects again.
	m.Put(slice("web-b"))
	watches(2)
	if probe := eu.Probe(t.Context()); probe.Code != http.StatusOK {
		t.Errorf("over the next tunnel, the member responds with %+v", probe)
	}

	// Without a tunnel, the member is reported as not connected instead of what was last read.
	h.tunnels.Close()
	for _, err = members.Get("eu"); err == nil; _, err = members.Get("eu") {
		<-changed
	}
	if !errors.Is(err, tunnel.ErrNotConnected) || members.Known("eu") == nil {
		t.Errorf("after the tunnel ended: %v", err)
	}

	// A cluster that moves to Push mode is not reached through its former agent.
	cluster.Spec.SyncMode = clusterv1alpha1.Push
	if err := h.store.Update(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	if _, err := members.Refresh(t.Context(), "eu"); !errors.Is(err, member.ErrCredentials) || members.Known("eu") != nil {
		t.Errorf("in Push mode without credentials: %v", err)
	}
}
