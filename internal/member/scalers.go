package member

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/argosy-io/argosy/internal/core/execute"
)

// scalerKinds are the kinds whose objects set the replicas of others.
var scalerKinds = []schema.GroupVersionKind{
	{Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler"},
	{Group: "keda.sh", Version: "v1alpha1", Kind: "ScaledObject"},
}

// scalerPatience is how long the first question for autoscalers waits for the answer; who may not list them answers
// never.
const scalerPatience = 2 * time.Second

// scalers are which workloads of a member autoscalers there scale; nothing else is kept of these.
type scalers struct {
	changed func(of execute.Target)

	mu       sync.Mutex
	followed map[schema.GroupKind]*scalerStore
}

// Scaler is the autoscaler in the member that sets the replicas of a workload there, as "HorizontalPodAutoscaler web";
// empty if there is none. The first call starts to follow all of them: what nobody asks for is not watched. Until they
// were listed it waits, two seconds at most; then known is false, and what is found later is told to those who asked to
// be, with OnScaler.
func (m *Member) Scaler(ctx context.Context, workload execute.Target) (scaler string, known bool) {
	known = true
	for _, gvk := range scalerKinds {
		store := m.followScalers(gvk)
		if store == nil {
			continue
		}
		select {
		case <-store.listed:
		default:
			timer := time.NewTimer(time.Until(store.since.Add(scalerPatience)))
			select {
			case <-store.listed:
			case <-timer.C:
			case <-ctx.Done():
			}
			timer.Stop()
		}
		name, listed := store.of(workload)
		if name != "" {
			return gvk.Kind + " " + name, true
		}
		known = known && listed
	}
	return "", known
}

// followScalers is the store of a kind of autoscaler, followed from now on; nil while the member does not serve it.
func (m *Member) followScalers(gvk schema.GroupVersionKind) *scalerStore {
	m.scalers.mu.Lock()
	defer m.scalers.mu.Unlock()
	if store := m.scalers.followed[gvk.GroupKind()]; store != nil {
		return store
	}
	mapping, ok, _ := m.conn().apis.find(gvk) // as it was discovered last: not to be served is no reason to ask again
	if !ok {
		return nil
	}
	store := &scalerStore{changed: m.scalers.changed, listed: make(chan struct{}), since: time.Now()}
	if m.scalers.followed == nil {
		m.scalers.followed = map[schema.GroupKind]*scalerStore{}
	}
	m.scalers.followed[gvk.GroupKind()] = store
	go m.follow(fmt.Sprintf("%s in cluster %s", mapping.Resource.GroupResource(), m.Name), &unstructured.Unstructured{},
		store, func(c *connection) cache.ListWatch {
			list, watching := c.dynamic.Resource(mapping.Resource), c.watching.Resource(mapping.Resource)
			return cache.ListWatch{
				ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
					return list.List(ctx, o)
				},
				WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
					return watching.Watch(ctx, o)
				},
			}
		})
	return store
}

// scalerStore is the store of a watch of one kind of autoscaler.
type scalerStore struct {
	changed func(of execute.Target)
	since   time.Time
	listed  chan struct{} // closed when they were listed first

	mu      sync.RWMutex
	targets map[types.NamespacedName]execute.Target // of each; nil until they were listed, which comes before all else
}

var _ cache.TransformingStore = (*scalerStore)(nil)

// of is the first by name that scales a workload; empty if none does, as far as listed.
func (s *scalerStore) of(workload execute.Target) (name string, listed bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for key, t := range s.targets {
		if t == workload && (name == "" || key.Name < name) {
			name = key.Name
		}
	}
	return name, s.targets != nil
}

// Transformer trims what a watch lists before all of it is there.
func (s *scalerStore) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) {
		if _, done := obj.(*trimmed[execute.Target]); done {
			return obj, nil
		}
		return trimmedScaler(obj)
	}
}

func trimmedScaler(obj any) (*trimmed[execute.Target], error) {
	switch o := obj.(type) {
	case *trimmed[execute.Target]:
		return o, nil
	case *unstructured.Unstructured:
		t := &trimmed[execute.Target]{ObjectMeta: metav1.ObjectMeta{Namespace: o.GetNamespace(), Name: o.GetName(),
			ResourceVersion: o.GetResourceVersion()}}
		t.kept, t.counts = execute.TargetOf(o)
		return t, nil
	}
	return nil, fmt.Errorf("unexpected %T", obj)
}

func (s *scalerStore) Add(obj any) error { return s.Update(obj) }
func (s *scalerStore) Resync() error     { return nil }

func (s *scalerStore) Update(obj any) error {
	t, err := trimmedScaler(obj)
	if err != nil {
		return err
	}
	key := types.NamespacedName{Namespace: t.Namespace, Name: t.Name}
	if !t.counts {
		s.drop(key)
		return nil
	}
	s.mu.Lock()
	was, known := s.targets[key]
	if s.targets == nil {
		s.targets = map[types.NamespacedName]execute.Target{}
	}
	s.targets[key] = t.kept
	s.mu.Unlock()
	if was == t.kept {
		return nil // its status, which changes all the time
	}
	if known {
		s.changed(was)
	}
	s.changed(t.kept)
	return nil
}

func (s *scalerStore) Delete(obj any) error {
	o, ok := obj.(metav1.Object)
	if !ok {
		return fmt.Errorf("unexpected %T", obj)
	}
	s.drop(types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()})
	return nil
}

func (s *scalerStore) drop(key types.NamespacedName) {
	s.mu.Lock()
	was, known := s.targets[key]
	delete(s.targets, key)
	s.mu.Unlock()
	if known {
		s.changed(was)
	}
}

func (s *scalerStore) Replace(list []any, _ string) error {
	all := map[types.NamespacedName]execute.Target{}
	for _, obj := range list {
		t, err := trimmedScaler(obj)
		if err != nil {
			return err
		}
		if t.counts {
			all[types.NamespacedName{Namespace: t.Namespace, Name: t.Name}] = t.kept
		}
	}
	s.mu.Lock()
	before := s.targets
	s.targets = all
	s.mu.Unlock()
	select {
	case <-s.listed:
	default:
		close(s.listed)
	}
	for key, t := range before {
		if all[key] != t {
			s.changed(t)
		}
	}
	for key, t := range all {
		if before[key] != t {
			s.changed(t)
		}
	}
	return nil
}
