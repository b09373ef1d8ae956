package console

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	ocmv1 "github.com/argosy-io/argosy/api/ocm/work/v1"
	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/explain/overview"
	"github.com/argosy-io/argosy/internal/core/explain/state"
	"github.com/argosy-io/argosy/internal/facts"
	"github.com/argosy-io/argosy/internal/scope"
)

// Cache is what the console uses of a cache of controllers.
type Cache interface {
	client.Reader
	GetInformer(ctx context.Context, obj client.Object, opts ...cache.InformerGetOption) (cache.Informer, error)
}

// changes are the names of the objects that changed; nil for all objects of a kind.
type changes struct {
	clusters, bindings, releases, works sets.Set[types.NamespacedName]
}

// changeTracker records which objects of a cache change, until it is stopped.
type changeTracker struct {
	cache  Cache
	remove []func() // each removes one of its event handlers

	mu       sync.Mutex
	recorded changes
}

// trackChanges starts to record changes. It does not record the objects that are in the cache already: list them
// afterwards.
func trackChanges(ctx context.Context, c Cache) (*changeTracker, error) {
	t := &changeTracker{cache: c}
	t.take() // makes the sets
	for _, kind := range []struct {
		object   client.Object
		recorded *sets.Set[types.NamespacedName]
	}{{&clusterv1alpha1.Cluster{}, &t.recorded.clusters}, {&workv1alpha2.ResourceBinding{}, &t.recorded.bindings},
		{&workv1alpha2.ClusterResourceBinding{}, &t.recorded.bindings}, {&releasev1alpha1.Release{}, &t.recorded.releases},
		{&ocmv1.ManifestWork{}, &t.recorded.works}} {
		record := func(obj any) {
			name, err := toolscache.DeletionHandlingObjectToName(obj)
			if err != nil {
				return // the objects of informers have names
			}
			t.mu.Lock()
			defer t.mu.Unlock()
			kind.recorded.Insert(name.AsNamespacedName())
		}
		informer, err := c.GetInformer(ctx, kind.object) // it has synced
		var handler toolscache.ResourceEventHandlerRegistration
		if err == nil {
			handler, err = informer.AddEventHandler(toolscache.ResourceEventHandlerDetailedFuncs{
				AddFunc: func(obj any, first bool) {
					if !first {
						record(obj)
					}
				},
				UpdateFunc: func(_, obj any) { record(obj) },
				DeleteFunc: record,
			})
		}
		if err != nil {
			t.stop()
			return nil, fmt.Errorf("track changes in the controllers' cache: %w", err)
		}
		t.remove = append(t.remove, func() {
			_ = informer.RemoveEventHandler(handler) // it fails for handlers of other informers only
		})
	}
	return t, nil
}

// take returns the changes since it was last called. None of the sets is nil.
func (t *changeTracker) take() changes {
	t.mu.Lock()
	defer t.mu.Unlock()
	recorded := t.recorded
	t.recorded = changes{clusters: sets.New[types.NamespacedName](), bindings: sets.New[types.NamespacedName](),
		releases: sets.New[types.NamespacedName](), works: sets.New[types.NamespacedName]()}
	return recorded
}

// stop removes the event handlers.
func (t *changeTracker) stop() {
	for _, remove := range t.remove {
		remove()
	}
}

// object is an object of the fleet with its row and the facts that the row shows. It does not change.
type object[T any] struct {
	name    types.NamespacedName
	version string
	row     *row
	facts   T
}

type (
	cluster       = object[clusterFacts]
	workload      = object[overview.WorkloadRow]
	releaseObject = object[releaseFacts]
	// manifestWork has nil if the ManifestWork needs no attention.
	manifestWork = object[*overview.Item]
)

type clusterFacts struct {
	overview.ClusterRow
	cluster *clusterv1alpha1.Cluster
}

// releaseFacts are a release in a list, and in the list of what needs attention if it waits for a person.
type releaseFacts struct {
	overview.ReleaseSummary
	waiting *overview.Item
}

// objectKind describes how the objects of a kind are read, and what their rows show.
type objectKind[O client.Object, T any] struct {
	name  string
	empty func(namespace string) O
	list  func(context.Context, client.Reader) ([]O, error)
	facts func(O) (key string, facts T)
}

var (
	clusterKind = objectKind[*clusterv1alpha1.Cluster, clusterFacts]{
		name:  "clusters",
		empty: func(string) *clusterv1alpha1.Cluster { return &clusterv1alpha1.Cluster{} },
		list:  facts.ClusterList,
		facts: func(c *clusterv1alpha1.Cluster) (string, clusterFacts) {
			return c.Name, clusterFacts{overview.RowOfCluster(c), c}
		},
	}
	releaseKind = objectKind[*releasev1alpha1.Release, releaseFacts]{
		name:  "releases",
		empty: func(string) *releasev1alpha1.Release { return &releasev1alpha1.Release{} },
		list: func(ctx context.Context, r client.Reader) ([]*releasev1alpha1.Release, error) {
			var list releasev1alpha1.ReleaseList
			err := r.List(ctx, &list, client.UnsafeDisableDeepCopy)
			return scope.Pointers(list.Items), err
		},
		facts: func(r *releasev1alpha1.Release) (string, releaseFacts) {
			facts := releaseFacts{ReleaseSummary: overview.SummaryOfRelease(r)}
			if waiting, waits := overview.ItemOfRelease(r); waits {
				facts.waiting = &waiting
			}
			return r.Namespace + "/" + r.Name, facts
		},
	}
	workKind = objectKind[*ocmv1.ManifestWork, *overview.Item]{
		name:  "manifestworks",
		empty: func(string) *ocmv1.ManifestWork { return &ocmv1.ManifestWork{} },
		list: func(ctx context.Context, r client.Reader) ([]*ocmv1.ManifestWork, error) {
			var list ocmv1.ManifestWorkList
			err := r.List(ctx, &list, client.UnsafeDisableDeepCopy)
			return scope.Pointers(list.Items), err
		},
		facts: func(mw *ocmv1.ManifestWork) (string, *overview.Item) {
			item, is := overview.ItemOfManifestWork(mw)
			if !is {
				return mw.Namespace + "/" + mw.Name, nil
			}
			return mw.Namespace + "/" + mw.Name, &item
		},
	}
)

func bindingKind(f state.Facts) objectKind[workv1alpha2.Binding, overview.WorkloadRow] {
	return objectKind[workv1alpha2.Binding, overview.WorkloadRow]{
		name:  "bindings",
		empty: scope.Bindings.New,
		list: func(ctx context.Context, r client.Reader) ([]workv1alpha2.Binding, error) {
			return scope.Bindings.List(ctx, r, client.UnsafeDisableDeepCopy)
		},
		facts: func(b workv1alpha2.Binding) (string, overview.WorkloadRow) {
			w := overview.RowOfWorkload(b, f)
			return w.Object.String(), w
		},
	}
}

// update replaces objects by what the reader has now of those in only, or of all if only is nil. It also makes the
// rows of the objects in again, changed or not. It reports whether any row changed; otherwise objects stays as it is.
func (k objectKind[O, T]) update(ctx context.Context, r client.Reader, objects *[]*object[T],
	only, again sets.Set[types.NamespacedName]) (changed bool, err error) {
	now := map[types.NamespacedName]*object[T]{} // the changes: nil for objects that are gone
	if only != nil {
		only = only.Union(again)
	}
	for name := range only {
		o := k.empty(name.Namespace)
		err := r.Get(ctx, name, o, client.UnsafeDisableDeepCopy)
		switch {
		case apierrors.IsNotFound(err):
			now[name] = nil
		case err != nil:
			return false, fmt.Errorf("read %s: %w", k.name, err)
		default:
			now[name] = k.object(o)
		}
	}
	if only == nil {
		all, err := k.list(ctx, r)
		if err != nil {
			return false, fmt.Errorf("list %s: %w", k.name, err)
		}
		versions := make(map[types.NamespacedName]string, len(*objects))
		for _, o := range *objects {
			versions[o.name], now[o.name] = o.version, nil
		}
		for _, o := range all {
			name := client.ObjectKeyFromObject(o)
			if version, known := versions[name]; known && !again.Has(name) && version == o.GetResourceVersion() {
				delete(now, name)
			} else {
				now[name] = k.object(o)
			}
		}
	}
	*objects, changed = merge(*objects, now)
	return changed, nil
}

func (k objectKind[O, T]) object(o O) *object[T] {
	key, facts := k.facts(o)
	return &object[T]{client.ObjectKeyFromObject(o), o.GetResourceVersion(), newRow(key, facts), facts}
}

// merge returns the objects with their changes, sorted by key. A nil change removes an object. If no row changed, it
// returns objects and false. It modifies changes, but never objects, which open streams read.
func merge[T any](objects []*object[T], changes map[types.NamespacedName]*object[T]) (after []*object[T],
	changed bool) {
	if len(changes) == 0 {
		return objects, false
	}
	after = make([]*object[T], 0, len(objects)+len(changes))
	for _, o := range objects {
		now, found := changes[o.name]
		delete(changes, o.name)
		switch {
		case !found || now != nil && now.row.key == o.row.key && bytes.Equal(now.row.json, o.row.json):
			after = append(after, o)
		case now != nil:
			after, changed = append(after, now), true
		default:
			changed = true
		}
	}
	for _, o := range changes {
		if o != nil {
			after, changed = append(after, o), true
		}
	}
	if !changed {
		return objects, false
	}
	slices.SortFunc(after, func(a, b *object[T]) int {
		return cmp.Or(cmp.Compare(a.row.key, b.row.key), cmp.Compare(a.name.Namespace, b.name.Namespace),
			cmp.Compare(a.name.Name, b.name.Name))
	})
	return after, true
}
