package admission

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	networkingv1alpha1 "github.com/argosy-io/argosy/api/networking/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/source/service"
	"github.com/argosy-io/argosy/internal/filter"
)

// servedEvery is the interval of checks whether the starting server serves the policies. The timeout of each
// check is longer by the same time. The checks are frequent, because a client would sleep for the seconds in a
// Retry-After of a starting server.
const servedEvery = 100 * time.Millisecond

// anyNamespace is the index value for cluster policies, which select in all namespaces.
const anyNamespace = "*"

// watched are the kinds in the index.
var watched = []schema.GroupVersionResource{
	policyv1alpha1.GroupVersion.WithResource("propagationpolicies"),
	policyv1alpha1.GroupVersion.WithResource("clusterpropagationpolicies"),
	policyv1alpha1.GroupVersion.WithResource("overridepolicies"),
	policyv1alpha1.GroupVersion.WithResource("clusteroverridepolicies"),
	networkingv1alpha1.GroupVersion.WithResource("multiclusterservices"),
}

// index finds the policies that may select a template without a scan of others. It is empty until it has read all
// policies.
type index struct {
	synced atomic.Bool
	once   sync.Once
	isFed  atomic.Bool
	ctx    context.Context
	cancel context.CancelFunc

	mu       sync.RWMutex
	policies map[types.NamespacedName]policyv1alpha1.Propagation // never changed once they are here
	byKey    map[selected]map[types.NamespacedName]policyv1alpha1.Propagation
	kinds    map[schema.GroupKind]int // how many selectors of all policies are of the kind
	// overrides are the override policies that exist.
	overrides map[types.NamespacedName]bool
	// exposed are the Services that MultiClusterServices place.
	exposed map[types.NamespacedName]bool

	expected expected
}

// selected is the object of a selector; an empty name is any.
type selected struct {
	schema.GroupKind
	namespace, name string
}

func newIndex() *index {
	ctx, cancel := context.WithCancel(context.Background())
	return &index{
		ctx: ctx, cancel: cancel,
		policies:  map[types.NamespacedName]policyv1alpha1.Propagation{},
		byKey:     map[selected]map[types.NamespacedName]policyv1alpha1.Propagation{},
		kinds:     map[schema.GroupKind]int{},
		overrides: map[types.NamespacedName]bool{},
		exposed:   map[types.NamespacedName]bool{},
	}
}

// selects reports whether any policy selects templates of the kind.
func (x *index) selects(gk schema.GroupKind) bool {
	if !x.synced.Load() {
		return false
	}
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.kinds[gk] > 0
}

// selecting returns the policies that may select the template; propagate.Decide checks whether they do. An empty name
// returns those that may select any template of the kind in the namespace.
func (x *index) selecting(gk schema.GroupKind, namespace, name string) []policyv1alpha1.Propagation {
	if !x.synced.Load() {
		return nil
	}
	x.mu.RLock()
	defer x.mu.RUnlock()
	found := map[types.NamespacedName]policyv1alpha1.Propagation{}
	take := func(k selected) {
		for key, p := range x.byKey[k] {
			found[key] = p
		}
	}
	if name == "" {
		for k := range x.byKey {
			if k.GroupKind == gk && (k.namespace == namespace || k.namespace == anyNamespace) {
				take(k)
			}
		}
	} else {
		for _, ns := range []string{namespace, anyNamespace} {
			take(selected{gk, ns, name})
			take(selected{gk, ns, ""})
		}
	}
	out := make([]policyv1alpha1.Propagation, 0, len(found))
	for _, p := range found {
		out = append(out, p)
	}
	return out
}

// overrideExists reports whether there is an override policy of that name.
func (x *index) overrideExists(key types.NamespacedName) bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.overrides[key]
}

// exposes reports whether a MultiClusterService places a template.
func (x *index) exposes(gk schema.GroupKind, key types.NamespacedName) bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return gk == (schema.GroupKind{Kind: "Service"}) && x.exposed[key]
}

func (x *index) setExposed(key types.NamespacedName, exposed bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !exposed {
		delete(x.exposed, key)
		return
	}
	x.exposed[key] = true
}

func (x *index) setPolicy(p policyv1alpha1.Propagation) {
	defer x.expected.saw(p) // after it counts
	x.mu.Lock()
	defer x.mu.Unlock()
	key := types.NamespacedName{Namespace: p.GetNamespace(), Name: p.GetName()}
	x.remove(key)
	x.policies[key] = p
	for _, s := range p.PropagationSpec().ResourceSelectors {
		k := keyOf(p, s)
		if x.byKey[k] == nil {
			x.byKey[k] = map[types.NamespacedName]policyv1alpha1.Propagation{}
		}
		x.byKey[k][key] = p
		x.kinds[k.GroupKind]++
	}
}

func (x *index) deletePolicy(key types.NamespacedName) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.remove(key)
}

// remove must be called with the lock taken.
func (x *index) remove(key types.NamespacedName) {
	p, ok := x.policies[key]
	if !ok {
		return
	}
	delete(x.policies, key)
	for _, s := range p.PropagationSpec().ResourceSelectors {
		k := keyOf(p, s)
		if delete(x.byKey[k], key); len(x.byKey[k]) == 0 {
			delete(x.byKey, k)
		}
		if x.kinds[k.GroupKind]--; x.kinds[k.GroupKind] == 0 {
			delete(x.kinds, k.GroupKind)
		}
	}
}

// keyOf returns the index key of a selector's templates. In a namespaced policy, a selector without a namespace selects
// cluster-scoped templates.
func keyOf(p policyv1alpha1.Propagation, s policyv1alpha1.ResourceSelector) selected {
	namespace := s.Namespace
	if p.GetNamespace() == "" && namespace == "" {
		namespace = anyNamespace
	}
	return selected{match.GroupKind(s.APIVersion, s.Kind), namespace, s.Name}
}

func (x *index) setOverride(key types.NamespacedName, exists bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !exists {
		delete(x.overrides, key)
		return
	}
	x.overrides[key] = true
}

func (x *index) fed() bool { return x.isFed.Load() }

// endWith ends the watches when done is closed.
func (x *index) endWith(done <-chan struct{}) {
	go func() {
		select {
		case <-done:
			x.cancel()
		case <-x.ctx.Done():
		}
	}()
}

// feed watches the policies through the client, the first that is given. It returns at once.
func (x *index) feed(client dynamic.Interface) {
	x.once.Do(func() {
		x.isFed.Store(true)
		go x.watch(client)
	})
}

func (x *index) watch(client dynamic.Interface) {
	// The server is not up when plugins are made, and the policies' definitions come later still. A watch would back off
	// for up to half a minute meanwhile.
	timeout := servedEvery
	for _, resource := range watched {
		err := wait.PollUntilContextCancel(x.ctx, servedEvery, true, func(ctx context.Context) (bool, error) {
			timeout += servedEvery
			ctx, cancel := context.WithTimeout(ctx, timeout)
			defer cancel()
			_, err := client.Resource(resource).List(ctx, metav1.ListOptions{Limit: 1})
			return err == nil, nil
		})
		if err != nil {
			return // the server ended before it had begun
		}
	}
	var synced []cache.InformerSynced
	for _, resource := range watched {
		_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
			ListerWatcher: cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
				ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
					o.ResourceVersion = "" // from the store itself: the server's cache is still being filled
					return client.Resource(resource).List(ctx, o)
				},
				WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
					return client.Resource(resource).Watch(ctx, o)
				},
			}, listed{}),
			ObjectType: &unstructured.Unstructured{},
			// The objects are kept in our own form; the store needs their keys only.
			Transform: transform(resource.Resource),
			Handler: cache.ResourceEventHandlerFuncs{
				AddFunc:    x.set,
				UpdateFunc: func(_, obj any) { x.set(obj) },
				DeleteFunc: x.delete,
			},
		})
		go informer.RunWithContext(x.ctx)
		synced = append(synced, informer.HasSynced)
	}
	x.synced.Store(cache.WaitForCacheSync(x.ctx.Done(), synced...))
}

// listed has a watch begin with a list. A streamed list is answered from the server's cache only, and refused until
// that is filled, with a back-off of seconds in which templates would go unclaimed after each start.
type listed struct{}

// IsWatchListSemanticsUnSupported implements an interface of client-go.
func (listed) IsWatchListSemanticsUnSupported() bool { return true }

// transform converts policies and MultiClusterServices to their types, and reduces an override policy to its name,
// since only its existence matters.
func transform(resource string) cache.TransformFunc {
	return func(obj any) (any, error) {
		u, ok := obj.(*unstructured.Unstructured)
		if !ok {
			return obj, nil
		}
		switch resource {
		case "propagationpolicies", "clusterpropagationpolicies":
			u.SetManagedFields(nil)
			p := newPropagation(u.GetKind())
			return p, into(u, p)
		case "multiclusterservices":
			u.SetManagedFields(nil)
			s := &networkingv1alpha1.MultiClusterService{}
			return s, into(u, s)
		}
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Namespace: u.GetNamespace(), Name: u.GetName(), ResourceVersion: u.GetResourceVersion(),
		}}, nil
	}
}

func (x *index) set(obj any) {
	switch o := obj.(type) {
	case policyv1alpha1.Propagation:
		x.setPolicy(o)
	case *metav1.PartialObjectMetadata:
		x.setOverride(types.NamespacedName{Namespace: o.Namespace, Name: o.Name}, true)
	case *networkingv1alpha1.MultiClusterService:
		x.setExposed(types.NamespacedName{Namespace: o.Namespace, Name: o.Name}, service.Exposes(o))
	}
}

func (x *index) delete(obj any) {
	switch o := filter.LastState(obj).(type) {
	case policyv1alpha1.Propagation:
		x.deletePolicy(types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()})
	case *metav1.PartialObjectMetadata:
		x.setOverride(types.NamespacedName{Namespace: o.Namespace, Name: o.Name}, false)
	case *networkingv1alpha1.MultiClusterService:
		x.setExposed(types.NamespacedName{Namespace: o.Namespace, Name: o.Name}, false)
	}
}
