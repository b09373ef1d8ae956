package apiserver_test

import (
	"context"
	"fmt"
	"net"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/argosy-io/argosy/internal/server/embed/apiserver"
	"github.com/argosy-io/argosy/internal/server/embed/controllermanager"
	"github.com/argosy-io/argosy/internal/server/embed/etcd"
	"github.com/argosy-io/argosy/internal/server/pki"
)

// controlPlane starts etcd and an API server for the length of a test.
func controlPlane(t testing.TB) (*apiserver.Server, pki.Files, *etcd.Server) {
	t.Helper()
	files, _, err := pki.Ensure(t.TempDir(), []string{"127.0.0.1", "localhost"}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	store, err := etcd.Start(t.Context(), etcd.Options{Dir: t.TempDir(), UnsafeNoFsync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Stop)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server, err := apiserver.Start(context.Background(), apiserver.Options{
		EtcdServers:     []string{store.Endpoint},
		Etcd:            store.Client,
		Listener:        listener,
		BindAddress:     "127.0.0.1",
		Port:            listener.Addr().(*net.TCPAddr).Port,
		ServingCertFile: files.Serving, ServingKeyFile: files.ServingKey,
		ClientCAFile:          files.ClusterCA,
		ServiceAccountKeyFile: files.ServiceAccountKey, ServiceAccountIssuer: "https://kubernetes.default.svc",
		RequestHeaderCAFile: files.FrontProxyCA, ProxyClientCertFile: files.FrontProxy,
		ProxyClientKeyFile: files.FrontProxyKey,
		DisabledAdmission:  []string{"ServiceAccount"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	if err := server.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	return server, files, store
}

// overBoth are clients over both ways into the server.
func overBoth(t testing.TB, server *apiserver.Server) map[string]*kubernetes.Clientset {
	t.Helper()
	clients := map[string]*kubernetes.Clientset{}
	for way, config := range map[string]*rest.Config{"memory": server.Loopback, "tls": server.LoopbackTLS} {
		config = rest.CopyConfig(config)
		config.QPS = -1
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		clients[way] = client
	}
	return clients
}

// The cost of a write over either way, CPU of both ends included.
func BenchmarkCreate(b *testing.B) {
	server, _, _ := controlPlane(b)
	for way, client := range overBoth(b, server) {
		b.Run(way, func(b *testing.B) {
			var before, after syscall.Rusage
			if err := syscall.Getrusage(syscall.RUSAGE_SELF, &before); err != nil {
				b.Fatal(err)
			}
			for range b.N {
				_, err := client.CoreV1().ConfigMaps("default").Create(b.Context(), &corev1.ConfigMap{
					ObjectMeta: metav1.ObjectMeta{GenerateName: way + "-"}, Data: map[string]string{"key": "value"}},
					metav1.CreateOptions{})
				if err != nil {
					b.Fatal(err)
				}
			}
			if err := syscall.Getrusage(syscall.RUSAGE_SELF, &after); err != nil {
				b.Fatal(err)
			}
			used := time.Duration(after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano())
			b.ReportMetric(float64(used.Microseconds())/float64(b.N), "cpu-µs/op")
		})
	}
}

// A control plane in one process: what is written is watched, what is deleted takes its dependents along.
func TestAControlPlaneInOneProcess(t *testing.T) {
	ctx := t.Context()
	server, files, store := controlPlane(t)
	loops, stopLoops := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		ended <- controllermanager.Run(loops, controllermanager.Options{
			Config: server.Loopback, Controllers: controllermanager.Hub,
			ServiceAccountKeyFile: files.ServiceAccountKey, RootCAFile: files.ClusterCA,
			ClusterSigningCertFile: files.ClusterCA, ClusterSigningKeyFile: files.ClusterCAKey,
		})
	}()

	for name, client := range overBoth(t, server) {
		t.Run("watch, own and collect over "+name, func(t *testing.T) {
			maps := client.CoreV1().ConfigMaps("default")
			watch, err := maps.Watch(ctx, metav1.ListOptions{LabelSelector: "over=" + name})
			if err != nil {
				t.Fatal(err)
			}
			defer watch.Stop()
			labels := map[string]string{"over": name}
			owner, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owner-" + name,
				Labels: labels}}, metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			_, err = maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owned-" + name, Labels: labels,
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID}}}},
				metav1.CreateOptions{})
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
	t.Run("what is kept without a connection",
		func(t *testing.T) { keptWithoutAConnection(ctx, t, overBoth(t, server)["tls"], store) })
	stopLoops()
	if err := <-ended; err != nil {
		t.Fatalf("the loops ended with: %v", err)
	}
}

// keptWithoutAConnection is there for who has one, and the store says no in the words that the server understands.
func keptWithoutAConnection(ctx context.Context, t *testing.T, client kubernetes.Interface, store *etcd.Server) {
	connected, err := clientv3.New(clientv3.Config{Endpoints: []string{store.Endpoint}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	defer connected.Close()
	events := client.CoreV1().Events("default") // which have no cache before the store
	create := func(name string) error {
		_, err := events.Create(ctx, &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: name},
			InvolvedObject: corev1.ObjectReference{Namespace: "default", Name: "x"}}, metav1.CreateOptions{})
		return err
	}
	for i := range 5 {
		if err := create(fmt.Sprintf("event-%d", i)); err != nil {
			t.Fatal(err)
		}
	}
	stored, err := connected.Get(ctx, "/registry/events/default/event-", clientv3.WithPrefix())
	if err != nil || len(stored.Kvs) != 5 || stored.Kvs[0].Lease == 0 {
		t.Fatalf("the store has %v, %v, want 5 events with their time to live", stored, err)
	}
	seen := map[string]bool{}
	page := metav1.ListOptions{Limit: 2}
	for first := true; first || page.Continue != ""; first = false {
		list, err := events.List(ctx, page)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list.Items {
			seen[e.Name] = true
		}
		page.Continue = list.Continue
	}
	if len(seen) < 5 {
		t.Errorf("its pages have %v", seen)
	}

	list, err := events.List(ctx, metav1.ListOptions{Limit: 2})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"later", "latest"} {
		if err := create(name); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := connected.Compact(ctx, store.Revision()); err != nil {
		t.Fatal(err)
	}
	if _, err := events.List(ctx, metav1.ListOptions{Limit: 2, Continue: list.Continue}); !apierrors.IsResourceExpired(
		err) {
		t.Errorf("a page of what was compacted is answered with %v, want that it expired", err)
	}
	old, err := events.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err == nil {
		defer old.Stop()
		e := <-old.ResultChan()
		err = apierrors.FromObject(e.Object)
	}
	if !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
		t.Errorf("a watch from what was compacted says %v, want that it is gone", err)
	}

	one, err := events.Get(ctx, "later", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	one.Message = "first"
	if _, err := events.Update(ctx, one, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := events.Update(ctx, one, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("a write on an old version is answered with %v, want a conflict", err)
	}
	if err := create("later"); !apierrors.IsAlreadyExists(err) {
		t.Errorf("a second of that name is answered with %v", err)
	}
}
