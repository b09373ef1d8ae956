package member

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/execute"
)

// managed selects the objects that a hub created or adopted.
const managed = workv1alpha2.ManagedLabel + "=true"

// relist returns the backoff of a broken watch. Its maximum bounds how long the recovery of a member goes unnoticed.
func relist() *wait.Backoff {
	return &wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 6, Cap: 5 * time.Second}
}

// unservedWatchLife is the time for which a resource is watched that the member does not serve. It is longer than a
// request: an object that is created after a call of Watch is watched.
const unservedWatchLife = time.Minute

// Watch starts to watch the managed objects of a resource, until the member is forgotten. The watch also ends if the
// member does not serve the resource, no object is known, and Watch was not called for unservedWatchLife.
func (m *Member) Watch(gvr schema.GroupVersionResource) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if store := m.watched[gvr]; store != nil {
		store.wanted = m.o.Clock.Now()
		return
	}
	store := &objects{wanted: m.o.Clock.Now(), values: newValues(func(changes []change[*unstructured.Unstructured]) {
		for _, c := range changes {
			for _, h := range m.handlers {
				h(m.Name, gvr, c.old, c.new)
			}
		}
	})}
	store.equal = func(a, b *unstructured.Unstructured) bool {
		return a.GetUID() == b.GetUID() && a.GetResourceVersion() == b.GetResourceVersion()
	}
	trimmed := func(u *unstructured.Unstructured) (*unstructured.Unstructured, bool, error) {
		trim(u)
		return u, true, nil
	}
	m.watched[gvr] = store
	name := fmt.Sprintf("%s in cluster %s", gvr.GroupResource(), m.Name)
	ctx, stop := context.WithCancel(m.ctx)
	go m.followWhile(ctx, name, &unstructured.Unstructured{}, &trimming[*unstructured.Unstructured,
		*unstructured.Unstructured]{trim: trimmed, into: store}, func(c *connection) cache.ListWatch {
		lw := c.listWatch(gvr, "", managed)
		list := lw.ListWithContextFunc
		lw.ListWithContextFunc = func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			all, err := list(ctx, o)
			if apierrors.IsNotFound(err) && m.unwatch(gvr, store) {
				stop()
			}
			return all, err
		}
		return lw
	})
}

// unwatch removes the store of a resource that the member does not serve, and reports whether its watch is to end.
func (m *Member) unwatch(gvr schema.GroupVersionResource, store *objects) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	empty := true
	store.visit(func(types.NamespacedName, *unstructured.Unstructured) { empty = false })
	if !empty || m.o.Clock.Since(store.wanted) < unservedWatchLife {
		return false
	}
	delete(m.watched, gvr)
	return true
}

// Cached returns a managed object from the watch; nil if there is none. The object is shared: do not modify it. synced
// is false while the resource is not watched or not listed yet; then the result is unknown.
func (m *Member) Cached(gvr schema.GroupVersionResource, namespace,
	name string) (obj *unstructured.Unstructured, synced bool) {
	m.mu.Lock()
	store := m.watched[gvr]
	m.mu.Unlock()
	if store == nil {
		return nil, false
	}
	return store.get(types.NamespacedName{Namespace: namespace, Name: name})
}

// EachManaged calls f for each managed object in the watches. f must not modify it, and must not call EachManaged.
func (m *Member) EachManaged(f func(*unstructured.Unstructured)) {
	m.mu.Lock()
	stores := slices.Collect(maps.Values(m.watched))
	m.mu.Unlock()
	for _, s := range stores {
		s.visit(func(_ types.NamespacedName, u *unstructured.Unstructured) { f(u) })
	}
}

// follow keeps a store in sync with the member, over failures and changes of the connection, until the member is
// forgotten.
func (m *Member) follow(name string, kind runtime.Object, store boundedStore,
	lw func(*connection) cache.ListWatch) {
	m.followWhile(m.ctx, name, kind, store, lw)
}

// boundedStore is a trimming of any types.
type boundedStore interface {
	cache.ReflectorStore
	use(*gauge)
}

// followWhile does the same until ctx, a child of the member's context, ends.
func (m *Member) followWhile(ctx context.Context, name string, kind runtime.Object, store boundedStore,
	lw func(*connection) cache.ListWatch) {
	logger := klog.FromContext(ctx).WithValues("watch", name)
	gauge := &gauge{m: m, name: name}
	store.use(gauge)
	defer func() { _ = gauge.replace(nil) }() // never exceeds a limit
	for ctx.Err() == nil {
		c := m.conn()
		until, end := context.WithCancel(c.ctx)
		stop := context.AfterFunc(ctx, end)
		if pause := gauge.pause(); pause > 0 {
			select {
			case <-time.After(pause):
			case <-until.Done():
			}
		}
		r := cache.NewReflectorWithOptions(gauge.source(lw(c), end), kind, store, cache.ReflectorOptions{
			Name: name, TypeDescription: name, Backoff: relist(), Logger: &logger,
		})
		r.RunWithContext(until)
		stop()
		end()
	}
}

// objects has the managed objects of a resource.
type objects struct {
	*values[*unstructured.Unstructured]
	// wanted is the time of the last call of Watch. Member.mu guards it.
	wanted time.Time
}

// trim drops the managed fields, except for two facts: that our fields still come from the creation (see Apply), and
// who else has set the replicas (see execute.Share). It keeps all else, including annotations, because it is compared
// with the manifest.
func trim(u *unstructured.Unstructured) {
	entries := u.GetManagedFields() // this decodes them, and is expensive
	if entries == nil {
		return
	}
	var mark []metav1.ManagedFieldsEntry
	if created(entries) {
		mark = []metav1.ManagedFieldsEntry{{Manager: Manager, Operation: metav1.ManagedFieldsOperationUpdate,
			APIVersion: u.GetAPIVersion()}}
	}
	u.SetManagedFields(append(mark, execute.ScaledBy(entries, Manager)...))
}

// created reports whether our manager's fields still come from a create or a full update, not from an apply.
func created(entries []metav1.ManagedFieldsEntry) bool {
	return slices.ContainsFunc(entries, func(entry metav1.ManagedFieldsEntry) bool {
		return isOurs(entry) && entry.Operation == metav1.ManagedFieldsOperationUpdate && entry.Subresource == ""
	})
}

// GetThroughService sends a GET request to a Service of the member, through the member's API server and with the hub's
// own rights. The caller checks who may do so, and passes names without slashes and a path that no user wrote.
func (m *Member) GetThroughService(ctx context.Context, namespace, scheme, service, port, path string,
	query url.Values) (*http.Response, error) {
	c := m.conn()
	base, _, err := rest.DefaultServerUrlFor(c.config)
	if err != nil {
		return nil, err
	}
	at := service + ":" + port
	if scheme == "https" {
		at = "https:" + at
	}
	u := base.JoinPath("api", "v1", "namespaces", url.PathEscape(namespace), "services", url.PathEscape(at), "proxy",
		strings.TrimPrefix(path, "/"))
	u.RawQuery = query.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	return c.http.Do(req)
}
