// Package member has the hub's clients for member clusters: requests, watches of managed objects, and discovery. It
// does not decide what to do in a member.
package member

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
	"github.com/argosy-io/argosy/internal/core/cluster/tenure"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/member/tunnel"
)

// Handler is called for a change of a managed object in a member: old is nil for a new object, new is nil for a deleted
// one. It must not block and must not modify the objects.
type Handler func(cluster string, gvr schema.GroupVersionResource, old, new *unstructured.Unstructured)

// Options of Members; the zero value of a field means its default.
type Options struct {
	// Clusters reads Clusters, from a cache. Secrets reads secrets, from the hub itself: they are read seldom.
	Clusters, Secrets client.Reader
	// Handler is called for every watched managed object; nil for none.
	Handler Handler
	// Timeout bounds every request but a watch; default 10 s.
	Timeout time.Duration
	// Dial opens the connections to members; default TCP.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Limits bound the memory that a member can use in the hub.
	Limits Limits
	// Clock is the time; default the real one.
	Clock clock.PassiveClock
	// Self is this hub, which writes only into members that are its own; without an identity it writes into all.
	Self tenure.Self
	// Own is the cluster of an agent; nil for a hub.
	Own *Own
	// Tunnels reach clusters in Pull mode for reads, such as metrics; nil for none. The agent makes all changes.
	Tunnels *tunnel.Tunnels
}

// Own is the only cluster that an agent acts in, and how the agent reaches it.
type Own struct {
	Cluster string
	Config  *rest.Config
}

// ErrElsewhere reports that this process does not act in a cluster: the agent of a cluster in Pull mode does, or the
// hub.
var ErrElsewhere = errors.New("this process does not act in the cluster")

// Serves reports whether this process acts in a cluster. The hub acts in clusters in Push mode, and an agent in its own
// cluster.
func (m *Members) Serves(cluster *clusterv1alpha1.Cluster) bool {
	if own := m.o.Own; own != nil {
		return own.Cluster == cluster.Name && membership.Pulls(cluster)
	}
	return !membership.Pulls(cluster)
}

// Members are the member clusters that the hub knows how to reach.
type Members struct {
	o      Options
	ctx    context.Context
	cancel context.CancelFunc

	mu      sync.Mutex
	members map[string]*Member
	// lost are the members that were forgotten because their credentials were unusable.
	lost     map[string]bool
	handlers []Handler
	answered []func(cluster string)
	taken    []func(cluster string)
	room     []func(cluster string)
	scaled   []func(cluster string, workload execute.Target)
	reached  []func(cluster string, service types.NamespacedName)
	shared   []func(cluster string, of types.NamespacedName)
	braked   []func(cluster, namespace string, on bool)
}

// New knows no member yet.
func New(o Options) *Members {
	o.Timeout = cmp.Or(o.Timeout, 10*time.Second)
	if o.Dial == nil {
		o.Dial = (&net.Dialer{Timeout: o.Timeout / 2, KeepAlive: 30 * time.Second}).DialContext
	}
	o.Clock = cmp.Or(o.Clock, clock.PassiveClock(clock.RealClock{}))
	o.Limits = o.Limits.WithDefaults()
	m := &Members{o: o, members: map[string]*Member{}, lost: map[string]bool{}}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	if o.Handler != nil {
		m.handlers = append(m.handlers, o.Handler)
	}
	o.Tunnels.OnChange(func(cluster string, connected bool) {
		known := m.Known(cluster)
		switch {
		case !connected && known != nil:
			known.endpoints.lost()
			return
		case !connected:
			return
		case known != nil:
			known.reach.retry()
		}
		m.callAll(&m.answered, cluster)
	})
	return m
}

// Handle adds a handler for managed objects. It is called before the first Watch.
func (m *Members) Handle(h Handler) { add(m, &m.handlers, h) }

// OnAnswer adds a function that is called when a member responds again. It must not block.
func (m *Members) OnAnswer(f func(cluster string)) { add(m, &m.answered, f) }

// OnTaken adds a function that is called when another hub takes over a member. It must not block.
func (m *Members) OnTaken(f func(cluster string)) { add(m, &m.taken, f) }

// OnRoom adds a function that is called when a member may have more free capacity, and after the first list of its
// nodes and pods. It must not block.
func (m *Members) OnRoom(f func(cluster string)) { add(m, &m.room, f) }

// OnScaler adds a function that is called when the autoscaler of a workload in a member changes, after the first call
// of Member.Scaler. It must not block.
func (m *Members) OnScaler(f func(cluster string, workload execute.Target)) { add(m, &m.scaled, f) }

// OnEndpoints adds a function that is called when the watched endpoints of a Service change in a member (see
// Member.EndpointSlices), and when its agent is not connected any more. It must not block.
func (m *Members) OnEndpoints(f func(cluster string, service types.NamespacedName)) {
	add(m, &m.reached, f)
}

// OnShared adds a function that is called when an export, import or Service of a member changes, with its name; when a
// namespace does, without a name; and when a kind is listed for the first time, without both. Member.FollowClusterSet
// starts that. The function must not block.
func (m *Members) OnShared(f func(cluster string, of types.NamespacedName)) { add(m, &m.shared, f) }

// OnBrake adds a function that is called when a namespace of a member gets the annotation hands-off, or loses it, once
// Member.Brake was called. It must not block, and is added before the first Get.
func (m *Members) OnBrake(f func(cluster, namespace string, on bool)) { add(m, &m.braked, f) }

// Hub returns the identity of this hub, as its objects in members carry it.
func (m *Members) Hub() execute.HubID { return execute.HubID(m.o.Self.Hub) }

// Known returns the member of that name if it is in use already; else nil.
func (m *Members) Known(name string) *Member {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.members[name]
}

// Start waits for the end of ctx and then closes all members, so that Members can be part of a manager.
func (m *Members) Start(ctx context.Context) error {
	<-ctx.Done()
	m.cancel()
	return nil
}

// NeedLeaderElection returns false: members may be read before this process leads.
func (m *Members) NeedLeaderElection() bool { return false }

// Get returns the member of that name, made ready if this is its first use; the error is the reader's, or wraps
// ErrCredentials, ErrElsewhere or tunnel.ErrNotConnected. It does not notice a change of the endpoint or the
// credentials: see Refresh.
func (m *Members) Get(name string) (*Member, error) {
	m.mu.Lock()
	known := m.members[name]
	m.mu.Unlock()
	ctx, cancel := context.WithTimeout(m.ctx, m.o.Timeout)
	defer cancel()
	if known != nil && m.isCurrent(ctx, known) {
		return known, nil
	}
	return m.Refresh(ctx, name)
}

// isCurrent reports whether a member is for the current Cluster of its name, in its current mode, and is connected. If
// the Cluster cannot be read, the member stays until Forget.
func (m *Members) isCurrent(ctx context.Context, known *Member) bool {
	cluster := &clusterv1alpha1.Cluster{}
	// Each use of a member comes here, so the Cluster is not copied. It is only read.
	if m.o.Clusters.Get(ctx, types.NamespacedName{Name: known.Name}, cluster, client.UnsafeDisableDeepCopy) == nil &&
		(cluster.UID != known.uid || m.Serves(cluster) == known.tunneled) {
		return false
	}
	return !known.tunneled || m.o.Tunnels.Connected(known.Name, known.uid)
}

// Refresh is Get after the Cluster or its secret changed. If the endpoint or the credentials changed, the member and
// its watches continue with new connections. If the credentials became unusable, the member is forgotten. Once they are
// usable again, it responds again, without watches.
func (m *Members) Refresh(ctx context.Context, name string) (*Member, error) {
	member, back, err := m.refresh(ctx, name)
	if back {
		member.reach.answered()
	}
	return member, err
}

// refresh also reports whether the member is back after it was forgotten for its credentials.
func (m *Members) refresh(ctx context.Context, name string) (_ *Member, back bool, _ error) {
	cluster := &clusterv1alpha1.Cluster{}
	if err := m.o.Clusters.Get(ctx, types.NamespacedName{Name: name}, cluster); err != nil {
		return nil, false, fmt.Errorf("cluster %q: %w", name, err)
	}
	if !m.Serves(cluster) {
		member, err := m.refreshTunnel(cluster)
		return member, false, err
	}
	secret := &corev1.Secret{}
	if m.o.Own == nil {
		ref := cluster.Spec.SecretRef
		if ref == nil {
			m.lose(name)
			return nil, false, fmt.Errorf("cluster %q: spec.secretRef is empty: %w", name, ErrCredentials)
		}
		if err := m.o.Secrets.Get(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, secret); err != nil {
			return nil, false, fmt.Errorf("cluster %q: read its secret %s/%s: %w", name, ref.Namespace, ref.Name, err)
		}
	}

	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ctx.Err() != nil {
		return nil, false, errors.New("members are closed")
	}
	known := m.members[name]
	if known != nil && (known.uid != cluster.UID || known.tunneled) {
		known.cancel()
		delete(m.members, name)
		known = nil
	}
	var identity [sha256.Size]byte // An agent keeps its connection.
	if m.o.Own == nil {
		identity = Fingerprint(cluster, secret)
	}
	if known != nil && known.conn().identity == identity {
		if token := string(secret.Data[TokenKey]); token != "" && token != *known.token.Load() {
			known.token.Store(&token)
			known.reach.retry()
		}
		return known, false, nil
	}
	config, err := m.config(cluster, secret)
	if err != nil {
		m.forget(name)
		m.lost[name] = true
		return nil, false, fmt.Errorf("cluster %q: %w", name, err)
	}
	if known != nil {
		return known, false, known.connect(config, identity)
	}
	fresh := m.member(cluster)
	if err := fresh.connect(config, identity); err != nil {
		fresh.cancel()
		return nil, false, fmt.Errorf("cluster %q: %w: %w", name, err, ErrCredentials)
	}
	m.members[name] = fresh
	back = m.lost[name]
	delete(m.lost, name)
	return fresh, back, nil
}

// refreshTunnel is refresh for a cluster in which its agent acts. The member stays while the agent is not connected, so
// that its watches continue with the next tunnel.
func (m *Members) refreshTunnel(cluster *clusterv1alpha1.Cluster) (*Member, error) {
	name := cluster.Name
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.members[name]
	if known != nil && (!known.tunneled || known.uid != cluster.UID) {
		m.forget(name)
		known = nil
	}
	switch own := m.o.Own; {
	case own != nil && own.Cluster != name:
		return nil, fmt.Errorf("cluster %q is not %q, the cluster of this agent: %w", name, own.Cluster, ErrElsewhere)
	case own != nil:
		return nil, fmt.Errorf("cluster %q is in %s mode, in which the hub acts: remove this agent, or set spec.syncMode to "+
			"%s: %w", name, cluster.Spec.SyncMode, clusterv1alpha1.Pull, ErrElsewhere)
	case !m.o.Tunnels.Connected(name, cluster.UID):
		m.o.Tunnels.EndFormer(cluster)
		return nil, tunnel.NotConnected(cluster)
	case known != nil:
		return known, nil
	case m.ctx.Err() != nil:
		return nil, errors.New("members are closed")
	}
	fresh := m.member(cluster)
	fresh.tunneled = true
	if err := fresh.connect(TunnelConfig(m.o.Tunnels, cluster), [sha256.Size]byte{}); err != nil {
		fresh.cancel()
		return nil, fmt.Errorf("cluster %q: %w", name, err)
	}
	m.members[name] = fresh
	return fresh, nil
}

// TunnelConfig is Config for a cluster over the tunnel of its agent.
func TunnelConfig(tunnels *tunnel.Tunnels, cluster *clusterv1alpha1.Cluster) *rest.Config {
	config := tunnels.Config(cluster)
	config.Wrap(fewHeaders)
	return config
}

// config returns the client configuration of a member.
func (m *Members) config(cluster *clusterv1alpha1.Cluster, secret *corev1.Secret) (*rest.Config, error) {
	if m.o.Own == nil {
		return Config(cluster, secret)
	}
	config := rest.CopyConfig(m.o.Own.Config)
	if config.BearerTokenFile != "" {
		config.BearerToken = "" // The token in the file is renewed.
	}
	config.Wrap(fewHeaders)
	return config, nil
}

// lose forgets a member that has no usable credentials for now.
func (m *Members) lose(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.forget(name)
	m.lost[name] = true
}

// Forget closes the connections and watches of a member that left, without events.
func (m *Members) Forget(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.forget(name)
}

func (m *Members) forget(name string) {
	if known := m.members[name]; known != nil {
		known.cancel()
		delete(m.members, name)
	}
}

// member must be called with the lock.
func (m *Members) member(cluster *clusterv1alpha1.Cluster) *Member {
	name := cluster.Name
	fresh := &Member{
		Name:     name,
		uid:      cluster.UID,
		o:        m.o,
		handlers: slices.Clone(m.handlers),
		watched:  map[schema.GroupVersionResource]*objects{},
	}
	fresh.reach = &reach{clock: m.o.Clock, answered: func() { m.callAll(&m.answered, name) }}
	fresh.grown = func() { m.callAll(&m.room, name) }
	fresh.lost = func() { m.callAll(&m.taken, name) }
	fresh.scalers.changed = func(workload execute.Target) {
		for _, f := range current(m, &m.scaled) {
			f(name, workload)
		}
	}
	fresh.brakes.changed = func(namespace string, on bool) {
		for _, f := range current(m, &m.braked) {
			f(name, namespace, on)
		}
	}
	fresh.endpoints.changed = func(service types.NamespacedName) {
		for _, f := range current(m, &m.reached) {
			f(name, service)
		}
	}
	fresh.clusterSet.changed = func(of types.NamespacedName) {
		for _, f := range current(m, &m.shared) {
			f(name, of)
		}
	}
	fresh.ctx, fresh.cancel = context.WithCancel(m.ctx)
	return fresh
}

func add[F any](m *Members, list *[]F, f F) {
	m.mu.Lock()
	defer m.mu.Unlock()
	*list = append(*list, f)
}

// callAll calls functions for a cluster.
func (m *Members) callAll(list *[]func(cluster string), cluster string) {
	for _, f := range current(m, list) {
		f(cluster)
	}
}

// current returns a copy of a list of functions: functions can be added at any time, while members are in use.
func current[F any](m *Members, list *[]F) []F {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(*list)
}

// Fingerprint is equal as long as the connection to a member is configured the same. It ignores the token, which
// changes every day and is read for each request.
func Fingerprint(cluster *clusterv1alpha1.Cluster, secret *corev1.Secret) [sha256.Size]byte {
	var b bytes.Buffer
	spec := cluster.Spec
	fmt.Fprintf(&b, "%q %t %q %q", spec.APIEndpoint, spec.InsecureSkipTLSVerification, spec.ProxyURL, spec.ProxyHeader)
	fmt.Fprintf(&b, " %t %q", len(secret.Data[TokenKey]) > 0, secret.Data[CABundleKey])
	if len(secret.Data[TokenKey]) == 0 {
		fmt.Fprintf(&b, " %q", secret.Data[KubeconfigKey])
	}
	return sha256.Sum256(b.Bytes())
}
