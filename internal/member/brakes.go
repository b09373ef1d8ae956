package member

import (
	"cmp"
	"context"
	"fmt"
	"slices"
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

// brakeTimeout limits the wait of the first call of Brake for the list of namespaces.
const brakeTimeout = 2 * time.Second

// brakes are the namespaces of a member with the annotation hands-off. Nothing is kept of other namespaces.
type brakes struct {
	changed func(namespace string, on bool)

	mu    sync.Mutex
	store *values[string] // the names of the namespaces; nil before the first call of Brake
}

// Brake returns what keeps the hub from the objects in a namespace of the member, or from cluster-scoped ones if it is
// empty. The first call starts one watch of the namespaces; changes are reported to OnBrake. Until they were listed,
// and for at most brakeTimeout, Brake waits; then it reads the two namespaces that count. If the hub's account may not
// list namespaces, none of them has a brake.
func (m *Member) Brake(ctx context.Context, namespace string) (execute.Brake, error) {
	store := m.followBrakes()
	store.await(ctx, brakeTimeout)
	for _, name := range []string{namespace, execute.BrakeNamespace} {
		found, listed := store.get(types.NamespacedName{Name: name})
		on := found != ""
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

// shownBrakes bounds the result of Brakes: a member may have any number.
const shownBrakes = 100

// Brakes returns the namespaces of the member with the annotation hands-off, sorted and at most shownBrakes; only that
// of the whole cluster if it is one. Until they are listed, known is false. Like Brake, it starts the watch.
func (m *Member) Brakes() (namespaces []string, known bool) {
	known = m.followBrakes().visit(func(_ types.NamespacedName, name string) { namespaces = append(namespaces, name) })
	if slices.Contains(namespaces, execute.BrakeNamespace) {
		return []string{execute.BrakeNamespace}, known
	}
	slices.Sort(namespaces)
	return namespaces[:min(len(namespaces), shownBrakes)], known
}

// followBrakes returns the store of the member's brakes, which is kept up to date from now on.
func (m *Member) followBrakes() *values[string] {
	m.brakes.mu.Lock()
	defer m.brakes.mu.Unlock()
	if m.brakes.store != nil {
		return m.brakes.store
	}
	store := newValues(func(changes []change[string]) {
		for _, c := range changes {
			m.brakes.changed(cmp.Or(c.old, c.new), c.new != "")
		}
	})
	m.brakes.store = store
	go m.follow(fmt.Sprintf("namespaces with a brake in cluster %s", m.Name), &unstructured.Unstructured{},
		&trimming[*unstructured.Unstructured, string]{trim: trimBrake, into: store},
		func(c *connection) cache.ListWatch {
			return withoutRight(store, c.listWatch(corev1.SchemeGroupVersion.WithResource("namespaces"), "", ""))
		})
	return store
}

func trimBrake(u *unstructured.Unstructured) (namespace string, on bool, err error) {
	_, _, err = unstructured.NestedStringMap(u.Object, "metadata", "annotations")
	return u.GetName(), execute.IsHandsOff(u), err
}

// withoutRight is lw for an account that may lack the right to list namespaces: then the list counts as empty.
func withoutRight(store *values[string], lw cache.ListWatch) cache.ListWatch {
	refused := func(err error) {
		if apierrors.IsForbidden(err) {
			store.lacksRight()
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
