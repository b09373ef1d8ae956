package member

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
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

// trimming is the store of a watch of T that keeps a K of each object.
type trimming[T metav1.Object, K any] struct {
	// trim returns what is kept of an object; counts is false if nothing is.
	trim func(T) (kept K, counts bool, err error)
	into keeper[K]
}

var _ cache.TransformingStore = (*trimming[*corev1.Pod, seenPod])(nil)

// keeper stores what is kept of the objects of a watch.
type keeper[K any] interface {
	set(kept K)
	drop(namespace, name string)
	// replace stores the result of a list.
	replace(all []K)
}

// trimmed is what is kept of an object, with its name.
type trimmed[K any] struct {
	metav1.ObjectMeta
	kept   K
	counts bool
}

// Transformer trims the objects of a list while it is received.
func (s *trimming[T, K]) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) { return s.trimmed(obj) }
}

func (s *trimming[T, K]) trimmed(obj any) (*trimmed[K], error) {
	switch o := obj.(type) {
	case *trimmed[K]:
		return o, nil
	case T:
		kept, counts, err := s.trim(o)
		if err != nil {
			return nil, err
		}
		return &trimmed[K]{ObjectMeta: metav1.ObjectMeta{Namespace: o.GetNamespace(), Name: o.GetName(),
			ResourceVersion: o.GetResourceVersion()}, kept: kept, counts: counts}, nil
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
	if t.counts {
		s.into.set(t.kept)
	} else {
		s.into.drop(t.Namespace, t.Name)
	}
	return nil
}

func (s *trimming[T, K]) Delete(obj any) error {
	o, ok := obj.(metav1.Object)
	if !ok {
		return fmt.Errorf("unexpected %T", obj)
	}
	s.into.drop(o.GetNamespace(), o.GetName())
	return nil
}

func (s *trimming[T, K]) Replace(list []any, _ string) error {
	all := make([]K, 0, len(list))
	for _, obj := range list {
		t, err := s.trimmed(obj)
		if err != nil {
			return err
		}
		if t.counts {
			all = append(all, t.kept)
		}
	}
	s.into.replace(all)
	return nil
}

// await returns when listed is closed, at the deadline, or when ctx ends.
func await(ctx context.Context, listed <-chan struct{}, deadline time.Time) {
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	select {
	case <-listed:
	case <-ctx.Done():
	}
}

// line is one stored value of an object.
type line[V any] struct {
	object types.NamespacedName
	value  V
}

// lines keeps a value of each object of a watch.
type lines[V any] struct {
	equal func(a, b V) bool
	// changed is called without the lock after each change, with the removed and the added values, and after the first
	// list.
	changed func(gone, added []V)

	mu     sync.RWMutex
	values map[types.NamespacedName]V // nil until the first list, which comes before everything else
}

func (s *lines[V]) set(l line[V]) {
	s.mu.Lock()
	was, known := s.values[l.object]
	if s.values == nil {
		s.values = map[types.NamespacedName]V{}
	}
	s.values[l.object] = l.value
	s.mu.Unlock()
	switch {
	case !known:
		s.changed(nil, []V{l.value})
	case !s.equal(was, l.value):
		s.changed([]V{was}, []V{l.value})
	}
}

func (s *lines[V]) drop(namespace, name string) {
	key := types.NamespacedName{Namespace: namespace, Name: name}
	s.mu.Lock()
	was, known := s.values[key]
	delete(s.values, key)
	s.mu.Unlock()
	if known {
		s.changed([]V{was}, nil)
	}
}

func (s *lines[V]) replace(all []line[V]) {
	values := make(map[types.NamespacedName]V, len(all))
	for _, l := range all {
		values[l.object] = l.value
	}
	s.mu.Lock()
	before := s.values
	s.values = values
	s.mu.Unlock()
	gone, added := s.missing(before, values), s.missing(values, before)
	if before == nil || len(gone)+len(added) > 0 {
		s.changed(gone, added)
	}
}

// missing returns the values of a that b lacks, or has differently, for the same object.
func (s *lines[V]) missing(a, b map[types.NamespacedName]V) (rest []V) {
	for key, value := range a {
		if other, has := b[key]; !has || !s.equal(value, other) {
			rest = append(rest, value)
		}
	}
	return rest
}
