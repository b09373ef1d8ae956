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
	followed map[types.NamespacedName]followedSlices
}

// followedSlices has the slices of one Service.
type followedSlices struct {
	*values[service.Slice]
	stop context.CancelFunc
}

// EndpointSlices returns the slices of a Service in the member, except those that a hub copied there. The first call
// starts to watch them; until they are listed, listed is false. OnEndpoints reports changes. If a member does not
// respond, the last slices stay.
func (m *Member) EndpointSlices(of types.NamespacedName) (all []service.Slice, listed bool) {
	m.endpoints.mu.Lock()
	store, followed := m.endpoints.followed[of]
	if !followed {
		store = m.followSlices(of)
	}
	m.endpoints.mu.Unlock()
	all = []service.Slice{}
	listed = store.visit(func(_ types.NamespacedName, s service.Slice) { all = append(all, s) })
	return all, listed
}

// StopEndpointSlices stops watching the EndpointSlices of a Service.
func (m *Member) StopEndpointSlices(of types.NamespacedName) {
	m.endpoints.mu.Lock()
	defer m.endpoints.mu.Unlock()
	if store, followed := m.endpoints.followed[of]; followed {
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
func (m *Member) followSlices(of types.NamespacedName) followedSlices {
	ctx, stop := context.WithCancel(m.ctx)
	store := followedSlices{newValues(func([]change[service.Slice]) {
		if ctx.Err() == nil {
			m.endpoints.changed(of)
		}
	}), stop}
	if m.endpoints.followed == nil {
		m.endpoints.followed = map[types.NamespacedName]followedSlices{}
	}
	m.endpoints.followed[of] = store
	gvr := discoveryv1.SchemeGroupVersion.WithResource("endpointslices")
	selector := discoveryv1.LabelServiceName + "=" + of.Name
	go m.followWhile(ctx, fmt.Sprintf("endpoint slices of %s in cluster %s", of, m.Name), &unstructured.Unstructured{},
		&trimming[*unstructured.Unstructured, service.Slice]{trim: trimSlice, into: store},
		func(c *connection) cache.ListWatch { return c.listWatch(gvr, of.Namespace, selector) })
	return store
}

func trimSlice(u *unstructured.Unstructured) (slice service.Slice, counts bool, err error) {
	typed := &discoveryv1.EndpointSlice{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, typed); err != nil {
		return slice, false, err
	}
	slice, counts = service.SliceOf(typed)
	return slice, counts, nil
}
