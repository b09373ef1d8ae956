package member

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/argosy-io/argosy/internal/core/execute"
)

// brakeTimeout is how long the first call of Brake waits for the list of namespaces.
const brakeTimeout = 2 * time.Second

// brakes are the namespaces of a member with the annotation hands-off. Nothing is kept of other namespaces.
type brakes struct {
	changed func(namespace string, on bool)

	mu    sync.Mutex
	store *brakeStore // nil before the first call of Brake
}

// Brake returns what keeps the hub from the objects in a namespace of the member, or from cluster-scoped ones if it is
// empty. The first call starts one watch of the namespaces; changes are reported to OnBrake. Until they were listed,
// and for at most brakeTimeout, Brake waits; then it reads the two namespaces that count. If the hub's account may not
// list namespaces, none of them has a brake.
func (m *Member) Brake(ctx context.Context, namespace string) (execute.Brake, error) {
	store := m.followBrakes()
	await(ctx, store.listed, store.since.Add(brakeTimeout))
	for _, name := range []string{namespace, execute.BrakeNamespace} {
		on, listed := store.isOn(name)
		if !listed && name != "" {
			got, err := m.Get(ctx, corev1.SchemeGroupVersion.WithKind("Namespace"), "", name)
			if err != nil && !apierrors.IsForbidden(err) {
				return "", err
			}
			on = got != nil && execute.IsHandsOff(got)
		}
		if on {
			return execute.Brake(name), nil
		}
	}
	return "", nil
}

// followBrakes returns the store of the member's brakes, which is kept up to date from now on.
func (m *Member) followBrakes() *brakeStore {
	m.brakes.mu.Lock()
	defer m.brakes.mu.Unlock()
	if m.brakes.store != nil {
		return m.brakes.store
	}
	store := &brakeStore{listed: make(chan struct{}), since: time.Now()}
	store.equal = func(a, b string) bool { return a == b }
	var once sync.Once
	store.changed = func(gone, added []string) {
		once.Do(func() { close(store.listed) })
		for _, namespace := range gone {
			m.brakes.changed(namespace, false)
		}
		for _, namespace := range added {
			m.brakes.changed(namespace, true)
		}
	}
	m.brakes.store = store
	trim := func(u *unstructured.Unstructured) (line[string], bool, error) {
		return line[string]{keyOf(u), u.GetName()}, execute.IsHandsOff(u), nil
	}
	go m.follow(fmt.Sprintf("namespaces with a brake in cluster %s", m.Name), &unstructured.Unstructured{},
		&trimming[*unstructured.Unstructured, line[string]]{trim: trim, into: store},
		func(c *connection) cache.ListWatch {
			return store.withoutRight(c.listWatch(corev1.SchemeGroupVersion.WithResource("namespaces"), "", ""))
		})
	return store
}

// brakeStore has the names of the namespaces with a brake.
type brakeStore struct {
	lines[string]
	since  time.Time
	listed chan struct{} // closed when they were listed first, or may not be
}

// isOn reports whether a namespace has a brake. listed is false as long as that is not known.
func (s *brakeStore) isOn(namespace string) (on, listed bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	_, on = s.values[types.NamespacedName{Name: namespace}]
	return on, s.values != nil
}

// withoutRight is lw for an account that may lack the right to list namespaces: then the list counts as empty.
func (s *brakeStore) withoutRight(lw cache.ListWatch) cache.ListWatch {
	refused := func(err error) {
		s.mu.RLock()
		known := s.values != nil
		s.mu.RUnlock()
		if apierrors.IsForbidden(err) && !known {
			s.replace(nil)
		}
	}
	return cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			list, err := lw.ListWithContextFunc(ctx, o)
			refused(err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			w, err := lw.WatchFuncWithContext(ctx, o)
			refused(err)
			return w, err
		},
	}
}
