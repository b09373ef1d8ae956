package apiserver_test

import (
	"context"
	"net"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/argosy-io/argosy/internal/server/embed/apiserver"
	"github.com/argosy-io/argosy/internal/server/embed/controllermanager"
	"github.com/argosy-io/argosy/internal/server/embed/etcd"
	"github.com/argosy-io/argosy/internal/server/pki"
)

// A control plane in one process: what is written is watched, what is deleted takes its dependents along.
func TestAControlPlaneInOneProcess(t *testing.T) {
	begin := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	files, _, err := pki.Ensure(t.TempDir(), []string{"127.0.0.1", "localhost"}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	store, err := etcd.Start(ctx, etcd.Options{Dir: t.TempDir(), UnsafeNoFsync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Stop)
	t.Logf("etcd after %v", time.Since(begin))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server, err := apiserver.Start(context.Background(), apiserver.Options{
		EtcdServers:     []string{store.Endpoint},
		Listener:        listener,
		BindAddress:     "127.0.0.1",
		Port:            listener.Addr().(*net.TCPAddr).Port,
		ServingCertFile: files.Serving, ServingKeyFile: files.ServingKey,
		ClientCAFile:          files.ClusterCA,
		ServiceAccountKeyFile: files.ServiceAccountKey, ServiceAccountIssuer: "https://kubernetes.default.svc",
		RequestHeaderCAFile: files.FrontProxyCA, ProxyClientCertFile: files.FrontProxy, ProxyClientKeyFile: files.FrontProxyKey,
		DisabledAdmission: []string{"ServiceAccount"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	t.Logf("built after %v", time.Since(begin))
	if err := server.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	t.Logf("ready after %v, %d writes", time.Since(begin), store.Revision())

	loops, stopLoops := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		ended <- controllermanager.Run(loops, controllermanager.Options{
			Config: server.Loopback, Controllers: controllermanager.Hub,
			ServiceAccountKeyFile: files.ServiceAccountKey, RootCAFile: files.ClusterCA,
			ClusterSigningCertFile: files.ClusterCA, ClusterSigningKeyFile: files.ClusterCAKey,
		})
	}()

	for name, config := range map[string]*struct{ c *kubernetes.Clientset }{"memory": {kubernetes.NewForConfigOrDie(server.Loopback)}, "tls": {kubernetes.NewForConfigOrDie(server.LoopbackTLS)}} {
		t.Run("watch, own and collect over "+name, func(t *testing.T) {
			maps := config.c.CoreV1().ConfigMaps("default")
			watch, err := maps.Watch(ctx, metav1.ListOptions{LabelSelector: "over=" + name})
			if err != nil {
				t.Fatal(err)
			}
			defer watch.Stop()
			labels := map[string]string{"over": name}
			owner, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owner-" + name, Labels: labels}}, metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			_, err = maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owned-" + name, Labels: labels,
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID}}}}, metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if err := maps.Delete(ctx, owner.Name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			var got []string
			for event := range watch.ResultChan() {
				got = append(got, string(event.Type)+" "+event.Object.(*corev1.ConfigMap).Name)
				if len(got) == 4 {
					break
				}
			}
			want := []string{"ADDED owner-" + name, "ADDED owned-" + name, "DELETED owner-" + name, "DELETED owned-" + name}
			for i := range want {
				if len(got) <= i || got[i] != want[i] {
					t.Fatalf("events %v, want %v", got, want)
				}
			}
		})
	}
	stopLoops()
	if err := <-ended; err != nil {
		t.Fatalf("the loops ended with: %v", err)
	}
	t.Logf("all after %v", time.Since(begin))
}
