// Package proxy passes requests of users to member clusters: the subresource clusters/proxy of Karmada's API. Before
// that, the hub authenticates the caller and authorizes clusters/proxy. The member authorizes the request itself, for
// the user and groups that the hub knows.
package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	"github.com/argosy-io/argosy/internal/apistatus"
	"github.com/argosy-io/argosy/internal/core/cluster/access"
	"github.com/argosy-io/argosy/internal/member"
	"github.com/argosy-io/argosy/internal/member/acting"
	"github.com/argosy-io/argosy/internal/member/tunnel"
)

const (
	prefix = "/apis/cluster.karmada.io/v1alpha1/clusters/"
	suffix = "/proxy"
	// dialTimeout bounds how long a member may take to accept a connection.
	dialTimeout = 5 * time.Second
)

// Path returns the URL path at which the hub serves the API of a member.
func Path(cluster string) string { return prefix + cluster + suffix }

// Config returns the configuration of a client of a member through the hub's proxy, from that of the hub.
func Config(hub *rest.Config, cluster string) *rest.Config {
	config := rest.CopyConfig(hub)
	config.Host = strings.TrimSuffix(config.Host, "/") + Path(cluster)
	return config
}

// HubReader returns a client for Clusters and their secrets, with the hub's own permissions.
type HubReader func() (client.Reader, error)

// Options of the proxy.
type Options struct {
	Hub HubReader
	// Grants returns the users who act under their own name in members.
	Grants acting.Source
	// Identity returns the identity of the hub, for its own writes in members; nil for none.
	Identity func(context.Context) (string, error)
	// Requests bounds the concurrent requests, including streams. One user, and one member, can have at most half of them;
	// one user in one member a quarter. 0 is DefaultRequests.
	Requests int
	// Tunnels reach members in Pull mode; nil for none.
	Tunnels *tunnel.Tunnels
}

// Handler answers GET, POST and all other methods, streams and upgraded connections among them, at
// Path(cluster) + path of the member's API. It leaves all else to next, and errors of its own are a metav1.Status. It
// expects the request's info and user in its context, and that they are authorized.
func Handler(o Options, next http.Handler) http.Handler { return New(o).Handler(next) }

// New returns a proxy without connections.
func New(o Options) *Proxy {
	return &Proxy{Options: o, ways: map[string]*way{}, lets: map[string]lets{}, places: newPlaces(o.Requests)}
}

// Handler is the function Handler, with the connections and limits of p.
func (p *Proxy) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, ok := request.RequestInfoFrom(r.Context())
		// Serve exactly the path that was authorized: a path with a namespace, for example, is a different one.
		if !ok || !info.IsResourceRequest || info.APIGroup != clusterv1alpha1.GroupVersion.Group ||
			info.Resource != "clusters" ||
			info.Subresource != "proxy" || !strings.HasPrefix(r.URL.Path, Path(info.Name)) {
			next.ServeHTTP(w, r)
			return
		}
		if err := p.pass(w, r, info.Name); err != nil {
			apistatus.Write(w, err)
		}
	})
}

// Proxy caches connections to members, and bounds the requests of each user to them.
type Proxy struct {
	Options
	places *places

	self atomic.Pointer[string]

	mu   sync.Mutex
	ways map[string]*way
	lets map[string]lets
}

// way is the connection to a member.
type way struct {
	identity any // identifies the Cluster and its secret, without the token
	base     *url.URL
	// token is the current token of the hub.
	token atomic.Pointer[string]
	// place is where the hub sends requests to the member, for errors, such as "at 10.0.0.1:6443".
	place string
	// bare are transports without credentials, own those with the hub's.
	bare, own transports
	// hub is a client of the member with the hub's identity; nil if the agent of the member sends the requests. An agent
	// may impersonate any user, so it needs no role for that.
	hub dynamic.Interface

	// writing is a lock for writes of the member's role, so that concurrent requests of one user write once.
	writing chan struct{}

	mu sync.Mutex
	knownRole
}

// transports of one way.
type transports struct {
	plain http.RoundTripper
	// upgrade speaks HTTP/1.1, the only version that can be upgraded.
	upgrade http.RoundTripper
}

func newTransports(config *rest.Config) (t transports, err error) {
	if t.plain, err = rest.TransportFor(config); err != nil {
		return t, err
	}
	config = rest.CopyConfig(config)
	config.NextProtos = []string{"http/1.1"}
	t.upgrade, err = rest.TransportFor(config)
	return t, err
}

// route is how a request of a caller reaches a member.
type route struct {
	cluster string
	id      access.Identity
	way     *way
	// token is that of the account which impersonates; empty if the agent adds its own.
	token string
	// leave ends the request.
	leave func()
}

// route returns how the caller reaches the member of that name. The caller of route calls leave. The error is an API
// error.
func (p *Proxy) route(ctx context.Context, caller user.Info, name string) (_ *route, err error) {
	cluster, err := p.cluster(ctx, name)
	if err != nil {
		return nil, err
	}
	id, allowed, err := p.identify(ctx, cluster, caller)
	if err != nil {
		return nil, err
	}
	to := &route{cluster: name, id: id, leave: func() {}}
	if !id.Hub { // administrators are not limited, as in API Priority and Fairness
		if to.leave, err = p.places.take(caller.GetName(), name); err != nil {
			return nil, err
		}
	}
	if to.way, to.token, err = p.reach(ctx, cluster, id); err != nil {
		to.leave()
		return nil, err
	}
	if !id.Hub && to.way.hub != nil {
		p.allowImpersonation(ctx, to.way, allowed, id, to.token)
	}
	return to, nil
}

// address returns the address of a path of the member's API, with its query.
func (r *route) address(path *url.URL) *url.URL {
	target := *r.way.base
	target.Path = strings.TrimSuffix(r.way.base.Path, "/") + path.Path
	target.RawPath = strings.TrimSuffix(r.way.base.EscapedPath(), "/") + path.RawPath
	target.RawQuery = path.RawQuery
	return &target
}

// transports are those for the identity of the request.
func (r *route) transports() transports {
	if r.id.Hub {
		return r.way.own
	}
	return r.way.bare
}

// failure is the API error for a request that failed with err.
func (r *route) failure(err error) error {
	if misled := (*misleadingError)(nil); errors.As(err, &misled) {
		return badGateway("cluster %q %s: %v", r.cluster, r.way.place, misled.error)
	}
	if errors.Is(err, errRefused) {
		return unavailable("cluster %q rejects %s", r.cluster, r.way.credentials(r.id))
	}
	return silent("cluster %q is not reachable %s: %.1000v; `argosy why cluster %s` shows since when", r.cluster,
		r.way.place, err, r.cluster)
}

// pass answers the request, or explains why it cannot be passed on.
func (p *Proxy) pass(w http.ResponseWriter, r *http.Request, name string) error {
	path, err := remainder(r.URL, name)
	if err != nil {
		return err
	}
	caller, ok := request.UserFrom(r.Context())
	if !ok || caller.GetName() == "" {
		return apierrors.NewInternalError(fmt.Errorf("cluster %q: the request has no user", name))
	}
	to, err := p.route(r.Context(), caller, name)
	if err != nil {
		return err
	}
	defer to.leave()
	protocol, err := upgrade(r)
	if err != nil {
		return err
	}
	transport := to.transports().plain
	if protocol != "" {
		transport = to.transports().upgrade
	}
	(&httputil.ReverseProxy{
		Transport: final{transport},
		ErrorLog:  log.New(io.Discard, "", 0), // the caller gets the error, or is gone
		// Hop-by-hop headers are removed before: a caller cannot remove ours by naming them in Connection.
		Rewrite: func(pr *httputil.ProxyRequest) {
			// Some servers treat trailers as headers, and nothing checks them.
			pr.Out.URL, pr.Out.Host, pr.Out.Trailer = to.address(path), "", nil
			actAs(pr.Out.Header, to.id, to.token)
		},
		ModifyResponse: func(resp *http.Response) error { return answer(resp, protocol != "") },
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			apistatus.Write(w, to.failure(err))
		},
	}).ServeHTTP(w, r)
	return nil
}

// Get sends a GET for JSON to a member as the caller, who must be authorized for get of clusters/proxy, and calls read
// with the response of the member, which may have any status. The error is that of read, or an API error.
func (p *Proxy) Get(ctx context.Context, caller user.Info, cluster string, path *url.URL,
	read func(*http.Response) error) error {
	to, err := p.route(ctx, caller, cluster)
	if err != nil {
		return err
	}
	defer to.leave()
	if climbs(path.Path) {
		return apierrors.NewBadRequest(fmt.Sprintf("cluster %q: the path %q must not contain . or ..", cluster, path.Path))
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, to.address(path).String(), nil)
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	req.URL = to.address(path) // as it is, also if it could be written otherwise
	req.Header.Set("Accept", "application/json")
	actAs(req.Header, to.id, to.token)
	resp, err := final{to.transports().plain}.RoundTrip(req)
	if err != nil {
		return to.failure(err)
	}
	defer resp.Body.Close()
	if err := answer(resp, false); err != nil {
		return to.failure(err)
	}
	return read(resp)
}

// credentials names what the member rejects with status 401, and says what to do.
func (w *way) credentials(id access.Identity) string {
	switch {
	case w.hub == nil:
		return "the credentials of its agent: check the service account of the agent in the cluster, and restart the agent"
	case id.Hub:
		return "the token of spec.secretRef: join the cluster again to renew it"
	}
	return "the token of spec.impersonatorSecretRef: join the cluster again to renew it"
}

// remainder returns the Path, RawPath and query after Path(name). It rejects paths that could leave the member's API,
// which may share a server with others.
func remainder(u *url.URL, name string) (*url.URL, error) {
	escaped, ok := strings.CutPrefix(u.EscapedPath(), Path(name))
	plain := strings.TrimPrefix(u.Path, Path(name))
	if !ok || plain != "" && plain[0] != '/' {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("cluster %q: the path up to %s must not contain escapes", name,
			suffix))
	}
	query := u.RawQuery
	if values := u.Query(); strings.Trim(plain, "/") == "" && values.Has("path") { // ClusterProxyOptions
		plain = "/" + strings.TrimPrefix(values.Get("path"), "/")
		escaped = (&url.URL{Path: plain}).EscapedPath()
		values.Del("path")
		query = values.Encode()
	}
	if climbs(plain) {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("cluster %q: the path %q must not contain . or ..", name, plain))
	}
	return &url.URL{Path: plain, RawPath: escaped, RawQuery: query}, nil
}

// climbs reports whether a server on the way could read a part of the path as "." or "..", also after decoding it
// again.
func climbs(path string) bool {
	for range 3 {
		for part := range strings.FieldsFuncSeq(path, func(r rune) bool { return r == '/' || r == '\\' }) {
			if part, _, _ = strings.Cut(part, ";"); part == "." || part == ".." {
				return true
			}
		}
		again, err := url.PathUnescape(path)
		if err != nil || again == path {
			return false
		}
		path = again
	}
	return true // a path that is encoded this often is an attack
}

// websocketToken is the prefix of a subprotocol that carries a bearer token.
const websocketToken = "base64url.bearer.authorization.k8s.io."

// Anonymize removes all headers that identify the caller.
func Anonymize(h http.Header) {
	for name := range h {
		if identifiesCaller(name) {
			delete(h, name)
		}
	}
}

// actAs replaces all headers that identify the caller with the identity that the hub authenticated. An agent adds its
// own credentials and needs no token.
func actAs(h http.Header, id access.Identity, token string) {
	Anonymize(h)
	if offered, ok := h["Sec-Websocket-Protocol"]; ok {
		var kept []string
		for protocol := range strings.SplitSeq(strings.Join(offered, ","), ",") {
			if protocol = strings.TrimSpace(protocol); !strings.HasPrefix(protocol, websocketToken) {
				kept = append(kept, protocol)
			}
		}
		h.Set("Sec-Websocket-Protocol", strings.Join(kept, ", "))
	}
	if id.Hub {
		return // the transport has the hub's own credentials
	}
	if token != "" {
		h.Set("Authorization", "Bearer "+token)
	}
	h.Set("Impersonate-User", id.User)
	for _, group := range id.Groups {
		h.Add("Impersonate-Group", group)
	}
}

// cluster returns the Cluster of that name. The error is an API error.
func (p *Proxy) cluster(ctx context.Context, name string) (*clusterv1alpha1.Cluster, error) {
	if name == "*" {
		return nil, apierrors.NewBadRequest(
			"this hub does not support one request to all clusters: specify a cluster, or use `argosy get -s members`")
	}
	hub, err := p.Hub()
	if err != nil {
		return nil, unavailable("reach the hub's API: %v", err)
	}
	cluster := &clusterv1alpha1.Cluster{}
	err = hub.Get(ctx, types.NamespacedName{Name: name}, cluster)
	if apierrors.IsNotFound(err) {
		p.forget(name)
		missing := apierrors.NewNotFound(clusterv1alpha1.Resource("clusters"), name)
		missing.ErrStatus.Message = fmt.Sprintf("there is no cluster %q: `argosy get clusters` lists the clusters", name)
		return nil, missing
	}
	if err != nil {
		return nil, unavailable("read cluster %q: %v", name, err)
	}
	return cluster, nil
}

// roleTimeout bounds the wait until this replica and the member see a role that was just written.
const roleTimeout = 3 * time.Second

// identify returns the identity of the caller in the cluster, and the users allowed there. The error is an API error.
func (p *Proxy) identify(ctx context.Context, cluster *clusterv1alpha1.Cluster,
	caller user.Info) (access.Identity, access.Allowed, error) {
	ctx, cancel := context.WithTimeout(ctx, roleTimeout)
	defer cancel()
	for {
		grants, changed, err := p.Grants(ctx)
		if err != nil {
			return access.Identity{}, access.Allowed{}, unavailable("cluster %q: %v", cluster.Name, err)
		}
		allowed := p.allowed(cluster, grants, changed)
		id, err := allowed.Judge(caller.GetName(), caller.GetGroups())
		if err == nil {
			return id, allowed, nil
		}
		// The authorizer allowed the caller, so a role of the caller may not be in the cache yet.
		if errors.Is(err, access.ErrNotNamed) && changed != nil {
			select {
			case <-changed:
				continue
			case <-ctx.Done():
			}
		}
		return id, allowed, apierrors.NewForbidden(clusterv1alpha1.Resource("clusters/proxy"), cluster.Name,
			explain(err, cluster.Name, caller.GetName()))
	}
}

// lets are the users who are allowed in a cluster, computed once for all callers, because there may be thousands.
type lets struct {
	grants  <-chan struct{} // identifies a state of the hub's roles
	names   string
	allowed access.Allowed
}

func (p *Proxy) allowed(cluster *clusterv1alpha1.Cluster, grants access.Grants, state <-chan struct{}) access.Allowed {
	names := cluster.Annotations[wellknown.SystemNamesAnnotation]
	p.mu.Lock()
	defer p.mu.Unlock()
	known, ok := p.lets[cluster.Name]
	if !ok || known.grants != state || known.names != names {
		known = lets{state, names, grants.ForCluster(cluster.Name, cluster.Annotations)}
		p.lets[cluster.Name] = known
	}
	return known.allowed
}

// explain returns an error with what to do for a caller who has no identity in a cluster.
func explain(err error, cluster, caller string) error {
	if errors.Is(err, access.ErrSystemName) {
		return fmt.Errorf("%q is %w, and the same name is a different identity in the cluster, so it is not passed on: use a user of another name, or allow this one to act as %[1]s of the cluster, "+
			"with `kubectl annotate cluster %[3]s %[4]s=%[1]s`", caller, err, cluster, wellknown.SystemNamesAnnotation)
	}
	return fmt.Errorf("%q is %w for clusters/proxy of cluster.karmada.io, so no cluster lets the hub act as %[1]q: bind such a ClusterRole to this user, or to one of the user's groups, with a ClusterRoleBinding", caller, err)
}

// reach returns the current connection to the member, and the token for impersonation if id is not the hub. The error
// is an API error.
func (p *Proxy) reach(ctx context.Context, cluster *clusterv1alpha1.Cluster, id access.Identity) (*way, string, error) {
	hub, err := p.Hub()
	if err != nil {
		return nil, "", unavailable("reach the hub's API: %v", err)
	}
	name, spec := cluster.Name, &cluster.Spec
	switch {
	case spec.APIEndpoint == "" && spec.SyncMode == clusterv1alpha1.Pull:
		way, err := p.tunnel(cluster)
		return way, "", err
	case spec.SyncMode == clusterv1alpha1.Pull && (spec.SecretRef == nil || spec.ImpersonatorSecretRef == nil && !id.Hub):
		return nil, "", unavailable("cluster %q is in Pull mode with spec.apiEndpoint, but without the secrets for requests "+
			"to it: remove spec.apiEndpoint to send them through the agent, or set spec.secretRef and "+
			"spec.impersonatorSecretRef", name)
	case spec.SecretRef == nil:
		return nil, "", unavailable("cluster %q has no spec.secretRef: join it again, or set it to a secret with its caBundle", name)
	case spec.ImpersonatorSecretRef == nil && !id.Hub:
		return nil, "", unavailable("cluster %q has no spec.impersonatorSecretRef, so requests cannot be made there on behalf of the hub's users: join it again, or set it to a secret with a token that may impersonate", name)
	}
	secret, err := secretOf(ctx, hub, name, "spec.secretRef", spec.SecretRef)
	if err != nil {
		return nil, "", err
	}
	token := ""
	if !id.Hub {
		acting, err := secretOf(ctx, hub, name, "spec.impersonatorSecretRef", spec.ImpersonatorSecretRef)
		if err != nil {
			return nil, "", err
		}
		if token = string(acting.Data[member.TokenKey]); token == "" {
			return nil, "", unavailable("cluster %q: secret %s/%s of spec.impersonatorSecretRef has no key %s: join the cluster again", name, acting.Namespace, acting.Name, member.TokenKey)
		}
	}
	reach, err := p.way(cluster, secret)
	if err != nil {
		return nil, "", unavailable("cluster %q: %v", name, err)
	}
	return reach, token, nil
}

func secretOf(ctx context.Context, hub client.Reader, cluster, field string,
	ref *clusterv1alpha1.LocalSecretReference) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	if err := hub.Get(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, secret); err != nil {
		return nil, unavailable("cluster %q: read the secret of %s: %v", cluster, field, err)
	}
	return secret, nil
}

// tunnel returns the connection to a member over the tunnel of its agent. The error is an API error.
func (p *Proxy) tunnel(cluster *clusterv1alpha1.Cluster) (*way, error) {
	name := cluster.Name
	if !p.Tunnels.Connected(name, cluster.UID) {
		p.Tunnels.EndFormer(cluster)
		return nil, silent("%v; `argosy why cluster %s` shows when it last responded", tunnel.NotConnected(cluster), name)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.ways[name]
	if known != nil && known.identity == cluster.UID {
		return known, nil
	}
	config := member.TunnelConfig(p.Tunnels, cluster)
	config.DisableCompression = true // the caller chooses the encoding
	fresh := &way{identity: cluster.UID, place: "through its agent"}
	var err error
	if fresh.base, _, err = rest.DefaultServerUrlFor(config); err == nil {
		fresh.bare, err = newTransports(config)
	}
	if err != nil {
		return nil, unavailable("cluster %q: %v", name, err)
	}
	fresh.own = fresh.bare
	known.close()
	p.ways[name] = fresh
	return fresh, nil
}

// way returns the known connection, or a new one if the Cluster or its secret changed.
func (p *Proxy) way(cluster *clusterv1alpha1.Cluster, secret *corev1.Secret) (*way, error) {
	identity, token := member.Fingerprint(cluster, secret), string(secret.Data[member.TokenKey])
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.ways[cluster.Name]
	if known != nil && known.identity == identity {
		known.token.Store(&token)
		return known, nil
	}
	config, err := member.Config(cluster, secret)
	if err != nil {
		return nil, err
	}
	config.DisableCompression = true // the caller chooses the encoding
	config.Dial = (&net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}).DialContext
	fresh := &way{identity: identity, writing: make(chan struct{}, 1)}
	if fresh.base, _, err = rest.DefaultServerUrlFor(config); err != nil {
		return nil, fmt.Errorf("spec.apiEndpoint: %w", err)
	}
	fresh.place = "at " + fresh.base.Host
	own := rest.CopyConfig(config)
	if fresh.token.Store(&token); token != "" {
		own.BearerToken = ""
		own.Wrap(func(rt http.RoundTripper) http.RoundTripper { return member.Bearer(rt, &fresh.token) })
	}
	if fresh.own, err = newTransports(own); err != nil {
		return nil, err
	}
	if fresh.hub, err = member.Guest(own, roleTimeout, cluster.Name, p.identity); err != nil {
		return nil, err
	}
	config.BearerToken, config.Username, config.Password = "", "", ""
	config.CertData, config.KeyData = nil, nil
	if fresh.bare, err = newTransports(config); err != nil {
		return nil, err
	}
	known.close()
	p.ways[cluster.Name] = fresh
	return fresh, nil
}

// identity returns the hub's identity, which is read once.
func (p *Proxy) identity(ctx context.Context) (string, error) {
	if p.Identity == nil {
		return "", nil
	}
	if known := p.self.Load(); known != nil {
		return *known, nil
	}
	self, err := p.Identity(ctx)
	if err == nil {
		p.self.Store(&self)
	}
	return self, err
}

func (p *Proxy) forget(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ways[name].close()
	delete(p.ways, name)
	delete(p.lets, name)
}

// close closes idle connections; streams continue.
func (w *way) close() {
	if w != nil {
		for _, t := range []transports{w.bare, w.own} {
			utilnet.CloseIdleConnectionsFor(t.plain)
			utilnet.CloseIdleConnectionsFor(t.upgrade)
		}
	}
}

func unavailable(format string, args ...any) error {
	return apierrors.NewServiceUnavailable(fmt.Sprintf(format, args...))
}

// Silent reports whether an error of Get means that the member did not respond.
func Silent(err error) bool {
	return apierrors.HasStatusCause(err, clusterv1alpha1.ReasonClusterNotReachable)
}

// silent returns the error for a member that did not respond. Clients recognize it by its cause.
func silent(format string, args ...any) error {
	err := apierrors.NewServiceUnavailable(fmt.Sprintf(format, args...))
	err.ErrStatus.Details = &metav1.StatusDetails{Causes: []metav1.StatusCause{{
		Type: clusterv1alpha1.ReasonClusterNotReachable}}}
	return err
}
