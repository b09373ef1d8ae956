package server

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// renameVersion is the least conversion there is.
func renameVersion(review *apiextensionsv1.ConversionReview) *apiextensionsv1.ConversionReview {
	answer := &apiextensionsv1.ConversionReview{TypeMeta: review.TypeMeta, Response: &apiextensionsv1.ConversionResponse{
		UID: review.Request.UID, Result: metav1.Status{Status: metav1.StatusSuccess}}}
	for _, raw := range review.Request.Objects {
		var u unstructured.Unstructured
		if err := u.UnmarshalJSON(raw.Raw); err != nil {
			answer.Response.Result = metav1.Status{Status: metav1.StatusFailure, Message: err.Error()}
			return answer
		}
		u.SetAPIVersion(review.Request.DesiredAPIVersion)
		answer.Response.ConvertedObjects = append(answer.Response.ConvertedObjects, runtime.RawExtension{Object: &u})
	}
	return answer
}

// One hub for what one hub can show: kubeconfig, identity, health, metrics, conversion, watches, stop.
func TestAHubServesItsClients(t *testing.T) {
	c := testConfig(t)
	c.KubeconfigOut = filepath.Join(t.TempDir(), "config")
	write(t, c.KubeconfigOut, `apiVersion: v1
kind: Config
current-context: mine
contexts: [{name: mine, context: {cluster: mine, user: me}}]
clusters: [{name: mine, cluster: {server: "https://mine.example.com"}}]
users: [{name: me, user: {token: abc}}]
`)
	led := make(chan struct{})
	h, _ := start(t, c, Parts{
		Convert: renameVersion,
		Controllers: func(ctx context.Context, d Deps) error {
			close(led)
			<-ctx.Done()
			return nil
		},
	})
	client, config := adminClient(t, c.KubeconfigOut)

	t.Run("the kubeconfig is private, current, and keeps what was in it", func(t *testing.T) {
		info, err := os.Stat(c.KubeconfigOut)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("mode %o", info.Mode().Perm())
		}
		k, err := clientcmd.LoadFromFile(c.KubeconfigOut)
		if err != nil {
			t.Fatal(err)
		}
		if k.CurrentContext != "argosy" || k.Contexts["karmada-apiserver"] == nil || k.Contexts["mine"] == nil || k.AuthInfos["me"].Token != "abc" {
			t.Errorf("contexts %v, current %s", k.Contexts, k.CurrentContext)
		}
	})
	t.Run("it says its Kubernetes version", func(t *testing.T) {
		version, err := client.Discovery().ServerVersion()
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(version.GitVersion, "v1.") {
			t.Errorf("version %s", version.GitVersion)
		}
		if strings.HasPrefix(version.BuildDate, "1970") {
			t.Errorf("built on %s", version.BuildDate)
		}
	})
	t.Run("it is ready, alive, and says what is", func(t *testing.T) {
		for _, path := range []string{"/livez", "/readyz", "/healthz"} {
			body, err := client.RESTClient().Get().AbsPath(path).Param("verbose", "").DoRaw(t.Context())
			if err != nil {
				t.Errorf("%s: %v", path, err)
			}
			if path == "/readyz" && !strings.Contains(string(body), "[+]argosy ok") {
				t.Errorf("readiness does not ask the hub:\n%s", body)
			}
		}
	})
	t.Run("the controllers run", func(t *testing.T) {
		select {
		case <-led:
		case <-time.After(time.Minute):
			t.Error("not within a minute")
		}
	})
	t.Run("strangers see health and nothing else", func(t *testing.T) {
		anonymous := rest.AnonymousClientConfig(config)
		stranger := kubernetes.NewForConfigOrDie(anonymous)
		if _, err := stranger.RESTClient().Get().AbsPath("/readyz").DoRaw(t.Context()); err != nil {
			t.Errorf("readiness: %v", err)
		}
		for _, path := range []string{"/metrics", convertPath, "/api/v1/secrets", "/apis/work.karmada.io/v1alpha1/works", "/debug/pprof/heap"} {
			var code int
			stranger.RESTClient().Get().AbsPath(path).Do(t.Context()).StatusCode(&code)
			if code != http.StatusForbidden {
				t.Errorf("%s: %d", path, code)
			}
		}
	})
	t.Run("one scrape shows every part", func(t *testing.T) {
		body, err := client.RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, metric := range []string{"apiserver_request_total", "etcd_server_has_leader 1", "controller_runtime_", "process_resident_memory_bytes", "karmada_scheduler_schedule_attempts_total{"} {
			if !strings.Contains(string(body), metric) {
				t.Errorf("no %s", metric)
			}
		}
		if n := strings.Count(string(body), "\nprocess_resident_memory_bytes "); n != 1 {
			t.Errorf("the process's memory is told %d times", n)
		}
	})
	t.Run("a kind is served in all of its versions", func(t *testing.T) {
		d, err := dynamic.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		stored := schema.GroupVersionResource{Group: "work.karmada.io", Version: "v1alpha2", Resource: "clusterresourcebindings"}
		binding := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "work.karmada.io/v1alpha2", "kind": "ClusterResourceBinding", "metadata": map[string]any{"name": "converted"},
			"spec": map[string]any{"resource": map[string]any{"apiVersion": "v1", "kind": "Node", "name": "n"}},
		}}
		if _, err := d.Resource(stored).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		old := stored
		old.Version = "v1alpha1"
		got, err := d.Resource(old).Get(t.Context(), "converted", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got.GetAPIVersion() != "work.karmada.io/v1alpha1" {
			t.Errorf("got %s", got.GetAPIVersion())
		}
	})
	t.Run("it stops soon, watched or not, and stops its controllers", func(t *testing.T) {
		watch, err := client.CoreV1().ConfigMaps("").Watch(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer watch.Stop()
		begin := time.Now()
		h.Stop()
		if took := time.Since(begin); took > 10*time.Second {
			t.Errorf("it took %v", took)
		} else {
			t.Logf("stopped after %v", took)
		}
		if _, err := client.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}); err == nil {
			t.Error("it still answers")
		}
	})
}

// Two replicas on one API server: one works; when it goes, and not before its loops have ended, the other does.
func TestReplicasTakeTurns(t *testing.T) {
	c := testConfig(t)
	c.Components = []string{"*", "-controllers", "-controller-manager"}
	shared, _ := start(t, c, Parts{})

	var working atomic.Int32
	began := make(chan string, 10)
	replica := func(name string) func() {
		h := &Hub{config: DefaultConfig(), server: shared.server, fatal: make(chan error, 1), alive: newAlive()}
		h.config.Etcd.Servers = []string{"http://shared"}
		h.config.Components = []string{"controllers"}
		h.parts.Controllers = func(ctx context.Context, _ Deps) error {
			if working.Add(1) > 1 {
				t.Error("two replicas work at once")
			}
			began <- name
			<-ctx.Done()
			time.Sleep(300 * time.Millisecond) // loops take a while to end
			working.Add(-1)
			return nil
		}
		stop, err := h.startLoops(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return stop
	}
	next := func() string {
		select {
		case name := <-began:
			return name
		case <-time.After(time.Minute):
			t.Fatal("nobody works")
			return ""
		}
	}
	stopFirst := replica("first")
	if name := next(); name != "first" {
		t.Fatalf("%s works", name)
	}
	stopSecond := replica("second")
	begin := time.Now()
	stopFirst()
	if name := next(); name != "second" {
		t.Fatalf("%s works", name)
	}
	t.Logf("taken over after %v", time.Since(begin))
	stopSecond()
	if working.Load() != 0 {
		t.Error("stopped loops go on")
	}
}

// A loop that fails for good ends the hub, which says which one and why.
func TestAFailedLoopEndsTheHub(t *testing.T) {
	c := testConfig(t)
	c.Components = []string{"*", "-controller-manager"}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err := Run(ctx, c, Parts{Controllers: func(context.Context, Deps) error { return io.ErrUnexpectedEOF }}, io.Discard)
	if err == nil || err.Error() != "controllers stopped: unexpected EOF" {
		t.Errorf("the hub ended with %v", err)
	}
	// The data folder and port are free again.
	if release, err := claim(c.DataDir); err != nil {
		t.Error(err)
	} else {
		release()
	}
}
