package member

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/argosy-io/argosy/internal/core/source/service"
)

// endpoints are the slices of the Services of a member that others reach; nothing is kept of any other.
type endpoints struct {
	changed func(service types.NamespacedName)

	mu       sync.Mutex
	followed map[types.NamespacedName]*sliceStore
}

// EndpointSlices returns the slices of a Service in the member, except those that a hub copied there. The first call
// starts to watch them; until they are listed, listed is false. OnEndpoints reports changes. If a member does not
// respond, the last slices stay.
func (m *Member) EndpointSlices(of types.NamespacedName) (all []service.Slice, listed bool) {
	m.endpoints.mu.Lock()
	store := m.endpoints.followed[of]
	if store == nil {
		store = m.followSlices(of)
	}
	m.endpoints.mu.Unlock()
	return store.list()
}

// StopEndpointSlices stops watching the EndpointSlices of a Service.
func (m *Member) StopEndpointSlices(of types.NamespacedName) {
	m.endpoints.mu.Lock()
	defer m.endpoints.mu.Unlock()
	if store := m.endpoints.followed[of]; store != nil {
		store.stop()
		delete(m.endpoints.followed, of)
	}
}

// lost reports all followed Services as changed.
func (e *endpoints) lost() {
	e.mu.Lock()
	all := slices.Collect(maps.Keys(e.followed))
	e.mu.Unlock()
	for _, of := range all {
		e.changed(of)
	}
}

// followSlices must be called with the lock.
func (m *Member) followSlices(of types.NamespacedName) *sliceStore {
	ctx, stop := context.WithCancel(m.ctx)
	store := &sliceStore{stop: stop}
	store.equal = service.Slice.Equal
	store.changed = func(_, _ []service.Slice) {
		if ctx.Err() == nil {
			m.endpoints.changed(of)
		}
	}
	if m.endpoints.followed == nil {
		m.endpoints.followed = map[types.NamespacedName]*sliceStore{}
	}
	m.endpoints.followed[of] = store
	gvr := discoveryv1.SchemeGroupVersion.WithResource("endpointslices")
	selector := discoveryv1.LabelServiceName + "=" + of.Name
	go m.followWhile(ctx, fmt.Sprintf("endpoint slices of %s in cluster %s", of, m.Name), &unstructured.Unstructured{},
		&trimming[*unstructured.Unstructured, line[service.Slice]]{trim: trimSlice, into: store},
		func(c *connection) cache.ListWatch { return c.listWatch(gvr, of.Namespace, selector) })
	return store
}

// sliceStore has the slices of one Service.
type sliceStore struct {
	lines[service.Slice]
	stop context.CancelFunc
}

// list returns the slices, and whether the member has listed them.
func (s *sliceStore) list() (all []service.Slice, listed bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.AppendSeq(make([]service.Slice, 0, len(s.values)), maps.Values(s.values)), s.values != nil
}

func trimSlice(u *unstructured.Unstructured) (l line[service.Slice], counts bool, err error) {
	typed := &discoveryv1.EndpointSlice{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, typed); err != nil {
		return l, false, fmt.Errorf("read EndpointSlice %s/%s: %w", u.GetNamespace(), u.GetName(), err)
	}
	l.object = keyOf(u)
	l.value, counts = service.SliceOf(typed)
	return l, counts, nil
}
