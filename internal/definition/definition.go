// Package definition follows the definitions of the hub's own kinds in its API server, and says which are not whole.
// While one is not, its objects may be missing for no other reason, and nothing follows from that. What is put back is
// left to the server.
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
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/argosy-io/argosy/api/crds"
)

// GVK is the kind of definitions.
var GVK = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}

// Watch knows the definitions of the hub's own kinds. None is known as broken to a nil one, for tests of what needs
// none.
type Watch struct {
	// live reads past the cache.
	live client.Reader

	mu     sync.Mutex
	broken map[string]bool // own definitions that are not there, or are being deleted
	// went is when one was last so.
	went map[string]period
}

type period struct{ from, to time.Time } // to is zero while it lasts

// wentGrace is how long after a definition is back the loops may still act on that its objects are gone.
const wentGrace = 10 * time.Second

// Names are the definitions that the hub cannot be without.
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

// New follows the definitions named by the informers of a cache. Until that has read them, each is broken.
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

// Live returns a Watch without a cache: it knows of no broken definition, and GoingNow asks the API server. It is for
// agents, which cannot list definitions.
func Live(reader client.Reader) *Watch { return &Watch{live: reader} }

// BrokenNow asks an API server, once, which of the hub's definitions are missing or being deleted, sorted.
func BrokenNow(ctx context.Context, config *rest.Config) ([]string, error) {
	own, err := Names()
	if err != nil {
		return nil, err
	}
	c, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for definitions: %w", err)
	}
	there, err := c.Resource(schema.GroupVersionResource{Group: GVK.Group, Version: GVK.Version,
		Resource: "customresourcedefinitions"}).List(ctx, metav1.ListOptions{})
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
	if last, missed := obj.(toolscache.DeletedFinalStateUnknown); missed {
		obj = last.Obj
	}
	d, ok := obj.(client.Object)
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

// Went reports whether obj, which is being deleted, may have gone with the definition of that name: it is older than
// that is back, and was deleted while it was missing or being deleted, or just after.
func (w *Watch) Went(name string, obj client.Object) bool {
	if w == nil || obj.GetDeletionTimestamp() == nil {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	went, ok := w.went[name]
	// times in objects are cut to seconds
	if !ok || obj.GetDeletionTimestamp().Before(&metav1.Time{Time: went.from.Add(-2 * time.Second)}) {
		return false
	}
	return went.to.IsZero() || obj.GetCreationTimestamp().Add(time.Second).Before(went.to) &&
		obj.GetDeletionTimestamp().Time.Before(went.to.Add(wentGrace))
}

// WentNow is Went, and asks the API server itself whether the definition is going now.
func (w *Watch) WentNow(ctx context.Context, name string, obj client.Object) (bool, error) {
	if w.Went(name, obj) {
		return true, nil
	}
	return w.GoingNow(ctx, name)
}

// NameOf is the name of the definition of a kind, by the plural that kinds usually have.
func NameOf(gk schema.GroupKind) string {
	plural, _ := meta.UnsafeGuessKindToResource(gk.WithVersion("v1"))
	return plural.Resource + "." + gk.Group
}

// Broken are the definitions that are missing or being deleted, sorted.
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

// GoingNow asks the API server itself, where the cache may be behind what it has to be weighed against.
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

// The names of the definitions whose end is looked at.
const (
	Works                   = "works.work.karmada.io"
	ResourceBindings        = "resourcebindings.work.karmada.io"
	ClusterResourceBindings = "clusterresourcebindings.work.karmada.io"
	Clusters                = "clusters.cluster.karmada.io"
	ManifestWorks           = "manifestworks.work.open-cluster-management.io"
	EnclosedManifests       = "enclosedmanifests.release.argosy.io"
	FederatedHPAs           = "federatedhpas.autoscaling.karmada.io"
	MultiClusterServices    = "multiclusterservices.networking.karmada.io"
	ServiceExports          = "serviceexports.multicluster.x-k8s.io"
	ServiceImports          = "serviceimports.multicluster.x-k8s.io"
)
