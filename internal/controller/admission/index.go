package admission

import (
	"context"
	"maps"
	"slices"
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

	// mu lets selecting read one state of all policies.
	mu sync.RWMutex
	// policies never change once they are here.
	policies cache.Indexer
	// overrides are the override policies that exist.
	overrides cache.Store
	services  cache.Store

	expected expected
}

// The indexes of policies, by what their selectors select.
const (
	byNamespace = "namespace"
	byObject    = "object"
)

func newIndex() *index {
	ctx, cancel := context.WithCancel(context.Background())
	return &index{ctx: ctx, cancel: cancel,
		policies: cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{
			byNamespace: selected(func(kind, namespace, _ string) string { return namespaceKey(kind, namespace) }),
			byObject:    selected(objectKey),
		}),
		overrides: cache.NewStore(cache.MetaNamespaceKeyFunc),
		services:  cache.NewStore(cache.MetaNamespaceKeyFunc),
	}
}

func namespaceKey(kind, namespace string) string { return kind + "/" + namespace }

// objectKey is the key of an object; an empty name is any.
func objectKey(kind, namespace, name string) string {
	return namespaceKey(kind, namespace) + "/" + name
}

// selected indexes a policy by the objects of its selectors. In a namespaced policy, a selector without a namespace
// selects cluster-scoped templates.
func selected(key func(kind, namespace, name string) string) cache.IndexFunc {
	return func(obj any) (keys []string, err error) {
		p := obj.(policyv1alpha1.Propagation)
		for _, s := range p.PropagationSpec().ResourceSelectors {
			namespace := s.Namespace
			if p.GetNamespace() == "" && namespace == "" {
				namespace = anyNamespace
			}
			keys = append(keys, key(match.GroupKind(s.APIVersion, s.Kind).String(), namespace, s.Name))
		}
		return keys, nil
	}
}

// selecting returns the policies that may select the template; propagate.Decide checks whether they do. An empty name
// returns those that may select any template of the kind in the namespace.
func (x *index) selecting(gk schema.GroupKind, namespace, name string) []policyv1alpha1.Propagation {
	if !x.synced.Load() {
		return nil
	}
	x.mu.RLock()
	defer x.mu.RUnlock()
	found := map[policyv1alpha1.Propagation]bool{}
	take := func(by, key string) {
		policies, _ := x.policies.ByIndex(by, key) // both indexes exist
		for _, p := range policies {
			found[p.(policyv1alpha1.Propagation)] = true
		}
	}
	for _, ns := range []string{namespace, anyNamespace} {
		if name == "" {
			take(byNamespace, namespaceKey(gk.String(), ns))
			continue
		}
		take(byObject, objectKey(gk.String(), ns, name))
		take(byObject, objectKey(gk.String(), ns, ""))
	}
	return slices.Collect(maps.Keys(found))
}

// overrideExists reports whether there is an override policy of that name.
func (x *index) overrideExists(key types.NamespacedName) bool {
	_, exists, _ := x.overrides.GetByKey(cache.NewObjectName(key.Namespace, key.Name).String())
	return exists
}

// exposes reports whether a MultiClusterService places a template.
func (x *index) exposes(gk schema.GroupKind, key types.NamespacedName) bool {
	obj, exists, _ := x.services.GetByKey(key.String())
	return exists && gk == (schema.GroupKind{Kind: "Service"}) &&
		service.Exposes(obj.(*networkingv1alpha1.MultiClusterService))
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

// storeOf returns where an object in the form of transform is kept.
func (x *index) storeOf(obj any) cache.Store {
	switch obj.(type) {
	case policyv1alpha1.Propagation:
		return x.policies
	case *networkingv1alpha1.MultiClusterService:
		return x.services
	}
	return x.overrides
}

func (x *index) set(obj any) {
	x.mu.Lock()
	_ = x.storeOf(obj).Add(obj) // all objects have keys
	x.mu.Unlock()
	if p, ok := obj.(policyv1alpha1.Propagation); ok {
		x.expected.saw(p) // after it counts
	}
}

func (x *index) delete(obj any) {
	obj = filter.LastState(obj)
	x.mu.Lock()
	defer x.mu.Unlock()
	_ = x.storeOf(obj).Delete(obj)
}
