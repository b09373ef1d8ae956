package member

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/dynamic"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/argosy-io/argosy/internal/core/cluster/membership"
)

// Manager is the field manager of everything that the hub writes into a member.
const Manager = "argosy"

// Member is one member cluster. Its methods are safe for concurrent use. Methods with a context send requests, and
// return within the time limit of the options.
type Member struct {
	// Name of the Cluster.
	Name string

	uid types.UID
	// tunneled is true if requests go through the agent of the member.
	tunneled  bool
	o         Options
	handlers  []Handler
	grown     func() // called when the member may have more free capacity
	reach     *reach
	ownership ownership
	// lost is called when another hub takes over the member.
	lost   func()
	ctx    context.Context // ends when the member is forgotten
	cancel context.CancelFunc

	connection atomic.Pointer[connection]
	// token is the current token of requests. A new token needs no new connection, and watches continue.
	token      atomic.Pointer[string]
	load       atomic.Pointer[load]
	scalers    scalers
	brakes     brakes
	endpoints  endpoints
	clusterSet clusterSet
	excesses   excesses
	// hung are the metrics APIs that do not respond, with the time of the next attempt. Servers other than the member's
	// API server provide them, so the member's health does not depend on them.
	hung sync.Map
	// pending are the bytes of responses in transit, stored those of objects in memory. Each counts against Limits.Memory.
	pending, stored atomic.Int64

	mu      sync.Mutex
	watched map[schema.GroupVersionResource]*objects
}

// connection is the connection to a member with one set of credentials.
type connection struct {
	identity [sha256.Size]byte
	config   *rest.Config
	http     *http.Client // with the time limit
	dynamic  dynamic.Interface
	// watching has no time limit, core speaks protobuf and has none either.
	watching dynamic.Interface
	core     *corev1client.CoreV1Client
	metadata metadata.Interface
	apis     apis

	ctx   context.Context // ends when the connection is replaced
	close context.CancelFunc
}

func (m *Member) conn() *connection { return m.connection.Load() }

// connect replaces the connection; watches go on with the new one.
func (m *Member) connect(config *rest.Config, identity [sha256.Size]byte) error {
	config = rest.CopyConfig(config)
	token := config.BearerToken
	m.token.Store(&token)
	config.BearerToken = ""
	config.QPS = -1 // the member protects itself
	config.UserAgent = Manager
	if config.Dial == nil {
		config.Dial = m.o.Dial
	}
	config.Wrap(func(rt http.RoundTripper) http.RoundTripper {
		return Bearer(tenant{wrapping{meter{wrapping{rt}, m}}, m.mayWrite}, &m.token)
	})
	// API server warnings are for the author of a template, who does not read our log.
	config.WarningHandler = rest.NoWarnings{}

	unlimited, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	limited := &http.Client{Transport: bounded{wrapping: wrapping{unlimited.Transport}, timeout: m.o.Timeout}}
	c := &connection{identity: identity, config: config, http: limited}
	if c.dynamic, err = dynamic.NewForConfigAndClient(config, limited); err != nil {
		return err
	}
	if c.metadata, err = metadata.NewForConfigAndClient(metadata.ConfigFor(config), limited); err != nil {
		return err
	}
	if c.watching, err = dynamic.NewForConfigAndClient(config, unlimited); err != nil {
		return err
	}
	protobuf := rest.CopyConfig(config)
	protobuf.ContentType = runtime.ContentTypeProtobuf
	protobuf.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	if c.core, err = corev1client.NewForConfigAndClient(protobuf, unlimited); err != nil {
		return err
	}
	c.ctx, c.close = context.WithCancel(m.ctx)
	context.AfterFunc(c.ctx, func() { utilnet.CloseIdleConnectionsFor(limited.Transport) })

	m.reach.retry() // the new endpoint may respond although the old one did not
	if old := m.connection.Swap(c); old != nil {
		old.close()
	}
	return nil
}

// Bearer returns a transport that adds the current token, if any, to requests. A new token needs no new connection.
func Bearer(next http.RoundTripper, token *atomic.Pointer[string]) http.RoundTripper {
	return bearer{wrapping{next}, token}
}

type bearer struct {
	wrapping
	token *atomic.Pointer[string]
}

func (b bearer) RoundTrip(req *http.Request) (*http.Response, error) {
	if token := b.token.Load(); token != nil && *token != "" {
		req = req.Clone(req.Context())
		req.Header.Set("Authorization", "Bearer "+*token)
	}
	return b.next.RoundTrip(req)
}

// Client speaks to the member in whatever kinds it serves.
func (m *Member) Client() dynamic.Interface { return m.conn().dynamic }

// Config returns a copy of the client configuration of the member, for clients of other kinds. It is valid as long as
// the credentials, so get it again for each use.
func (m *Member) Config() *rest.Config { return rest.CopyConfig(m.conn().config) }

// Probe requests the health of the member, even if it did not respond just before.
func (m *Member) Probe(ctx context.Context) membership.Probe {
	p := m.probe(ctx, "/readyz")
	if p.Code == http.StatusNotFound {
		p = m.probe(ctx, "/healthz")
	}
	return p
}

func (m *Member) probe(ctx context.Context, path string) membership.Probe {
	failed := func(err error) membership.Probe {
		return membership.Probe{Err: cause(err).Error(), Slow: errors.Is(root(err), errNoAnswer), Untrusted: Untrusted(err)}
	}
	resp, err := m.conn().get(trial(ctx), path, nil)
	if err != nil {
		return failed(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 16<<10))
	if err != nil {
		return failed(err)
	}
	return membership.Probe{Code: resp.StatusCode, Body: string(body)}
}

// get sends a plain request below the member's endpoint.
func (c *connection) get(ctx context.Context, path string, header http.Header) (*http.Response, error) {
	base, _, err := rest.DefaultServerUrlFor(c.config)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base.JoinPath(path).String(), nil)
	if err != nil {
		return nil, err
	}
	for key, values := range header {
		req.Header[key] = values
	}
	return c.http.Do(req)
}

// versionLimit is the maximal length of a version, which goes into the status of the Cluster. A member may answer with
// anything.
const versionLimit = 128

// Version returns the member's Kubernetes version, such as v1.36.3.
func (m *Member) Version(ctx context.Context) (string, error) {
	resp, err := m.conn().get(ctx, "/version", http.Header{"Accept": {"application/json"}})
	if err != nil {
		return "", fmt.Errorf("read the version of cluster %q: %w", m.Name, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("read the version of cluster %q: %s", m.Name, resp.Status)
	}
	var v version.Info
	if err := json.NewDecoder(io.LimitReader(resp.Body, 16<<10)).Decode(&v); err != nil {
		return "", fmt.Errorf("read the version of cluster %q: %w", m.Name, err)
	}
	if len(v.GitVersion) > versionLimit {
		return "", fmt.Errorf("read the version of cluster %q: unexpected length of %d characters", m.Name, len(v.GitVersion))
	}
	return v.GitVersion, nil
}
