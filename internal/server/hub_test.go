package server

import (
	"context"
	"io"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"

	"github.com/argosy-io/argosy/test/kit"
)

func TestHubServesItsClients(t *testing.T) {
	h := useSharedHub(t)
	client, config, kubeconfig := h.admin, h.adminConfig, h.config.KubeconfigOut

	t.Run("the greeting names the hub's address and files", func(t *testing.T) {
		for _, what := range []string{h.URL(), h.config.DataDir, kubeconfig} {
			if !strings.Contains(h.greeting, what) {
				t.Errorf("it does not name %s:\n%s", what, h.greeting)
			}
		}
	})
	t.Run("the kubeconfig is private, current, and keeps what was in it", func(t *testing.T) {
		info, err := os.Stat(kubeconfig)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("mode %o", info.Mode().Perm())
		}
		k, err := clientcmd.LoadFromFile(kubeconfig)
		if err != nil {
			t.Fatal(err)
		}
		if k.CurrentContext != "argosy" || k.Contexts["karmada-apiserver"] == nil || k.Contexts["mine"] == nil ||
			k.AuthInfos["me"].Token != "abc" {
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
		kit.Eventually(t, "the controllers run", func() string {
			select {
			case <-h.controllers:
				return ""
			default:
				return "not yet"
			}
		})
	})
	t.Run("strangers see health and nothing else", func(t *testing.T) {
		anonymous := rest.AnonymousClientConfig(config)
		stranger := kubernetes.NewForConfigOrDie(anonymous)
		if _, err := stranger.RESTClient().Get().AbsPath("/readyz").DoRaw(t.Context()); err != nil {
			t.Errorf("readiness: %v", err)
		}
		for _, path := range []string{"/metrics", convertPath, "/api/v1/secrets", "/apis/work.karmada.io/v1alpha1/works",
			"/debug/pprof/heap"} {
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
		for _, metric := range []string{"apiserver_request_total", "etcd_server_has_leader 1", "controller_runtime_",
			"process_resident_memory_bytes", "karmada_scheduler_schedule_attempts_total{"} {
			if !strings.Contains(string(body), metric) {
				t.Errorf("no %s", metric)
			}
		}
		if n := strings.Count(string(body), "\nprocess_resident_memory_bytes "); n != 1 {
			t.Errorf("the process's memory is reported: %d times", n)
		}
	})
	t.Run("a kind is served in all of its versions", func(t *testing.T) {
		d, err := dynamic.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		stored := schema.GroupVersionResource{Group: "work.karmada.io", Version: "v1alpha2",
			Resource: "clusterresourcebindings"}
		binding := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "work.karmada.io/v1alpha2", "kind": "ClusterResourceBinding",
			"metadata": map[string]any{"name": "converted"},
			"spec":     map[string]any{"resource": map[string]any{"apiVersion": "v1", "kind": "Node", "name": "n"}},
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
}

// The next replica works when the loops of the one before have ended, and not earlier.
func TestReplicasTakeTurns(t *testing.T) {
	shared := useSharedHub(t)
	client := kubernetes.NewForConfigOrDie(shared.Config())
	var working atomic.Int32
	began, ending, end := make(chan string, 2), make(chan struct{}, 2), make(chan struct{})
	replica := func(name string) (stop func()) {
		h := &Hub{config: DefaultConfig(), server: shared.server, fatal: make(chan error, 1), alive: newAlive()}
		h.config.Etcd.Servers = []string{"http://shared"}
		h.config.Components = []string{"controllers"}
		h.parts.Controllers = func(ctx context.Context, _ Deps) error {
			if working.Add(1) > 1 {
				t.Error("two replicas work at once")
			}
			began <- name
			<-ctx.Done()
			ending <- struct{}{}
			<-end
			working.Add(-1)
			return nil
		}
		stop, err := h.startLoops(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return stop
	}
	holder := func() string {
		t.Helper()
		lease, err := client.CoordinationV1().Leases(systemNamespace).Get(t.Context(), leaseName, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return ptr.Deref(lease.Spec.HolderIdentity, "")
	}
	stopFirst := replica("first")
	if name := <-began; name != "first" {
		t.Fatalf("%s works", name)
	}
	first := holder()
	stopSecond := replica("second")
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		stopFirst()
	}()
	<-ending
	if now := holder(); now != first {
		t.Errorf("%q has the lease while the loops of %q are ending", now, first)
	}
	close(end)
	<-stopped
	if name := <-began; name != "second" {
		t.Fatalf("%s works", name)
	}
	stopSecond()
	if working.Load() != 0 {
		t.Error("stopped loops go on")
	}
}

// The error names the loop and its reason. An open watch does not keep the hub from stopping.
func TestFailedLoopEndsTheHub(t *testing.T) {
	c := testConfig(t)
	c.Components = []string{"*", "-controller-manager"}
	var client *kubernetes.Clientset
	err := Run(t.Context(), c, Parts{Controllers: func(context.Context, Deps) error {
		client, _ = adminClient(t, AdminKubeconfig(c.DataDir))
		watch, err := client.CoreV1().ConfigMaps("").Watch(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		t.Cleanup(watch.Stop)
		return io.ErrUnexpectedEOF
	}}, io.Discard)
	if err == nil || err.Error() != "controllers stopped: unexpected EOF" {
		t.Errorf("the hub ended with %v", err)
	}
	if _, err := client.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}); err == nil {
		t.Error("it still answers")
	}
	// The data folder is free again.
	if release, err := claim(c.DataDir); err != nil {
		t.Error(err)
	} else {
		release()
	}
}
