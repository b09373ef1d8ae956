package tunnel_test

import (
	"context"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/cluster/pull"
	"github.com/argosy-io/argosy/internal/member/tunnel"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

// hub is a hub with the cluster eu in Pull mode.
type hub struct {
	store    client.Client
	replicas []*replica
}

// replica is a replica of a hub.
type replica struct {
	tunnels *tunnel.Tunnels
	address string
	// opened counts the tunnels that agents opened.
	opened atomic.Int32
	// end ends the context of the last request.
	end context.CancelFunc
}

func newCluster(uid types.UID) *clusterv1alpha1.Cluster {
	return &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "eu", UID: uid},
		Spec: clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Pull}}
}

func newHub(t *testing.T, replicas int) *hub {
	t.Helper()
	s := runtime.NewScheme()
	if err := clusterv1alpha1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	first := newCluster("first")
	first.ResourceVersion = "1" // so that versions rise as in a real store
	h := &hub{store: fake.NewClientBuilder().WithScheme(s).WithObjects(first).Build()}
	infos := &request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"),
		GrouplessAPIPrefixes: sets.NewString("api")}
	agent := &user.DefaultInfo{Name: pull.User("eu"), Groups: []string{pull.Group}}
	for range replicas {
		r := &replica{tunnels: tunnel.New(true)}
		r.tunnels.OnChange(func(_ string, connected bool) {
			if connected {
				r.opened.Add(1)
			}
		})
		handler := r.tunnels.Handler(func() (client.Reader, error) { return h.store, nil }, http.NotFoundHandler())
		server := membertest.Serve(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			info, err := infos.NewRequestInfo(req)
			if err != nil {
				t.Error(err)
			}
			ctx, end := context.WithCancel(req.Context())
			defer end()
			r.end = end
			handler.ServeHTTP(w, req.WithContext(request.WithUser(request.WithRequestInfo(ctx, info), agent)))
		}))
		t.Cleanup(server.Close)
		t.Cleanup(r.tunnels.Close)
		r.address = strings.TrimPrefix(server.URL, "http://")
		h.replicas = append(h.replicas, r)
	}
	return h
}

// connect runs the agent of eu until the test ends. Its connections go to the replicas in turn, each twice: a load
// balancer may choose a replica again.
func (h *hub) connect(t *testing.T) {
	t.Helper()
	var dials atomic.Int32
	transport := &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			next := int(dials.Add(1)-1) / 2 % len(h.replicas)
			return membertest.Dial(ctx, network, h.replicas[next].address)
		}}
	agent := &tunnel.Agent{Cluster: "eu", Hub: "http://hub.test:80", Transport: transport, Log: logr.Discard(),
		Member: &rest.Config{Host: "http://member.test:80"}}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- agent.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestAgentConnectsToAllReplicasWithinSeconds(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		h := newHub(t, 3)
		h.connect(t)
		membertest.Advance(15 * time.Second)
		for i, r := range h.replicas {
			if !r.tunnels.Connected("eu", "first") {
				t.Errorf("the agent is not connected to replica %d", i)
			}
		}
		membertest.Advance(10 * time.Minute)
		for i, r := range h.replicas {
			if opened := r.opened.Load(); opened != 1 {
				t.Errorf("the agent opened %d tunnels to replica %d, want one", opened, i)
			}
		}
	})
}

// The context ends with the rights of the agent.
func TestTunnelEndsWithItsRequest(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		h := newHub(t, 1)
		h.connect(t)
		membertest.Advance(time.Second)
		only := h.replicas[0]
		if opened := only.opened.Load(); opened != 1 || !only.tunnels.Connected("eu", "first") {
			t.Fatalf("the agent opened %d tunnels", opened)
		}
		only.end()
		membertest.Advance(time.Minute)
		if opened := only.opened.Load(); opened != 2 {
			t.Errorf("the agent opened %d tunnels, want another one after the first ended", opened)
		}
	})
}

// The tunnel of the agent is for the Cluster that was deleted, and the agent does not know that.
func TestAgentOfARecreatedClusterGetsOneNewTunnel(t *testing.T) {
	membertest.Run(t, func(t *testing.T) {
		h := newHub(t, 1)
		h.connect(t)
		membertest.Advance(time.Second)
		only := h.replicas[0]
		if !only.tunnels.Connected("eu", "first") {
			t.Fatal("the agent is not connected")
		}
		if err := h.store.Delete(t.Context(), newCluster("")); err != nil {
			t.Fatal(err)
		}
		second := newCluster("second")
		if err := h.store.Create(t.Context(), second); err != nil {
			t.Fatal(err)
		}
		second.Labels = map[string]string{"changed": "once"}
		if err := h.store.Update(t.Context(), second); err != nil {
			t.Fatal(err)
		}
		membertest.Advance(10 * time.Minute)
		if !only.tunnels.Connected("eu", "second") || only.tunnels.Connected("eu", "first") {
			t.Error("the tunnel is not for the new Cluster")
		}
		if opened := only.opened.Load(); opened != 2 {
			t.Errorf("the agent opened %d tunnels, want one for each Cluster", opened)
		}
		// A cache may still have the former Cluster.
		former := newCluster("first")
		former.ResourceVersion = "1"
		for _, read := range []*clusterv1alpha1.Cluster{second, former} {
			only.tunnels.EndFormer(read)
			membertest.Advance(10 * time.Minute)
			if opened := only.opened.Load(); opened != 2 {
				t.Errorf("after the Cluster %s was read, the agent opened %d tunnels", read.UID, opened)
			}
		}
		next := newCluster("third")
		next.ResourceVersion = "10"
		only.tunnels.EndFormer(next)
		membertest.Advance(10 * time.Minute)
		if opened := only.opened.Load(); opened != 3 {
			t.Errorf("after the next Cluster was read, the agent opened %d tunnels, want one more", opened)
		}
	})
}
