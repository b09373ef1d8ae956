// Package tunnel carries requests of the hub to a member that the hub cannot reach. The agent of the member opens one
// connection to the hub. On it, the hub is the client of HTTP/2, and each stream is a connection to a proxy in the
// agent, which sends requests to the API server of the member with the agent's credentials. The hub has none.
package tunnel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/cluster/klusterlet"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
	"github.com/argosy-io/argosy/internal/core/cluster/pull"
)

const (
	// Protocol is the value of the header Upgrade of an agent's request.
	Protocol = "argosy-tunnel"
	// Subresource of Clusters that agents create. RBAC allows each agent that of its own Cluster.
	Subresource = pull.TunnelSubresource

	// replicaHeader identifies the replica of the hub in its responses.
	replicaHeader = "Argosy-Replica"
	// replicatedHeader is true in responses of a hub that may have several replicas. An agent connects to all of them.
	replicatedHeader = "Argosy-Replicated"
	// connectedHeader lists the replicas that an agent is connected to.
	connectedHeader = "Argosy-Connected"

	// dialTimeout bounds how long an agent may take to accept a connection.
	dialTimeout = 5 * time.Second
	// Each end sends a ping after pingAfter without a frame, and closes the tunnel pingTimeout later without an answer.
	pingAfter, pingTimeout = 15 * time.Second, 10 * time.Second
	// streamBuffer bounds what each end buffers for one stream whose reader is slow, in bytes.
	streamBuffer = 256 << 10
	// maxStreams bounds the concurrent streams of one tunnel: a script that opens many, such as for logs, must not use all
	// memory of the hub.
	maxStreams = 1000
)

// Path returns the URL path at which the agent of a cluster connects.
func Path(cluster string) string {
	return "/apis/cluster.karmada.io/v1alpha1/clusters/" + cluster + "/" + Subresource
}

// ErrNotConnected means that the agent of a cluster has no tunnel to this replica of the hub.
var ErrNotConnected = errors.New("its agent is not connected to this hub for requests")

// NotConnected returns ErrNotConnected for a cluster, with what to do.
func NotConnected(cluster *clusterv1alpha1.Cluster) error {
	if klusterlet.Manages(cluster) {
		return fmt.Errorf("a klusterlet acts in cluster %q, and %w: register one beside the klusterlet with `argosy token "+
			"create --cluster-name %[1]s --print-register-command`, or see its log", cluster.Name, ErrNotConnected)
	}
	return fmt.Errorf("cluster %q is in Pull mode, and %w: check that the agent runs in the cluster with --tunnel, and "+
		"see its log", cluster.Name, ErrNotConnected)
}

// Tunnels are the tunnels of agents to one replica of a hub. A nil *Tunnels has none.
type Tunnels struct {
	// replica identifies this replica of the hub. replicated is true if there may be others.
	replica    string
	replicated bool

	mu     sync.Mutex
	closed bool
	// open has at most one tunnel for each name of a cluster.
	open map[string]*tunnel
	// changed is called when an agent has connected, and when its tunnel has ended; nil for none.
	changed func(cluster string, connected bool)
}

// tunnel is the connection of an agent.
type tunnel struct {
	// uid is the UID of the Cluster for which the agent connected. A later Cluster can have the same name.
	uid types.UID
	// version is the resource version of that Cluster when the agent connected.
	version string
	conn    *http.ClientConn
}

// New returns tunnels without a connection. replicated means that other processes serve the same hub.
func New(replicated bool) *Tunnels {
	return &Tunnels{replica: string(uuid.NewUUID()), replicated: replicated, open: map[string]*tunnel{}}
}

// OnChange sets the function that is called when the agent of a cluster has connected, and when its last tunnel has
// ended. It must not block.
func (t *Tunnels) OnChange(f func(cluster string, connected bool)) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.changed = f
}

// Connected reports whether the agent of a cluster is connected, by the name and UID of the Cluster.
func (t *Tunnels) Connected(cluster string, uid types.UID) bool {
	return t != nil && t.openTunnel(cluster, uid) != nil
}

// EndFormer ends the tunnel of a deleted Cluster with the same name, if there is one: its agent then connects for this
// Cluster. A tunnel for a newer Cluster stays: this one may come from a cache that is behind.
func (t *Tunnels) EndFormer(cluster *clusterv1alpha1.Cluster) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	open := t.open[cluster.Name]
	if open == nil || open.uid == cluster.UID {
		return
	}
	// All versions of a Cluster are lower than those of the next one with its name.
	order, err := resourceversion.CompareResourceVersion(cluster.ResourceVersion, open.version)
	if err == nil && order < 0 {
		return
	}
	_ = open.conn.Close() // It is not used any more.
}

// openTunnel returns the tunnel of a cluster; nil if there is none.
func (t *Tunnels) openTunnel(cluster string, uid types.UID) *tunnel {
	t.mu.Lock()
	defer t.mu.Unlock()
	if open := t.open[cluster]; open != nil && open.uid == uid {
		return open
	}
	return nil
}

// Config returns the client configuration for a cluster over its tunnel. It is valid as long as the Cluster exists;
// requests fail while the agent is not connected. The member acts for the user in the impersonation headers, or for the
// agent itself.
func (t *Tunnels) Config(cluster *clusterv1alpha1.Cluster) *rest.Config {
	name, uid := cluster.Name, cluster.UID
	return &rest.Config{Host: "http://" + name, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		open := t.openTunnel(name, uid)
		if open == nil {
			return nil, ErrNotConnected
		}
		return open.dial(ctx)
	}}
}

// Close ends all tunnels, and accepts no other.
func (t *Tunnels) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	for _, open := range t.open {
		_ = open.conn.Close() // It is not used any more.
	}
}

// Handler accepts tunnels of agents at Path(cluster), and leaves all else to next. It expects the request's info and
// user in its context, and that they are authorized.
func (t *Tunnels) Handler(hub func() (client.Reader, error), next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, ok := request.RequestInfoFrom(r.Context())
		if !ok || !isTunnel(r, info) {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set(replicaHeader, t.replica)
		w.Header().Set(replicatedHeader, strconv.FormatBool(t.replicated))
		cluster, code, err := t.admit(r, info.Name, hub)
		if err != nil {
			http.Error(w, err.Error(), code)
			return
		}
		if err := t.serve(r.Context(), w, cluster); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
}

// isTunnel reports whether a request is for Path of a cluster.
func isTunnel(r *http.Request, info *request.RequestInfo) bool {
	return info.IsResourceRequest && info.APIGroup == clusterv1alpha1.GroupVersion.Group &&
		info.Resource == "clusters" && info.Subresource == Subresource && r.URL.Path == Path(info.Name)
}

// Opens reports whether a request opens a tunnel, if its user may. Only such a request lasts as long as the tunnel.
func Opens(r *http.Request, info *request.RequestInfo) bool { return isTunnel(r, info) && upgrades(r) }

func upgrades(r *http.Request) bool {
	return r.Method == http.MethodPost && strings.EqualFold(r.Header.Get("Upgrade"), Protocol)
}

// admit returns the Cluster of an agent that may open a tunnel. Otherwise it returns the status code of the response
// and the reason. It admits only the agent itself, because roles of users may permit all subresources.
func (t *Tunnels) admit(r *http.Request, name string, hub func() (client.Reader, error)) (*clusterv1alpha1.Cluster,
	int, error) {
	caller, ok := request.UserFrom(r.Context())
	if !ok || caller.GetName() != pull.User(name) || !slices.Contains(caller.GetGroups(), pull.Group) {
		return nil, http.StatusForbidden, fmt.Errorf("only the agent of cluster %q can connect the cluster", name)
	}
	if !upgrades(r) {
		return nil, http.StatusBadRequest, fmt.Errorf("connect with POST, and upgrade the connection to %s", Protocol)
	}
	reader, err := hub()
	if err != nil {
		return nil, http.StatusServiceUnavailable, fmt.Errorf("read cluster %q: %w", name, err)
	}
	cluster := &clusterv1alpha1.Cluster{}
	switch err := reader.Get(r.Context(), types.NamespacedName{Name: name}, cluster); {
	case apierrors.IsNotFound(err):
		return nil, http.StatusNotFound, fmt.Errorf("there is no cluster %q", name)
	case err != nil:
		return nil, http.StatusServiceUnavailable, fmt.Errorf("read cluster %q: %w", name, err)
	case !membership.Pulls(cluster):
		return nil, http.StatusForbidden, fmt.Errorf("cluster %q is not in Pull mode", name)
	// The agent may not have noticed that its tunnel ended, or the tunnel may be for a former Cluster.
	case t.Connected(name, cluster.UID) &&
		slices.Contains(strings.Split(r.Header.Get(connectedHeader), ","), t.replica):
		return nil, http.StatusConflict, errors.New("the agent is connected to this replica of the hub already")
	}
	return cluster, 0, nil
}

// serve turns the connection of an agent into a tunnel, and returns when it ends, at the latest with ctx. It ends the
// cluster's former tunnel: an agent connects again only if that failed, and only one agent of a cluster acts.
func (t *Tunnels) serve(ctx context.Context, w http.ResponseWriter, cluster *clusterv1alpha1.Cluster) error {
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return fmt.Errorf("take over the connection of the agent of cluster %q: %w", cluster.Name, err)
	}
	defer conn.Close()
	header := w.Header()
	if _, err := fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n%s: %s\r\n"+
		"%s: %s\r\n\r\n", Protocol, replicaHeader, header.Get(replicaHeader), replicatedHeader,
		header.Get(replicatedHeader)); err != nil || buffered.Reader.Buffered() > 0 || conn.SetDeadline(time.Time{}) != nil {
		return nil // The agent is gone, or does not follow the protocol.
	}
	ended := make(chan struct{})
	watched := &watchedConn{Conn: conn, closed: sync.OnceFunc(func() { close(ended) })}
	defer context.AfterFunc(ctx, func() { _ = watched.Close() })() // a connection that was taken over outlives its request
	transport := &http.Transport{Protocols: unencryptedHTTP2(), HTTP2: http2Settings(),
		DialContext: func(context.Context, string, string) (net.Conn, error) { return watched, nil }}
	opened, err := transport.NewClientConn(context.Background(), "http", cluster.Name+":80")
	if err != nil {
		return nil // The agent is gone.
	}
	defer opened.Close()
	mine := &tunnel{uid: cluster.UID, version: cluster.ResourceVersion, conn: opened}
	t.mu.Lock()
	former, closed, changed := t.open[cluster.Name], t.closed, t.changed
	if !closed {
		t.open[cluster.Name] = mine
	}
	t.mu.Unlock()
	if closed {
		return nil
	}
	if former != nil {
		_ = former.conn.Close() // It is not used any more.
	}
	if changed != nil {
		changed(cluster.Name, true)
	}
	<-ended
	t.mu.Lock()
	last := t.open[cluster.Name] == mine
	if last {
		delete(t.open, cluster.Name)
	}
	t.mu.Unlock()
	if last && changed != nil {
		changed(cluster.Name, false)
	}
	return nil
}

func unencryptedHTTP2() *http.Protocols {
	p := &http.Protocols{}
	p.SetUnencryptedHTTP2(true)
	return p
}

// http2Settings returns the settings of both ends of a tunnel.
func http2Settings() *http.HTTP2Config {
	return &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout, MaxConcurrentStreams: maxStreams,
		MaxReceiveBufferPerStream: streamBuffer, StrictMaxConcurrentRequests: true}
}

// watchedConn is a connection that calls a function when it is closed.
type watchedConn struct {
	net.Conn
	closed func()
}

// Close implements net.Conn.
func (c *watchedConn) Close() error {
	defer c.closed()
	return c.Conn.Close()
}

// dial opens a stream to the proxy of the agent. ctx and dialTimeout bound the dial, not the stream.
func (t *tunnel) dial(ctx context.Context) (net.Conn, error) {
	streaming, end := context.WithCancel(context.Background())
	timeout := time.AfterFunc(dialTimeout, end)
	detach := context.AfterFunc(ctx, end)
	sent, send := io.Pipe()
	r, err := http.NewRequestWithContext(streaming, http.MethodPost, "http://agent/", sent)
	if err != nil {
		end()
		return nil, err
	}
	response, err := t.conn.RoundTrip(r)
	inTime, wanted := timeout.Stop(), detach()
	if !inTime || !wanted || err != nil || response.StatusCode != http.StatusOK {
		end()
		if err == nil {
			_ = response.Body.Close() // The dial is given up.
		}
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case !inTime:
			return nil, fmt.Errorf("its agent did not accept a connection within %s", dialTimeout)
		case err == nil:
			return nil, fmt.Errorf("its agent refused a connection: %s", response.Status)
		}
		return nil, fmt.Errorf("%w: %w", ErrNotConnected, err)
	}
	near, far := net.Pipe()
	finish := sync.OnceFunc(func() {
		end()
		_, _, _, _ = far.Close(), send.Close(), sent.Close(), response.Body.Close() // The connection has ended.
	})
	go func() { defer finish(); _, _ = io.Copy(send, far) }()          // An error ends the connection.
	go func() { defer finish(); _, _ = io.Copy(far, response.Body) }() // An error ends the connection.
	return near, nil
}
