package member

import (
	"context"
	"fmt"
	"sync"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/argosy-io/argosy/internal/core/service"
)

// endpoints are the slices of the Services of a member that others reach; nothing is kept of any other.
type endpoints struct {
	changed func(service types.NamespacedName)

	mu       sync.Mutex
	followed map[types.NamespacedName]*sliceStore
}

// EndpointSlices are those that a Service has in the member, but not those that a hub brought there. The first call
// starts to follow the Service's; until they were listed, listed is false. What changes, then or later, is told to
// those who asked to be, with OnEndpoints. A member that falls silent has what it had.
func (m *Member) EndpointSlices(of types.NamespacedName) (all []service.Slice, listed bool) {
	m.endpoints.mu.Lock()
	store := m.endpoints.followed[of]
	if store == nil {
		store = m.followSlices(of)
	}
	m.endpoints.mu.Unlock()
	return store.all()
}

// StopEndpointSlices ends to follow those of a Service.
func (m *Member) StopEndpointSlices(of types.NamespacedName) {
	m.endpoints.mu.Lock()
	defer m.endpoints.mu.Unlock()
	if store := m.endpoints.followed[of]; store != nil {
		store.stop()
		delete(m.endpoints.followed, of)
	}
}

// followSlices is called with the lock held.
func (m *Member) followSlices(of types.NamespacedName) *sliceStore {
	ctx, stop := context.WithCancel(m.ctx)
	store := &sliceStore{stop: stop, changed: func() {
		if ctx.Err() == nil {
			m.endpoints.changed(of)
		}
	}}
	if m.endpoints.followed == nil {
		m.endpoints.followed = map[types.NamespacedName]*sliceStore{}
	}
	m.endpoints.followed[of] = store
	gvr := discoveryv1.SchemeGroupVersion.WithResource("endpointslices")
	selector := discoveryv1.LabelServiceName + "=" + of.Name
	go m.followWhile(ctx, fmt.Sprintf("endpoint slices of %s in cluster %s", of, m.Name), &unstructured.Unstructured{},
		store, func(c *connection) cache.ListWatch {
			list, watching := c.dynamic.Resource(gvr).Namespace(of.Namespace), c.watching.Resource(gvr).Namespace(of.Namespace)
			return cache.ListWatch{
				ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
					o.LabelSelector = selector
					return list.List(ctx, o)
				},
				WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
					o.LabelSelector = selector
					return watching.Watch(ctx, o)
				},
			}
		})
	return store
}

// sliceStore is the store of a watch of the slices of one Service.
type sliceStore struct {
	changed func()
	stop    context.CancelFunc

	mu     sync.RWMutex
	listed bool
	slices map[string]service.Slice // by name
}

var _ cache.TransformingStore = (*sliceStore)(nil)

func (s *sliceStore) all() ([]service.Slice, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	out := make([]service.Slice, 0, len(s.slices))
	for _, slice := range s.slices {
		out = append(out, slice)
	}
	return out, s.listed
}

// Transformer trims what a watch lists before all of it is there.
func (s *sliceStore) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) { return trimmedSlice(obj) }
}

func trimmedSlice(obj any) (*trimmed[service.Slice], error) {
	switch o := obj.(type) {
	case *trimmed[service.Slice]:
		return o, nil
	case *unstructured.Unstructured:
		typed := &discoveryv1.EndpointSlice{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, typed); err != nil {
			return nil, fmt.Errorf("read EndpointSlice %s/%s: %w", o.GetNamespace(), o.GetName(), err)
		}
		t := &trimmed[service.Slice]{ObjectMeta: metav1.ObjectMeta{Namespace: o.GetNamespace(), Name: o.GetName(),
			ResourceVersion: o.GetResourceVersion()}}
		t.kept, t.counts = service.SliceOf(typed)
		return t, nil
	}
	return nil, fmt.Errorf("unexpected %T", obj)
}

func (s *sliceStore) Add(obj any) error { return s.Update(obj) }
func (s *sliceStore) Resync() error     { return nil }

func (s *sliceStore) Update(obj any) error {
	t, err := trimmedSlice(obj)
	if err != nil {
		return err
	}
	if !t.counts {
		s.drop(t.Name)
		return nil
	}
	s.mu.Lock()
	was, known := s.slices[t.Name]
	if s.slices == nil {
		s.slices = map[string]service.Slice{}
	}
	s.slices[t.Name] = t.kept
	s.mu.Unlock()
	if !known || !was.Equal(t.kept) {
		s.changed()
	}
	return nil
}

func (s *sliceStore) Delete(obj any) error {
	o, ok := obj.(metav1.Object)
	if !ok {
		return fmt.Errorf("unexpected %T", obj)
	}
	s.drop(o.GetName())
	return nil
}

func (s *sliceStore) drop(name string) {
	s.mu.Lock()
	_, known := s.slices[name]
	delete(s.slices, name)
	s.mu.Unlock()
	if known {
		s.changed()
	}
}

// Replace takes the answer of a list; the first one is news, whatever it says.
func (s *sliceStore) Replace(list []any, _ string) error {
	all := map[string]service.Slice{}
	for _, obj := range list {
		t, err := trimmedSlice(obj)
		if err != nil {
			return err
		}
		if t.counts {
			all[t.Name] = t.kept
		}
	}
	s.mu.Lock()
	news := !s.listed || len(all) != len(s.slices)
	for name, slice := range all {
		was, known := s.slices[name]
		news = news || !known || !was.Equal(slice)
	}
	s.slices, s.listed = all, true
	s.mu.Unlock()
	if news {
		s.changed()
	}
	return nil
}
