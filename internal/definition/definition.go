// Package definition watches the CustomResourceDefinitions of the hub's own kinds. While a definition is missing or
// being deleted, its objects may be missing for that reason only, so controllers must not act on it. The server
// recreates definitions.
package definition

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/argosy-io/argosy/api/crds"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/filter"
)

// GVK is the kind of definitions.
var GVK = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}

// Resource is the resource of definitions.
var Resource = GVK.GroupVersion().WithResource("customresourcedefinitions")

// Informer returns an informer of all definitions. It keeps the identity, the generation, the kind and the deletion
// timestamp of each, because schemas are large.
func Informer(c dynamic.Interface) toolscache.SharedIndexInformer {
	informer := dynamicinformer.NewFilteredDynamicInformer(c, Resource, metav1.NamespaceAll, 0, toolscache.Indexers{},
		nil).Informer()
	// A new informer accepts a transform.
	_ = informer.SetTransform(func(obj any) (any, error) {
		crd, ok := obj.(*unstructured.Unstructured)
		if !ok {
			return obj, nil
		}
		gk := match.KindDefined(crd)
		small := &unstructured.Unstructured{Object: map[string]any{"apiVersion": crd.GetAPIVersion(), "kind": crd.GetKind(),
			"metadata": map[string]any{"name": crd.GetName(), "resourceVersion": crd.GetResourceVersion()},
			"spec":     map[string]any{"group": gk.Group, "names": map[string]any{"kind": gk.Kind}}}}
		small.SetGeneration(crd.GetGeneration())
		small.SetDeletionTimestamp(crd.GetDeletionTimestamp())
		return small, nil
	})
	return informer
}

// Watch has the state of the definitions of the hub's own kinds. A nil Watch, for tests, has no broken definition.
type Watch struct {
	// live reads from the API server, not from the cache.
	live client.Reader

	mu     sync.Mutex
	broken map[string]bool // own definitions that are not there, or are being deleted
	// went is the last period when a definition was missing or being deleted, by name.
	went map[string]period
}

type period struct{ from, to time.Time } // to is zero while it lasts

// wentGrace is how long after the return of a definition controllers may still process the deletion of its objects.
const wentGrace = 10 * time.Second

// Names returns the names of the definitions that the hub needs.
func Names() ([]string, error) {
	all, err := crds.Definitions()
	if err != nil {
		return nil, err
	}
	names := make([]string, len(all))
	for i, crd := range all {
		names[i] = crd.Name
	}
	return names, nil
}

// New watches the named definitions with the informers of a cache. Until the cache has synced, each is broken.
func New(ctx context.Context, informers cache.Informers, live client.Reader, names []string) (*Watch, error) {
	w := &Watch{live: live, broken: map[string]bool{}, went: map[string]period{}}
	for _, name := range names {
		w.broken[name] = true
	}
	kind := &metav1.PartialObjectMetadata{}
	kind.SetGroupVersionKind(GVK)
	informer, err := informers.GetInformer(ctx, kind)
	if err == nil {
		_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerDetailedFuncs{
			AddFunc:    func(obj any, first bool) { w.seen(names, obj, true, first) },
			UpdateFunc: func(_, obj any) { w.seen(names, obj, true, false) },
			DeleteFunc: func(obj any) { w.seen(names, obj, false, false) },
		})
	}
	if err != nil {
		return nil, fmt.Errorf("watch definitions: %w", err)
	}
	return w, nil
}

// Live returns a Watch without a cache: Broken is empty, and GoingNow reads from the API server. It is for agents,
// which cannot list definitions.
func Live(reader client.Reader) *Watch { return &Watch{live: reader} }

// BrokenNow reads from an API server which of the hub's definitions are missing or being deleted, sorted.
func BrokenNow(ctx context.Context, config *rest.Config) ([]string, error) {
	own, err := Names()
	if err != nil {
		return nil, err
	}
	c, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for definitions: %w", err)
	}
	there, err := c.Resource(Resource).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list definitions: %w", err)
	}
	whole := map[string]bool{}
	for _, d := range there.Items {
		whole[d.Name] = d.DeletionTimestamp == nil
	}
	broken := slices.DeleteFunc(own, func(name string) bool { return whole[name] })
	slices.Sort(broken)
	return broken, nil
}

// seen records a definition; first is true if it existed when this process started.
func (w *Watch) seen(names []string, obj any, there, first bool) {
	d, ok := filter.LastState(obj).(client.Object)
	if !ok || !slices.Contains(names, d.GetName()) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	name, now := d.GetName(), time.Now()
	switch was, went := w.went[name]; {
	case !there || d.GetDeletionTimestamp() != nil:
		if !went || !was.to.IsZero() {
			w.went[name] = period{from: now}
		}
		w.broken[name] = true
	case w.broken[name]:
		delete(w.broken, name)
		if went || !first { // one that is made now was missing before, perhaps before this process
			w.went[name] = period{was.from, now}
		}
	}
}

// Went reports whether obj, which is being deleted, may be deleted because of its definition: obj was created before
// the definition returned, and was deleted while the definition was missing or being deleted, or at most wentGrace
// later.
func (w *Watch) Went(name string, obj client.Object) bool {
	if w == nil || obj.GetDeletionTimestamp() == nil {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	went, ok := w.went[name]
	// timestamps of objects are truncated to seconds
	if !ok || obj.GetDeletionTimestamp().Before(&metav1.Time{Time: went.from.Add(-2 * time.Second)}) {
		return false
	}
	return went.to.IsZero() || obj.GetCreationTimestamp().Add(time.Second).Before(went.to) &&
		obj.GetDeletionTimestamp().Time.Before(went.to.Add(wentGrace))
}

// WentNow is Went, but also reads from the API server whether the definition is missing or being deleted now.
func (w *Watch) WentNow(ctx context.Context, name string, obj client.Object) (bool, error) {
	if w.Went(name, obj) {
		return true, nil
	}
	return w.GoingNow(ctx, name)
}

// NameOf returns the name of the definition of a kind with a regular plural.
func NameOf(gk schema.GroupKind) string {
	plural, _ := meta.UnsafeGuessKindToResource(gk.WithVersion("v1"))
	return plural.Resource + "." + gk.Group
}

// Broken returns the definitions that are missing or being deleted, sorted.
func (w *Watch) Broken() []string {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(maps.Keys(w.broken))
}

// Going reports whether the definition of that name is missing or being deleted.
func (w *Watch) Going(name string) bool {
	if w == nil {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.broken[name]
}

// GoingNow is Going, read from the API server because the cache may be stale.
func (w *Watch) GoingNow(ctx context.Context, name string) (bool, error) {
	if w == nil || w.Going(name) {
		return w != nil, nil
	}
	d := &metav1.PartialObjectMetadata{}
	d.SetGroupVersionKind(GVK)
	if err := w.live.Get(ctx, client.ObjectKey{Name: name}, d); apierrors.IsNotFound(err) {
		return true, nil
	} else if err != nil {
		return false, fmt.Errorf("get definition %s: %w", name, err)
	}
	return d.DeletionTimestamp != nil, nil
}

// The names of definitions that callers pass to Going and Went.
const (
	Works                   = "works.work.karmada.io"
	ResourceBindings        = "resourcebindings.work.karmada.io"
	ClusterResourceBindings = "clusterresourcebindings.work.karmada.io"
	Clusters                = "clusters.cluster.karmada.io"
	ManifestWorks           = "manifestworks.work.open-cluster-management.io"
	ManagedClusters         = "managedclusters.cluster.open-cluster-management.io"
	ManifestWorkReplicaSets = "manifestworkreplicasets.work.open-cluster-management.io"
	ClusterManagementAddOns = "clustermanagementaddons.addon.open-cluster-management.io"
	ManagedClusterAddOns    = "managedclusteraddons.addon.open-cluster-management.io"
	EnclosedManifests       = "enclosedmanifests.release.argosy.io"
	FederatedHPAs           = "federatedhpas.autoscaling.karmada.io"
	MultiClusterServices    = "multiclusterservices.networking.karmada.io"
	ServiceExports          = "serviceexports.multicluster.x-k8s.io"
	ServiceImports          = "serviceimports.multicluster.x-k8s.io"
)
