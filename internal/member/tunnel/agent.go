package tunnel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
)

// Agent keeps a tunnel open to each replica of the hub. It is a manager.Runnable, which the elected agent runs.
type Agent struct {
	// Cluster is the name of the cluster on the hub, and Hub the URL of the hub.
	Cluster, Hub string
	// Transport sends requests to the hub with HTTP/1.1 and the current certificate of the agent.
	Transport http.RoundTripper
	// Member reaches the API server of the cluster. Requests of the hub are sent with its credentials.
	Member *rest.Config
	Log    logr.Logger
}

const (
	// firstRetry and lastRetry are the first and the longest interval between attempts to connect to a replica of the hub.
	firstRetry, lastRetry = time.Second, 30 * time.Second
	// idleTimeout is how long the agent keeps a connection of the hub without a request. The hub closes them earlier.
	idleTimeout = 2 * time.Minute
	// receiveBuffer bounds what the agent buffers for all streams of a tunnel, in bytes: the maximum of net/http.
	// uploadBuffer bounds it for one stream, so that 63 streams that the member does not read cannot block the others.
	receiveBuffer, uploadBuffer = 4<<20 - 1, 64 << 10
	// refusalLimit bounds what the agent reads of an error of the hub, in bytes.
	refusalLimit = 1 << 10
)

// Start implements manager.Runnable.
func (a *Agent) Start(ctx context.Context) error {
	handler, err := newHandler(a.Cluster, a.Member)
	if err != nil {
		return err
	}
	conns := newConnListener()
	proxy := &http.Server{Handler: handler, ReadHeaderTimeout: idleTimeout, IdleTimeout: idleTimeout,
		ErrorLog: log.New(io.Discard, "", 0)} // The hub reports its requests.
	go func() { _ = proxy.Serve(conns) }() // It ends with an error when ctx does.
	defer proxy.Close()
	defer conns.Close()

	var serving sync.WaitGroup
	defer serving.Wait()
	var mu sync.Mutex
	connected := []string{} // the replica of each open tunnel
	ended := make(chan struct{}, 1)
	retry := wait.Backoff{Duration: firstRetry, Factor: 2, Jitter: 0.5, Steps: 6, Cap: lastRetry}
	backoff, logged := retry, ""
	for ctx.Err() == nil {
		mu.Lock()
		known := slices.Clone(connected)
		mu.Unlock()
		found, err := a.connect(ctx, known)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			if text := err.Error(); text != logged {
				logged = text
				a.Log.Info("the hub cannot send requests to this cluster yet; the agent connects again", "error", text)
			}
		case found.conn != nil:
			// Where there is a new replica, there may be more: start to look for them at short intervals.
			backoff, logged = retry, ""
			a.Log.Info("the hub can send requests to this cluster", "replica", found.id)
			mu.Lock()
			connected = append(connected, found.id)
			mu.Unlock()
			serving.Go(func() {
				serve(ctx, found.conn, conns)
				mu.Lock()
				if i := slices.Index(connected, found.id); i >= 0 {
					connected = slices.Delete(connected, i, i+1)
				}
				mu.Unlock()
				select {
				case ended <- struct{}{}:
				default:
				}
			})
		}
		var next <-chan time.Time
		if err != nil || found.replicated {
			next = time.After(backoff.Step())
		}
		select {
		case <-ctx.Done():
		case <-next:
		case <-ended:
			a.Log.Info("a connection for requests of the hub has ended; the agent connects again")
			backoff = retry
			select { // Do not connect in a loop to a hub that ends each connection at once.
			case <-ctx.Done():
			case <-time.After(backoff.Step()):
			}
		}
	}
	return nil
}

// replica is the replica of the hub that answered an attempt to connect.
type replica struct {
	id string
	// replicated is true if the hub may have other replicas.
	replicated bool
	// conn is the new tunnel; nil if the agent is connected to this replica already.
	conn io.ReadWriteCloser
}

// connect opens a tunnel to the replica of the hub that answers, unless that is among the connected ones.
func (a *Agent) connect(ctx context.Context, connected []string) (replica, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, a.Hub+Path(a.Cluster), http.NoBody)
	if err != nil {
		return replica{}, err
	}
	r.Header.Set("Connection", "Upgrade")
	r.Header.Set("Upgrade", Protocol)
	r.Header.Set(connectedHeader, strings.Join(connected, ","))
	response, err := a.Transport.RoundTrip(r)
	if err != nil {
		return replica{}, err
	}
	found := replica{id: response.Header.Get(replicaHeader), replicated: response.Header.Get(replicatedHeader) == "true"}
	switch response.StatusCode {
	case http.StatusSwitchingProtocols:
		conn, ok := response.Body.(io.ReadWriteCloser)
		if !ok {
			return replica{}, errors.New("the connection cannot be written")
		}
		found.conn = conn
		return found, nil
	case http.StatusConflict:
		return found, response.Body.Close()
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, refusalLimit))
	if err != nil {
		return replica{}, err
	}
	return replica{}, fmt.Errorf("%s: %s", response.Status, strings.TrimSpace(string(text)))
}

// serve passes each stream of a tunnel to a listener as a connection, until the tunnel or ctx ends.
func serve(ctx context.Context, tunnel io.ReadWriteCloser, to *connListener) {
	listener := newConnListener()
	limits := http2Settings()
	limits.MaxReceiveBufferPerConnection, limits.MaxReceiveBufferPerStream = receiveBuffer, uploadBuffer
	server := &http.Server{Protocols: unencryptedHTTP2(), HTTP2: limits, ErrorLog: log.New(io.Discard, "", 0),
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			near, far := net.Pipe()
			defer far.Close()
			if !to.offer(near) {
				http.Error(w, "the agent ends", http.StatusServiceUnavailable)
				return
			}
			w.WriteHeader(http.StatusOK)
			out := &flushed{w, http.NewResponseController(w)}
			if out.Flush() != nil {
				return
			}
			go func() { defer far.Close(); _, _ = io.Copy(far, r.Body) }() // An error ends the connection.
			_, _ = io.Copy(out, far)                                       // An error ends the connection.
		})}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() }) // The agent ends.
	defer stop()
	conn := &watchedConn{Conn: streamConn{tunnel}, closed: sync.OnceFunc(func() { _ = listener.Close() })}
	go listener.offer(conn)
	_ = server.Serve(listener) // It ends when the tunnel does.
	_, _ = conn.Close(), server.Close()
}

// flushed is a writer of a response that sends each write at once.
type flushed struct {
	io.Writer
	*http.ResponseController
}

// Write implements io.Writer.
func (f *flushed) Write(p []byte) (int, error) {
	n, err := f.Writer.Write(p)
	if err == nil {
		err = f.Flush()
	}
	return n, err
}

// streamConn is a net.Conn without deadlines.
type streamConn struct{ io.ReadWriteCloser }

func (streamConn) LocalAddr() net.Addr              { return address }
func (streamConn) RemoteAddr() net.Addr             { return address }
func (streamConn) SetDeadline(time.Time) error      { return nil }
func (streamConn) SetReadDeadline(time.Time) error  { return nil }
func (streamConn) SetWriteDeadline(time.Time) error { return nil }

// address is the address of both ends of a stream, and of the listeners.
var address = &net.UnixAddr{Name: "tunnel", Net: "tunnel"}

// connListener is a net.Listener that returns the connections that are passed to offer.
type connListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newConnListener() *connListener {
	return &connListener{conns: make(chan net.Conn), closed: make(chan struct{})}
}

// offer waits until Accept returns the connection. It returns false if the listener is closed.
func (l *connListener) offer(conn net.Conn) bool {
	select {
	case l.conns <- conn:
		return true
	case <-l.closed:
		return false
	}
}

func (l *connListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *connListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *connListener) Addr() net.Addr { return address }

// newHandler returns a proxy to the API server of a member, with the credentials of the configuration. It passes the
// impersonation headers of requests on.
func newHandler(cluster string, config *rest.Config) (http.Handler, error) {
	config = rest.CopyConfig(config)
	config.DisableCompression = true // The caller chooses the encoding.
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("address of the API server of the cluster: %w", err)
	}
	plain, err := rest.TransportFor(config)
	if err != nil {
		return nil, fmt.Errorf("create a client of the cluster: %w", err)
	}
	upgrading := rest.CopyConfig(config)
	upgrading.NextProtos = []string{"http/1.1"} // Only this version can be upgraded.
	upgrade, err := rest.TransportFor(upgrading)
	if err != nil {
		return nil, fmt.Errorf("create a client of the cluster: %w", err)
	}
	newProxy := func(transport http.RoundTripper) http.Handler {
		return &httputil.ReverseProxy{Transport: transport, FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0),
			Rewrite: func(r *httputil.ProxyRequest) { redirect(r, base) },
			ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
				status := apierrors.NewServiceUnavailable(fmt.Sprintf("the agent of cluster %q cannot reach its API server: %v",
					cluster, err)).Status()
				status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(int(status.Code))
				_ = json.NewEncoder(w).Encode(status) // It fails only if the hub is gone.
			}}
	}
	plainProxy, upgradeProxy := newProxy(plain), newProxy(upgrade)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "" {
			upgradeProxy.ServeHTTP(w, r)
			return
		}
		plainProxy.ServeHTTP(w, r)
	}), nil
}

// redirect changes a request to one to the API server at base, and removes its credentials.
func redirect(r *httputil.ProxyRequest, base *url.URL) {
	target := *base
	target.Path = strings.TrimSuffix(base.Path, "/") + r.In.URL.Path
	target.RawPath = strings.TrimSuffix(base.EscapedPath(), "/") + r.In.URL.EscapedPath()
	target.RawQuery = r.In.URL.RawQuery
	r.Out.URL, r.Out.Host = &target, ""
	r.Out.Header.Del("Authorization")
}
