// Package template holds what the hub knows of templates: one informer for each kind that somebody asked for, and none
// for the rest. Which kinds matter, and what follows from a template, is decided by the controllers that ask.
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
	"github.com/argosy-io/argosy/internal/core/dependency"
	"github.com/argosy-io/argosy/internal/core/propagate"
)

// Handler is told of every change of an object of a watched kind: was is nil when it appears, is when it is gone.
// Both are shared and never to be changed. It must not block.
type Handler func(was, is *unstructured.Unstructured)

// Store reads templates of any kind, from memory where the kind is watched. What it returns is shared: copy before
// changing. A kind is named by group and kind; the objects come in the version that the hub prefers.
//
// A kind that somebody wanted once is watched until the hub stops or stops serving it. Policies come and go more
// often than kinds, and a kind without templates costs one idle watch.
type Store struct {
	client dynamic.Interface
	mapper meta.ResettableRESTMapper
	// wake holds at most one token: there may be a kind to open, or to look at again.
	wake chan struct{}

	mu       sync.RWMutex
	kinds    map[schema.GroupKind]*kind
	handlers []Handler
	// changed are the kinds whose definition moved since they were opened.
	changed map[schema.GroupKind]bool
	// deletions are the kinds whose definition was seen to be deleted as the API server does that: after all objects of
	// it.
	deletions map[schema.GroupKind]bool
	// definitions is nil before Start.
	definitions cache.SharedIndexInformer

	sidecars sidecars
}

// kind is a kind that somebody wants.
type kind struct {
	resource schema.GroupVersionResource
	// informer is nil until the kind was found; unserved says that it was looked for and is not there.
	informer cache.SharedIndexInformer
	unserved bool
	stop     context.CancelFunc
}

// New reads through the two clients. Nothing is watched before Start.
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

// Want has the kinds watched from now on. It is cheap for a kind that is watched already; one that is not served yet
// is picked up when its definition appears. Kinds that never hold templates are passed over.
func (s *Store) Want(kinds ...schema.GroupKind) {
	for _, gk := range kinds {
		s.wanted(gk)
	}
}

// Kinds are those that somebody wanted, in no order.
func (s *Store) Kinds() []schema.GroupKind {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Collect(maps.Keys(s.kinds))
}

// Wanted says whether somebody wanted the kind, without wanting it.
func (s *Store) Wanted(gk schema.GroupKind) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.kinds[gk] != nil
}

// Served says whether a kind that was wanted is one that the hub serves, as far as is known.
func (s *Store) Served(gk schema.GroupKind) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	k := s.kinds[gk]
	return k != nil && k.informer != nil
}

// Synced says whether the kind is known wholly: each of its objects is in memory. So it is when the hub does not serve
// it.
func (s *Store) Synced(gk schema.GroupKind) bool {
	k := s.wanted(gk)
	return k == nil || k.unserved || (k.informer != nil && k.informer.HasSynced())
}

// Get reads one object, false if there is none; the kind is watched from now on. Until that is in sync the hub is
// asked, with errors as of Live.
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

// Of reads the template of a binding, false if there is none, if another has its name by now, or if its kind is not
// served: nothing may be deleted for that. The error is propagate.ErrReference for a binding that may not be about what
// it names.
func (s *Store) Of(ctx context.Context, b workv1alpha2.Binding) (*unstructured.Unstructured, bool, error) {
	if err := propagate.Misdirected(b); err != nil {
		return nil, false, err
	}
	ref := b.BindingSpec().Resource
	obj, found, err := s.Get(ctx, propagate.GroupKind(ref.APIVersion, ref.Kind), ref.Namespace, ref.Name)
	if meta.IsNoMatchError(err) {
		return nil, false, nil
	}
	if err != nil || !found || ref.UID != "" && obj.GetUID() != ref.UID {
		return nil, false, err
	}
	return obj, true, nil
}

// Live asks the hub for one object, false if there is none. A kind that the hub does not serve is a NoMatch error:
// nothing is known of its objects then, unless somebody deleted its definition, and they went with it.
func (s *Store) Live(ctx context.Context, gk schema.GroupKind, namespace,
	name string) (*unstructured.Unstructured, bool, error) {
	obj, found, err := s.ask(ctx, gk, namespace, name)
	if !meta.IsNoMatchError(err) {
		return obj, found, err
	}
	if s.deleted(gk) {
		return nil, false, nil
	}
	s.missed(gk)
	return nil, false, err
}

// Unknown says whether nothing is known of the objects of a kind that was wanted, as the hub does not serve it.
func (s *Store) Unknown(gk schema.GroupKind) bool {
	k := s.wanted(gk)
	return k != nil && k.unserved && !s.deleted(gk)
}

func (s *Store) ask(ctx context.Context, gk schema.GroupKind, namespace,
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
		// The kind, or this version of it, has gone since the mapper looked.
		s.mapper.Reset()
		return nil, false, &meta.NoKindMatchError{GroupKind: gk, SearchedVersions: []string{m.Resource.Version}}
	}
	if err != nil {
		return nil, false, fmt.Errorf("get %s %s: %w", gk, cache.NewObjectName(namespace, name), err)
	}
	if obj.GetNamespace() != namespace {
		return nil, false, nil // who names an object of his namespace does not name one that is in none
	}
	return obj, true, nil
}

// List is what is in memory of a kind, in no order: of one namespace, or of all if it is empty. A nil selector selects
// all.
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

// HeldBy are the objects in memory, of all kinds, whose claim has the permanent id of a policy.
func (s *Store) HeldBy(policyID string) []*unstructured.Unstructured {
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

// Subscribe has h told of every object that is there, and of every change.
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

// Update writes obj as a whole, if it is still what was read; the answer is what is stored now.
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

// UpdateStatus writes the status of obj, if obj is still what was read.
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

// PatchStatus writes the status of obj, of a kind without a status subresource, and nothing else, whatever it is now.
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

// Delete deletes obj, and what belongs to it after it. One that is gone or was made anew is no error.
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

// wanted is the kind as it is now, nil if it never holds templates; a kind that nobody asked for before is opened soon.
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
		s.again()
	}
	now := *s.kinds[gk]
	return &now
}

// again has the loop look once more.
func (s *Store) again() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

const byHolder = "holder"

var indexers = cache.Indexers{
	cache.NamespaceIndex: cache.MetaNamespaceIndexFunc,
	byHolder: func(obj any) ([]string, error) {
		if holder, held := propagate.Claimed(obj.(*unstructured.Unstructured)); held {
			return []string{holder.ID}, nil
		}
		return nil, nil
	},
	byReach: func(obj any) ([]string, error) { return dependency.Reaches(obj.(*unstructured.Unstructured)), nil },
}

func listen(informer cache.SharedIndexInformer, h Handler) {
	// An informer refuses handlers only after it stopped.
	_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { h(nil, obj.(*unstructured.Unstructured)) },
		UpdateFunc: func(was, is any) { h(was.(*unstructured.Unstructured), is.(*unstructured.Unstructured)) },
		DeleteFunc: func(obj any) {
			if last, unknown := obj.(cache.DeletedFinalStateUnknown); unknown {
				obj = last.Obj
			}
			if u, ok := obj.(*unstructured.Unstructured); ok {
				h(u, nil)
			}
		},
	})
}
