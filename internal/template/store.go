// Package template caches templates with one informer per wanted kind. Controllers decide which kinds they want.
package template

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/cache"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/core/workload/companion"
	"github.com/argosy-io/argosy/internal/filter"
)

// Handler receives each change of an object of a watched kind. was is nil for a new object, is is nil for a deleted
// one. Both are shared and read-only. It must not block.
type Handler func(was, is *unstructured.Unstructured)

// Store reads templates of any kind, from the cache if the kind is watched. Results are shared: copy before modifying.
// Kinds are named by group and kind, and objects have the version that the hub prefers.
//
// A wanted kind is watched until the hub stops or no longer serves it. Policies change more often than kinds, and a
// watch without objects is cheap.
type Store struct {
	client dynamic.Interface
	mapper meta.ResettableRESTMapper
	// wake has a token if there may be a kind to open or to check again.
	wake chan struct{}

	mu       sync.RWMutex
	kinds    map[schema.GroupKind]*kind
	handlers []Handler
	// changed are the kinds whose CRD changed since they were opened.
	changed map[schema.GroupKind]bool
	// deletions are the kinds whose CRD was deleted in the regular way, after all its objects.
	deletions map[schema.GroupKind]bool
	// definitions is nil before Start.
	definitions cache.SharedIndexInformer

	sidecars sidecars
}

type kind struct {
	resource schema.GroupVersionResource
	// informer is nil until the kind is found. unserved is true if the hub does not serve it.
	informer cache.SharedIndexInformer
	unserved bool
	stop     context.CancelFunc
}

// New returns a store with the two clients. It watches nothing before Start.
func New(client dynamic.Interface, d discovery.DiscoveryInterface) *Store {
	return newStore(client, restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(d)))
}

func newStore(client dynamic.Interface, mapper meta.ResettableRESTMapper) *Store {
	return &Store{
		client:  client,
		mapper:  mapper,
		wake:    make(chan struct{}, 1),
		kinds:   map[schema.GroupKind]*kind{},
		changed: map[schema.GroupKind]bool{},

		deletions: map[schema.GroupKind]bool{},
	}
}

// Want starts to watch the kinds, if necessary. A kind that is not served yet is watched as soon as its CRD appears.
// Kinds that never have templates are ignored.
func (s *Store) Want(kinds ...schema.GroupKind) {
	for _, gk := range kinds {
		s.wanted(gk)
	}
}

// Kinds returns the wanted kinds in no order.
func (s *Store) Kinds() []schema.GroupKind {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Collect(maps.Keys(s.kinds))
}

// Wanted reports whether the kind is wanted.
func (s *Store) Wanted(gk schema.GroupKind) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.kinds[gk] != nil
}

// Served reports whether the hub is known to serve a wanted kind.
func (s *Store) Served(gk schema.GroupKind) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	k := s.kinds[gk]
	return k != nil && k.informer != nil
}

// Synced reports whether all objects of the kind are cached. It is true if the hub does not serve the kind.
func (s *Store) Synced(gk schema.GroupKind) bool {
	k := s.wanted(gk)
	return k == nil || k.unserved || (k.informer != nil && k.informer.HasSynced())
}

// Get returns one object and whether it exists, and starts to watch the kind. Until the cache is synced it reads from
// the API server, with the errors of Live.
func (s *Store) Get(ctx context.Context, gk schema.GroupKind, namespace,
	name string) (*unstructured.Unstructured, bool, error) {
	if k := s.wanted(gk); k != nil && k.informer != nil && k.informer.HasSynced() {
		obj, found, err := k.informer.GetIndexer().GetByKey(cache.NewObjectName(namespace, name).String())
		if err != nil || !found {
			return nil, false, err
		}
		return obj.(*unstructured.Unstructured), true, nil
	}
	return s.Live(ctx, gk, namespace, name)
}

// ForBinding returns the template of a binding. It returns false if the template does not exist, if another object has
// its name, or if the kind is not served: nothing may be deleted because of that. The error is propagate.ErrReference
// if the binding may not refer to this object.
func (s *Store) ForBinding(ctx context.Context, b workv1alpha2.Binding) (*unstructured.Unstructured, bool, error) {
	if err := propagate.Misdirected(b); err != nil {
		return nil, false, err
	}
	ref := b.BindingSpec().Resource
	obj, found, err := s.Get(ctx, match.GroupKind(ref.APIVersion, ref.Kind), ref.Namespace, ref.Name)
	if meta.IsNoMatchError(err) {
		return nil, false, nil
	}
	if err != nil || !found || ref.UID != "" && obj.GetUID() != ref.UID {
		return nil, false, err
	}
	return obj, true, nil
}

// Live reads one object from the API server and reports whether it exists. For a kind that is not served it returns a
// NoMatch error, because the objects are unknown, unless the CRD was deleted together with them.
func (s *Store) Live(ctx context.Context, gk schema.GroupKind, namespace,
	name string) (*unstructured.Unstructured, bool, error) {
	obj, found, err := s.readLive(ctx, gk, namespace, name)
	if !meta.IsNoMatchError(err) {
		return obj, found, err
	}
	if s.deleted(gk) {
		return nil, false, nil
	}
	s.missed(gk)
	return nil, false, err
}

// Unknown reports whether the objects of a wanted kind are unknown because the hub does not serve it.
func (s *Store) Unknown(gk schema.GroupKind) bool {
	k := s.wanted(gk)
	return k != nil && k.unserved && !s.deleted(gk)
}

func (s *Store) readLive(ctx context.Context, gk schema.GroupKind, namespace,
	name string) (*unstructured.Unstructured, bool, error) {
	m, err := s.mapper.RESTMapping(gk)
	if err != nil {
		return nil, false, err
	}
	obj, err := s.client.Resource(m.Resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if commit.Absent(err) {
		return nil, false, nil
	}
	if apierrors.IsNotFound(err) {
		// The kind or version has disappeared since the last discovery.
		s.mapper.Reset()
		return nil, false, &meta.NoKindMatchError{GroupKind: gk, SearchedVersions: []string{m.Resource.Version}}
	}
	if err != nil {
		return nil, false, fmt.Errorf("get %s %s: %w", gk, cache.NewObjectName(namespace, name), err)
	}
	if obj.GetNamespace() != namespace {
		return nil, false, nil // a namespaced reference does not match a cluster-scoped object
	}
	return obj, true, nil
}

// List returns the cached objects of a kind in no order, of one namespace or of all if it is empty. A nil selector
// selects all.
func (s *Store) List(gk schema.GroupKind, namespace string, selector labels.Selector) []*unstructured.Unstructured {
	k := s.wanted(gk)
	if k == nil || k.informer == nil {
		return nil
	}
	var objs []any
	if namespace == "" {
		objs = k.informer.GetIndexer().List()
	} else {
		// The index exists, so there is no error.
		objs, _ = k.informer.GetIndexer().ByIndex(cache.NamespaceIndex, namespace)
	}
	var out []*unstructured.Unstructured
	for _, obj := range objs {
		if u := obj.(*unstructured.Unstructured); selector == nil || selector.Matches(labels.Set(u.GetLabels())) {
			out = append(out, u)
		}
	}
	return out
}

// ClaimedBy returns the cached objects of all kinds that the policy with the permanent id claims.
func (s *Store) ClaimedBy(policyID string) []*unstructured.Unstructured {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var out []*unstructured.Unstructured
	for _, k := range s.kinds {
		if k.informer == nil {
			continue
		}
		objs, _ := k.informer.GetIndexer().ByIndex(byHolder, policyID)
		for _, obj := range objs {
			out = append(out, obj.(*unstructured.Unstructured))
		}
	}
	return out
}

// Subscribe calls h for each existing object and for each change.
func (s *Store) Subscribe(h Handler) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handlers = append(s.handlers, h)
	for _, k := range s.kinds {
		if k.informer != nil {
			listen(k.informer, h)
		}
	}
}

// Update replaces obj if it has not changed since it was read, and returns the stored object.
func (s *Store) Update(ctx context.Context, obj *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	c, err := s.resource(obj)
	if err != nil {
		return nil, err
	}
	out, err := c.Update(ctx, obj, metav1.UpdateOptions{})
	if err != nil {
		return nil, fmt.Errorf("update %s %s: %w", obj.GetKind(), cache.MetaObjectToName(obj), err)
	}
	return out, nil
}

// UpdateStatus writes the status of obj if obj has not changed since it was read.
func (s *Store) UpdateStatus(ctx context.Context, obj *unstructured.Unstructured) error {
	c, err := s.resource(obj)
	if err != nil {
		return err
	}
	if _, err := c.UpdateStatus(ctx, obj, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("write status of %s %s: %w", obj.GetKind(), cache.MetaObjectToName(obj), err)
	}
	return nil
}

// PatchStatus writes only the status of obj, for a kind without a status subresource, whatever its current version.
func (s *Store) PatchStatus(ctx context.Context, obj *unstructured.Unstructured) error {
	c, err := s.resource(obj)
	if err != nil {
		return err
	}
	patch, err := json.Marshal([]map[string]any{
		{"op": "test", "path": "/metadata/uid", "value": obj.GetUID()},
		{"op": "add", "path": "/status", "value": obj.Object["status"]},
	})
	if err == nil {
		_, err = c.Patch(ctx, obj.GetName(), types.JSONPatchType, patch, metav1.PatchOptions{})
	}
	if err != nil {
		return fmt.Errorf("write status of %s %s: %w", obj.GetKind(), cache.MetaObjectToName(obj), err)
	}
	return nil
}

// Delete deletes obj with its dependents in the background. An object that is gone or was recreated is no error.
func (s *Store) Delete(ctx context.Context, obj *unstructured.Unstructured) error {
	c, err := s.resource(obj)
	if err != nil {
		return err
	}
	uid, background := obj.GetUID(), metav1.DeletePropagationBackground
	err = c.Delete(ctx, obj.GetName(), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid},
		PropagationPolicy: &background})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("delete %s %s: %w", obj.GetKind(), cache.MetaObjectToName(obj), err)
	}
	return nil
}

func (s *Store) resource(obj *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	gvk := obj.GroupVersionKind()
	m, err := s.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil, err
	}
	return s.client.Resource(m.Resource).Namespace(obj.GetNamespace()), nil
}

// wanted returns the kind; nil if it never has templates. A new kind is opened soon.
func (s *Store) wanted(gk schema.GroupKind) *kind {
	if !propagate.Propagable(gk) {
		return nil
	}
	s.mu.RLock()
	k, known := s.kinds[gk]
	if known {
		now := *k
		s.mu.RUnlock()
		return &now
	}
	s.mu.RUnlock()

	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.kinds[gk]; !known {
		s.kinds[gk] = &kind{}
		s.wakeUp()
	}
	now := *s.kinds[gk]
	return &now
}

// wakeUp triggers another pass of the loop.
func (s *Store) wakeUp() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

const byHolder = "holder"

var indexers = cache.Indexers{
	cache.NamespaceIndex: cache.MetaNamespaceIndexFunc,
	byHolder: func(obj any) ([]string, error) {
		if holder, claimed := propagate.Claimed(obj.(*unstructured.Unstructured)); claimed {
			return []string{holder.ID}, nil
		}
		return nil, nil
	},
	byReach: func(obj any) ([]string, error) { return companion.Reaches(obj.(*unstructured.Unstructured)), nil },
	byScaled: func(obj any) ([]string, error) {
		if workload, ok := execute.TargetOf(obj.(*unstructured.Unstructured)); ok {
			return []string{workload.String()}, nil
		}
		return nil, nil
	},
}

func listen(informer cache.SharedIndexInformer, h Handler) {
	// An informer rejects handlers only after it has stopped.
	_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { h(nil, obj.(*unstructured.Unstructured)) },
		UpdateFunc: func(was, is any) { h(was.(*unstructured.Unstructured), is.(*unstructured.Unstructured)) },
		DeleteFunc: func(obj any) {
			if u, ok := filter.LastState(obj).(*unstructured.Unstructured); ok {
				h(u, nil)
			}
		},
	})
}
