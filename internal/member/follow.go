package member

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// Budget bounds the bytes of the objects of several members in memory, and of their lists in transit.
type Budget struct {
	// Limit in bytes. Flag is the flag of the hub that raises it.
	Limit int64
	Flag  string
	used  atomic.Int64
}

// Used returns the bytes that are in use.
func (b *Budget) Used() int64 { return b.used.Load() }

// add counts n more bytes, and reports whether they are within the limit. A nil budget has no limit.
func (b *Budget) add(n int64) bool { return b == nil || b.used.Add(n) <= b.Limit || n <= 0 }

func (b *Budget) excess(what string) error {
	return &limitError{fmt.Sprintf("%s would need more than the %s that the hub may cache for all clusters", what,
		size(b.Limit)), "cache fewer resources or clusters, or raise " + b.Flag}
}

// Mirror keeps a K of each object of a resource in a member. Its methods are called by one goroutine at a time.
type Mirror[K any] interface {
	// Trim returns what is kept of an object, and its size in bytes. It may modify the object.
	Trim(*unstructured.Unstructured) (kept K, bytes int64, err error)
	Set(object types.NamespacedName, kept K)
	Drop(object types.NamespacedName)
	// Known returns what is kept of an object.
	Known(object types.NamespacedName) (kept K, known bool)
	// Replace stores a complete list.
	Replace(map[types.NamespacedName]K)
	// State is called with nil when the mirror is up to date with the member, and with an error while it is not. Other
	// goroutines may call it.
	State(error)
}

// Follow keeps the mirror up to date with a resource in a namespace of the member, or in all if it is empty, until ctx
// ends or the member is forgotten. Limits of the member and the budget bound it. After an excess, the mirror keeps its
// content and is not up to date until a later attempt succeeds.
func Follow[K any](ctx context.Context, m *Member, gvr schema.GroupVersionResource, namespace string, mirror Mirror[K],
	budget *Budget) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(m.ctx, stop)()
	name := fmt.Sprintf("%s in cluster %s", gvr.GroupResource(), m.Name)
	store := &trimming[*unstructured.Unstructured, sized[K]]{into: sizedKeeper[K]{mirror}, budget: budget,
		state: mirror.State, trim: func(u *unstructured.Unstructured) (sized[K], bool, error) {
			kept, bytes, err := mirror.Trim(u)
			return sized[K]{kept, bytes}, true, err
		}}
	m.followWhile(ctx, name, &unstructured.Unstructured{}, store, func(c *connection) cache.ListWatch {
		return c.listWatch(gvr, namespace, "")
	})
}

// sized is what a mirror keeps of an object, with its size.
type sized[K any] struct {
	kept  K
	bytes int64
}

func (s sized[K]) weight() int64 { return s.bytes }

// sizedKeeper is a mirror as the keeper of a watch.
type sizedKeeper[K any] struct{ mirror Mirror[K] }

func (s sizedKeeper[K]) set(object types.NamespacedName, kept sized[K]) {
	s.mirror.Set(object, kept.kept)
}
func (s sizedKeeper[K]) drop(object types.NamespacedName) { s.mirror.Drop(object) }

func (s sizedKeeper[K]) known(object types.NamespacedName) (sized[K], bool) {
	kept, known := s.mirror.Known(object)
	return sized[K]{kept: kept}, known
}

func (s sizedKeeper[K]) replace(all []*trimmed[sized[K]]) {
	kept := make(map[types.NamespacedName]K, len(all))
	for _, t := range all {
		kept[keyOf(t)] = t.kept.kept
	}
	s.mirror.Replace(kept)
}

// ErrNotWatchable means that a member serves a resource, but does not permit to list and watch it.
var ErrNotWatchable = errors.New("it cannot be listed and watched")

// Served returns the resource as the member serves it. The error wraps ErrKindNotServed if the member does not.
func (m *Member) Served(ctx context.Context, gvr schema.GroupVersionResource) (metav1.APIResource, error) {
	all, err := m.Discover(ctx)
	if err != nil {
		return metav1.APIResource{}, err
	}
	for _, list := range all.Lists {
		if list.GroupVersion != gvr.GroupVersion().String() {
			continue
		}
		if i := slices.IndexFunc(list.APIResources, func(r metav1.APIResource) bool {
			return r.Name == gvr.Resource
		}); i >= 0 {
			r := list.APIResources[i]
			if !slices.Contains(r.Verbs, "list") || !slices.Contains(r.Verbs, "watch") {
				return r, fmt.Errorf("%s in cluster %q: %w", gvr.GroupResource(), m.Name, ErrNotWatchable)
			}
			return r, nil
		}
	}
	return metav1.APIResource{}, fmt.Errorf("cluster %q does not serve %s: %w", m.Name, gvr.String(), ErrKindNotServed)
}
