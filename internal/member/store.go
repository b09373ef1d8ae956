package member

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// listWatch lists and watches a resource in a namespace, or in all if it is empty.
func (c *connection) listWatch(gvr schema.GroupVersionResource, namespace, labelSelector string) cache.ListWatch {
	list, watching := c.dynamic.Resource(gvr).Namespace(namespace), c.watching.Resource(gvr).Namespace(namespace)
	return cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.LabelSelector = labelSelector
			return list.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.LabelSelector = labelSelector
			return watching.Watch(ctx, o)
		},
	}
}

// trimming is the store of a watch of T that keeps a K of each object, and no more than the limits of the member allow.
type trimming[T metav1.Object, K any] struct {
	// trim returns what is kept of an object; counts is false if nothing is. The last version that it could
	// read is kept.
	trim  func(T) (kept K, counts bool, err error)
	into  keeper[K]
	gauge *gauge // set by follow
	// budget bounds the objects of several members, and state gets whether the store is up to date; each may be nil.
	budget *Budget
	state  func(error)
}

var _ cache.TransformingStore = (*trimming[*corev1.Pod, seenPod])(nil)

// keeper stores what is kept of the objects of a watch.
type keeper[K any] interface {
	set(object types.NamespacedName, kept K)
	drop(object types.NamespacedName)
	// known returns what is stored of an object, if anything is.
	known(object types.NamespacedName) (kept K, stored bool)
	// replace stores the result of a list.
	replace(all []*trimmed[K])
}

// trimmed has the part of an object that is kept, with its name.
type trimmed[K any] struct {
	metav1.ObjectMeta
	kept   K
	counts bool
	weight int64
	err    error // that of trim
}

func (s *trimming[T, K]) use(g *gauge) {
	s.gauge = g
	g.budget, g.state = s.budget, s.state
}

// Transformer trims the objects of a list while it is received, and counts them.
func (s *trimming[T, K]) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) {
		t, err := s.trimmed(obj)
		if err == nil {
			_ = s.gauge.receive(context.Background(), t.weight) // the watch ends if it exceeds the limit
		}
		return t, err
	}
}

// trimmed returns an error for an object of another kind: a list may have any.
func (s *trimming[T, K]) trimmed(obj any) (*trimmed[K], error) {
	switch o := obj.(type) {
	case *trimmed[K]:
		return o, nil
	case T:
		kept, counts, err := s.trim(o)
		return &trimmed[K]{ObjectMeta: metav1.ObjectMeta{Namespace: o.GetNamespace(), Name: o.GetName(),
			ResourceVersion: o.GetResourceVersion()}, kept: kept, counts: counts, weight: weigh(kept), err: err}, nil
	}
	return nil, fmt.Errorf("unexpected %T", obj)
}

func (s *trimming[T, K]) Add(obj any) error { return s.Update(obj) }
func (s *trimming[T, K]) Resync() error     { return nil }

func (s *trimming[T, K]) Update(obj any) error {
	t, err := s.trimmed(obj)
	if err != nil {
		return err
	}
	if t.err != nil {
		s.report(1, t)
		return nil
	}
	if !t.counts {
		return s.Delete(t)
	}
	if s.gauge.store(keyOf(t), t.weight) == nil { // otherwise the watch ends, and the last version stays
		s.into.set(keyOf(t), t.kept)
	}
	return nil
}

func (s *trimming[T, K]) Delete(obj any) error {
	o, ok := obj.(metav1.Object)
	if !ok {
		return fmt.Errorf("unexpected %T", obj)
	}
	_ = s.gauge.store(keyOf(o), 0) // never exceeds a limit
	s.into.drop(keyOf(o))
	return nil
}

// report logs that objects cannot be read.
func (s *trimming[T, K]) report(n int, first *trimmed[K]) {
	klog.ErrorS(nil, "Cannot read objects of a member: the last version that could be read is kept",
		"watch", s.gauge.name, "objects", n, "first", klog.KObj(first), "reason", fmt.Sprintf("%.200v", first.err))
}

// Replace stores the result of a list, unless it exceeds the limit.
func (s *trimming[T, K]) Replace(list []any, _ string) error {
	all, sizes := make([]*trimmed[K], 0, len(list)), make(map[types.NamespacedName]int64, len(list))
	var unreadable []*trimmed[K]
	for _, obj := range list {
		t, err := s.trimmed(obj)
		if err != nil {
			return err
		}
		if t.err != nil {
			unreadable = append(unreadable, t)
			t.kept, t.counts = s.into.known(keyOf(t))
			t.weight = s.gauge.sizes[keyOf(t)]
		}
		if t.counts {
			all, sizes[keyOf(t)] = append(all, t), t.weight
		}
	}
	if err := s.gauge.replace(sizes); err != nil {
		return err
	}
	if len(unreadable) > 0 {
		s.report(len(unreadable), unreadable[0])
	}
	s.into.replace(all)
	s.gauge.report(nil)
	return nil
}

func keyOf(o metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}

// change has the value of an object before and after a change; the zero value for none.
type change[V any] struct{ old, new V }

// values keeps a value of each object of a watch, and reports each difference once.
type values[V any] struct {
	// changed is called without the lock after changes, and after the first list.
	changed func([]change[V])
	// equal compares two values of an object; reflect.DeepEqual if nil.
	equal func(a, b V) bool

	since  time.Time
	listed chan struct{} // closed after the first list

	mu  sync.RWMutex
	all map[types.NamespacedName]V // nil until the first list
}

func newValues[V any](changed func([]change[V])) *values[V] {
	return &values[V]{changed: changed, since: time.Now(), listed: make(chan struct{})}
}

// await returns when the objects are listed, at a timeout after the start of the watch, or when ctx ends.
func (s *values[V]) await(ctx context.Context, timeout time.Duration) {
	ctx, cancel := context.WithDeadline(ctx, s.since.Add(timeout))
	defer cancel()
	select {
	case <-s.listed:
	case <-ctx.Done():
	}
}

// get returns the value of an object. Until the objects are listed, listed is false and the result is unknown.
func (s *values[V]) get(object types.NamespacedName) (value V, listed bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.all[object], s.all != nil
}

func (s *values[V]) known(object types.NamespacedName) (value V, stored bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	value, stored = s.all[object]
	return value, stored
}

// visit calls f for each value, and reports whether the objects are listed. f must not use the store.
func (s *values[V]) visit(f func(object types.NamespacedName, value V)) (listed bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for object, value := range s.all {
		f(object, value)
	}
	return s.all != nil
}

// set stores the value of an object. Before the first list it does nothing: that list will have the object.
func (s *values[V]) set(object types.NamespacedName, value V) {
	s.mu.Lock()
	if s.all == nil {
		s.mu.Unlock()
		return
	}
	old, known := s.all[object]
	s.all[object] = value
	s.mu.Unlock()
	if !known || !s.isSame(old, value) {
		s.changed([]change[V]{{old, value}})
	}
}

func (s *values[V]) drop(object types.NamespacedName) {
	s.mu.Lock()
	old, known := s.all[object]
	delete(s.all, object)
	s.mu.Unlock()
	if known {
		s.changed([]change[V]{{old: old}})
	}
}

// lacksRight ends the wait for the first list as if it were empty. It does nothing after a list: a right that is taken
// away later leaves the objects as they were.
func (s *values[V]) lacksRight() {
	s.mu.Lock()
	waiting := s.all == nil
	if waiting {
		s.all = map[types.NamespacedName]V{}
	}
	s.mu.Unlock()
	if waiting {
		close(s.listed)
		s.changed(nil)
	}
}

// replace also reports what a broken watch missed.
func (s *values[V]) replace(list []*trimmed[V]) {
	all := make(map[types.NamespacedName]V, len(list))
	for _, t := range list {
		all[keyOf(t)] = t.kept
	}
	s.mu.Lock()
	before := s.all
	s.all = all
	s.mu.Unlock()
	var changes []change[V]
	for object, old := range before {
		if _, has := all[object]; !has {
			changes = append(changes, change[V]{old: old})
		}
	}
	for _, t := range list {
		if old, known := before[keyOf(t)]; !known || !s.isSame(old, t.kept) {
			changes = append(changes, change[V]{old, t.kept})
		}
	}
	if before == nil {
		close(s.listed)
	}
	if before == nil || len(changes) > 0 {
		s.changed(changes)
	}
}

func (s *values[V]) isSame(a, b V) bool {
	if s.equal != nil {
		return s.equal(a, b)
	}
	return reflect.DeepEqual(a, b)
}
