package member

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/cluster/tenure"
)

// ErrNotOwner reports that this hub must not write into a member because another hub manages it. The wrapping error
// names that hub, and what to do.
var ErrNotOwner = errors.New("cluster is managed by another hub")

// notOwnerError is ErrNotOwner with the message of the decision.
type notOwnerError struct{ cluster, why string }

func (e *notOwnerError) Error() string        { return fmt.Sprintf("cluster %q: %s", e.cluster, e.why) }
func (e *notOwnerError) Is(target error) bool { return target == ErrNotOwner }

// stampTrust is the maximal age of a check of the lease before a write: a hub that lost a member stops writing within
// that time.
const stampTrust = time.Second

// ownership has the known facts about the owner of a member. All connections to the member share it.
type ownership struct {
	// looking is locked during a check, so that concurrent writes cause only one.
	looking sync.Mutex

	mu     sync.Mutex
	looked time.Time // zero: never, or the last check failed
	last   tenure.Decision
	seen   string // the stamp's version
	since  time.Time
}

// stampKey marks the requests by which the stamp itself is read and written.
type stampKey struct{}

// EnsureOwnership checks which hub manages the member, claims a member that no hub manages, and renews the lease when
// due. While the verdict is Yield, writes to the member fail with ErrNotOwner; reads work.
func (m *Member) EnsureOwnership(ctx context.Context) (tenure.Decision, error) {
	m.ownership.looking.Lock()
	defer m.ownership.looking.Unlock()
	return m.checkOwner(ctx)
}

// mayWrite returns an error if this hub must not write now. It relies on a check that is at most stampTrust old.
func (m *Member) mayWrite(ctx context.Context) error {
	if m.tunneled {
		if ctx.Value(statusKey{}) != nil {
			return nil
		}
		return fmt.Errorf("the agent of cluster %q makes all changes: %w", m.Name, ErrElsewhere)
	}
	if m.o.Self.Hub == "" {
		return nil
	}
	last, fresh := m.ownership.trusted(m.o.Clock.Now())
	if !fresh {
		m.ownership.looking.Lock()
		defer m.ownership.looking.Unlock()
		if last, fresh = m.ownership.trusted(m.o.Clock.Now()); !fresh {
			var err error
			if last, err = m.checkOwner(ctx); err != nil {
				return fmt.Errorf("find out which hub manages cluster %q: %w", m.Name, err)
			}
		}
	}
	if last.Verdict == tenure.Yield {
		return &notOwnerError{m.Name, last.Message}
	}
	return nil
}

func (h *ownership) trusted(now time.Time) (tenure.Decision, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	age := now.Sub(h.looked)
	return h.last, !h.looked.IsZero() && age >= 0 && age < stampTrust
}

// checkOwner must be called with looking locked.
func (m *Member) checkOwner(ctx context.Context) (tenure.Decision, error) {
	decision, err := m.decideOwner(context.WithValue(ctx, stampKey{}, true))
	h := &m.ownership
	h.mu.Lock()
	lost := err == nil && decision.Verdict == tenure.Yield && h.last.Verdict != tenure.Yield
	h.looked = time.Time{}
	if err == nil {
		h.looked, h.last = m.o.Clock.Now(), decision
	}
	h.mu.Unlock()
	if lost {
		m.lost()
	}
	return decision, err
}

var leases = coordinationv1.SchemeGroupVersion.WithResource("leases")

func (m *Member) decideOwner(ctx context.Context) (tenure.Decision, error) {
	if m.o.Self.Hub == "" {
		return tenure.Decision{Verdict: tenure.Own}, nil
	}
	at := m.Client().Resource(leases).Namespace(tenure.Namespace)
	for range stampAttempts {
		got, err := at.Get(ctx, tenure.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err) && m.noLeases(ctx), apierrors.IsForbidden(err):
			// An account that `join` did not create may lack the right to read it: such members are written to without a lease.
			return tenure.Decision{Verdict: tenure.Own}, nil
		case apierrors.IsNotFound(err):
			got = nil
		case err != nil:
			return tenure.Decision{}, err
		}
		lease := &coordinationv1.Lease{}
		if got != nil {
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(got.Object, lease); err != nil {
				return tenure.Decision{}, fmt.Errorf("read the lease %s/%s of cluster %q: %w", tenure.Namespace, tenure.Name,
					m.Name, err)
			}
		}
		now := m.o.Clock.Now()
		decision := m.o.Self.Decide(m.Name, tenure.Read(lease), m.ownership.unchanged(lease.ResourceVersion, now), now)
		if decision.Stamp == nil {
			return decision, nil
		}
		decision.Stamp.Write(lease)
		written, err := m.stamp(ctx, at, lease)
		switch {
		case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
			continue // another hub wrote the lease in the meantime
		case apierrors.IsForbidden(err) && decision.Verdict == tenure.Claim && got == nil:
			return tenure.Decision{Verdict: tenure.Own}, nil // as above
		case err != nil:
			return tenure.Decision{}, fmt.Errorf("claim cluster %q for this hub: %w", m.Name, err)
		}
		m.ownership.unchanged(written, now)
		return tenure.Decision{Verdict: tenure.Own}, nil
	}
	return tenure.Decision{}, fmt.Errorf(
		"claim cluster %q for this hub: the lease %s/%s there was changed concurrently on all %d attempts: find out what writes it", m.Name, tenure.Namespace, tenure.Name, stampAttempts)
}

// stampAttempts bounds attempts to write the lease after conflicts. Two hubs that race need two attempts at most. A
// member that always reports a conflict must not keep the hub busy.
const stampAttempts = 5

// unchanged returns how long the lease has had that version.
func (h *ownership) unchanged(version string, now time.Time) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.seen != version || h.since.IsZero() || now.Before(h.since) {
		h.seen, h.since = version, now
	}
	return now.Sub(h.since)
}

// noLeases reports whether the member serves no Leases at all.
func (m *Member) noLeases(ctx context.Context) bool {
	_, err := m.Mapping(ctx, coordinationv1.SchemeGroupVersion.WithKind("Lease"))
	return errors.Is(err, ErrKindNotServed)
}

// stamp writes the lease, with the namespace that it is in if need be, and returns its version.
func (m *Member) stamp(ctx context.Context, at dynamic.ResourceInterface, lease *coordinationv1.Lease) (string, error) {
	lease.APIVersion, lease.Kind = coordinationv1.SchemeGroupVersion.String(), "Lease"
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(lease)
	if err != nil {
		return "", err
	}
	u := &unstructured.Unstructured{Object: fields}
	if lease.ResourceVersion != "" {
		written, err := at.Update(ctx, u, metav1.UpdateOptions{FieldManager: Manager})
		if err != nil {
			return "", err
		}
		return written.GetResourceVersion(), nil
	}
	written, err := at.Create(ctx, u, metav1.CreateOptions{FieldManager: Manager})
	if apierrors.IsNotFound(err) { // the namespace does not exist
		space := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace",
			"metadata": map[string]any{
				"name": tenure.Namespace, "labels": map[string]any{workv1alpha2.SystemLabel: "true"}}}}
		_, err = m.Client().Resource(corev1.SchemeGroupVersion.WithResource("namespaces")).Create(ctx, space,
			metav1.CreateOptions{FieldManager: Manager})
		if err == nil || apierrors.IsAlreadyExists(err) {
			written, err = at.Create(ctx, u, metav1.CreateOptions{FieldManager: Manager})
		}
	}
	if err != nil {
		return "", err
	}
	return written.GetResourceVersion(), nil
}

// Leave deletes this hub's lease in the member, but not that of another hub. Nothing may be written there afterwards
// except a new claim.
func (m *Member) Leave(ctx context.Context) error {
	if m.o.Self.Hub == "" {
		return nil
	}
	m.ownership.looking.Lock()
	defer m.ownership.looking.Unlock()
	ctx = context.WithValue(ctx, stampKey{}, true)
	at := m.Client().Resource(leases).Namespace(tenure.Namespace)
	got, err := at.Get(ctx, tenure.Name, metav1.GetOptions{})
	if err == nil {
		holder, _, _ := unstructured.NestedString(got.Object, "spec", "holderIdentity")
		if holder != m.o.Self.Hub {
			return nil
		}
		uid, version := got.GetUID(), got.GetResourceVersion()
		err = at.Delete(ctx, tenure.Name,
			metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}})
	}
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// guestAnswerLimit bounds a response to a Guest in bytes. It reads single objects, which are smaller in etcd.
const guestAnswerLimit = 4 << 20

// Guest returns a client of a member for a replica of the hub that runs no controllers, and so has no Member. It
// follows no redirect, ends requests after the timeout, and reads no response that is larger than an object. It writes
// only into a member that the hub owns; hub returns the hub's identity. It never writes the ownership.
func Guest(config *rest.Config, timeout time.Duration, cluster string,
	hub func(context.Context) (string, error)) (dynamic.Interface, error) {
	g := &guest{cluster: cluster, hub: hub}
	config = rest.CopyConfig(config)
	config.UserAgent, config.WarningHandler = Manager, rest.NoWarnings{}
	config.QPS = -1 // the rate is limited by the callers' work
	config.Wrap(func(rt http.RoundTripper) http.RoundTripper {
		return tenant{wrapping{bounded{wrapping{rt}, timeout, guestAnswerLimit}}, g.mayWrite}
	})
	var err error
	g.client, err = dynamic.NewForConfig(config)
	return g.client, err
}

type guest struct {
	cluster string
	hub     func(context.Context) (string, error)
	client  dynamic.Interface
}

// mayWrite looks at the stamp for each write: there are few.
func (g *guest) mayWrite(ctx context.Context) error {
	hub, err := g.hub(ctx)
	if err != nil || hub == "" {
		return err
	}
	at := g.client.Resource(leases).Namespace(tenure.Namespace)
	got, err := at.Get(ctx, tenure.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsForbidden(err):
		return nil // as for a Member
	case apierrors.IsNotFound(err):
		if _, err := at.List(ctx, metav1.ListOptions{Limit: 1}); apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
			return nil
		}
		return fmt.Errorf("cluster %q is not claimed by this hub yet", g.cluster)
	case err != nil:
		return fmt.Errorf("find out which hub manages cluster %q: %w", g.cluster, err)
	}
	lease := &coordinationv1.Lease{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(got.Object, lease); err != nil {
		return fmt.Errorf("read the lease %s/%s of cluster %q: %w", tenure.Namespace, tenure.Name, g.cluster, err)
	}
	switch stamp := tenure.Read(lease); {
	case stamp == nil:
		return fmt.Errorf("cluster %q is not claimed by this hub yet", g.cluster)
	case stamp.Hub != hub:
		return &notOwnerError{g.cluster, tenure.Self{Hub: hub}.Decide(g.cluster, stamp, 0, time.Time{}).Message}
	}
	return nil
}

// Identity returns the hub as its members know it: the UID of its namespace kube-system.
func Identity(ctx context.Context, hub client.Reader) (string, error) {
	system := &corev1.Namespace{}
	if err := hub.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, system); err != nil {
		return "", fmt.Errorf("read the namespace %s, whose UID is the hub's identity: %w", metav1.NamespaceSystem, err)
	}
	return string(system.UID), nil
}

// tenant is a transport that rejects writes unless this hub manages the member. All writes of the hub use it.
type tenant struct {
	wrapping
	mayWrite func(context.Context) error
}

func (t tenant) RoundTrip(req *http.Request) (*http.Response, error) {
	switch req.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return t.next.RoundTrip(req)
	}
	if req.Context().Value(stampKey{}) == nil {
		if err := t.mayWrite(req.Context()); err != nil {
			return nil, err
		}
	}
	return t.next.RoundTrip(req)
}

// ClusterID returns the cluster's own property if it has one, otherwise the UID of its namespace kube-system.
func ClusterID(ctx context.Context, c client.Reader) (string, error) {
	property := &unstructured.Unstructured{}
	property.SetGroupVersionKind(schema.GroupVersionKind{Group: "about.k8s.io", Version: "v1alpha1",
		Kind: "ClusterProperty"})
	err := c.Get(ctx, types.NamespacedName{Name: "cluster.clusterset.k8s.io"}, property)
	if err == nil {
		if id, _, _ := unstructured.NestedString(property.Object, "spec", "value"); id != "" {
			return id, nil
		}
	} else if !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err) {
		return "", err
	}
	system := &corev1.Namespace{}
	if err := c.Get(ctx, types.NamespacedName{Name: metav1.NamespaceSystem}, system); err != nil {
		return "", err
	}
	return string(system.UID), nil
}
