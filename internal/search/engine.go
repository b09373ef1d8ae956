// Package search caches objects of member clusters, and answers reads of them for users: search.karmada.io, with the
// global proxy. Caches start when a ResourceRegistry or a search needs them. They read with the hub's rights, so each
// answer has only what the hub and the member permit the user to read.
package search

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilcache "k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	searchv1alpha1 "github.com/argosy-io/argosy/api/search/v1alpha1"
	"github.com/argosy-io/argosy/internal/apistatus"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/member"
)

const (
	// lookEvery is the interval at which the caches are compared with the registries and the clusters.
	lookEvery = 2 * time.Second
	// retryAfter is the pause before a member is asked again that cannot be followed.
	retryAfter = 5 * time.Second
	// DefaultIdle is the time without a search after which the caches of a searched resource end.
	DefaultIdle = 5 * time.Minute
	// maxSearched bounds the resources that searches cache, and maxSearchedOfUser those that one user began.
	maxSearched, maxSearchedOfUser = 16, 6
)

// DefaultMemoryLimit is the default of Options.Memory.
const DefaultMemoryLimit = 512 << 20

// Members reaches members: *member.Members.
type Members interface {
	Get(name string) (*member.Member, error)
	Refresh(ctx context.Context, name string) (*member.Member, error)
}

// Options of the engine.
type Options struct {
	// Hub reads Clusters and ResourceRegistries from a cache.
	Hub client.Reader
	// Members are used for registries, and Searching for searches alone, so that a search cannot use up the limits of
	// members that registries need.
	Members, Searching Members
	// Memory bounds the objects of registries in bytes. Searches have a quarter of it in addition.
	Memory int64
	// Idle is DefaultIdle unless set.
	Idle time.Duration
	// Authorizer is the API server's; it returns nil before that is built.
	Authorizer func() authorizer.Authorizer
	Permits    Permits
	// Cluster passes a request to a member as its user: the path is that of clusters/proxy.
	Cluster http.Handler
	// Config reaches the hub with full rights, to pass on what no member answers, as the user.
	Config *rest.Config
	// Rows returns an object as kubectl prints it; nil for name and age.
	Rows Rows
}

// Engine has the caches. It does nothing before the first registry or search.
type Engine struct {
	Options
	rights    rights
	places    *places
	registry  member.Budget
	searching member.Budget

	ctx context.Context
	// kick is signaled when a registry or cluster changes.
	kick chan struct{}

	mu sync.Mutex
	// transport reaches the hub with its own rights.
	transport http.RoundTripper
	stores    map[schema.GroupVersionResource]*store
	searched  map[schema.GroupVersionResource]searched
	// registered are the resources of each kind of the registries, as members serve them.
	registered map[schema.GroupVersionKind]schema.GroupVersionResource
	// unserved has the time at which no cluster served a kind.
	unserved map[schema.GroupVersionKind]time.Time
}

// searched is the last search of a resource, and the user who began with it.
type searched struct {
	last time.Time
	user string
}

// New returns an engine that runs until ctx ends.
func New(ctx context.Context, o Options) *Engine {
	o.Memory, o.Idle = cmp.Or(o.Memory, DefaultMemoryLimit), cmp.Or(o.Idle, DefaultIdle)
	const flag = "--search-memory-limit"
	e := &Engine{Options: o, ctx: ctx, kick: make(chan struct{}, 1), places: newPlaces(),
		rights: rights{authorizer: o.Authorizer, permits: o.Permits, known: utilcache.NewLRUExpireCache(maxVerdicts)},
		stores: map[schema.GroupVersionResource]*store{}, searched: map[schema.GroupVersionResource]searched{},
		registered: map[schema.GroupVersionKind]schema.GroupVersionResource{},
		unserved:   map[schema.GroupVersionKind]time.Time{}}
	e.registry.Limit, e.registry.Flag = o.Memory, flag
	e.searching.Limit, e.searching.Flag = o.Memory/4, flag
	return e
}

// Cache returns a cache of the hub's Clusters and ResourceRegistries, for Options.Hub.
func Cache(config *rest.Config) (ctrlcache.Cache, error) {
	s := runtime.NewScheme()
	if err := errors.Join(clusterv1alpha1.AddToScheme(s), searchv1alpha1.AddToScheme(s)); err != nil {
		return nil, err
	}
	mapper := meta.NewDefaultRESTMapper(nil) // no discovery is needed
	mapper.Add(clusterv1alpha1.GroupVersion.WithKind("Cluster"), meta.RESTScopeRoot)
	mapper.AddSpecific(searchv1alpha1.GroupVersion.WithKind("ResourceRegistry"),
		searchv1alpha1.GroupVersion.WithResource("resourceregistries"),
		searchv1alpha1.GroupVersion.WithResource("resourceregistry"), meta.RESTScopeRoot)
	return ctrlcache.New(config, ctrlcache.Options{Scheme: s, Mapper: mapper,
		DefaultTransform: ctrlcache.TransformStripManagedFields()})
}

// Run starts and stops caches until the engine ends.
func (e *Engine) Run() {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-e.ctx.Done():
			return
		case <-tick.C:
		case <-e.kick:
		}
		e.Look(e.ctx)
	}
}

// want is what the registries want of a resource in a cluster; namespaces is nil for all.
type want struct {
	everything bool
	namespaces map[string]bool
}

// Look compares the caches with the registries, the clusters and the last searches, and starts and stops them.
func (e *Engine) Look(ctx context.Context) {
	registries := &searchv1alpha1.ResourceRegistryList{}
	if err := e.Hub.List(ctx, registries, client.UnsafeDisableDeepCopy); err != nil {
		klog.V(1).InfoS("search cannot read the registries", "err", err)
		return // what is cached stays
	}
	e.mu.Lock()
	unused := len(registries.Items) == 0 && len(e.stores) == 0
	e.mu.Unlock()
	if unused {
		return
	}
	clusters := &clusterv1alpha1.ClusterList{}
	if err := e.Hub.List(ctx, clusters, client.UnsafeDisableDeepCopy); err != nil {
		klog.V(1).InfoS("search cannot read the clusters", "err", err)
		return
	}
	wanted := e.wanted(ctx, registries.Items, clusters.Items)
	joined := map[string]bool{}
	for i := range clusters.Items {
		joined[clusters.Items[i].Name] = clusters.Items[i].DeletionTimestamp == nil
	}

	e.mu.Lock()
	defer e.mu.Unlock()
	for gvr, s := range e.searched {
		if time.Since(s.last) > e.Idle {
			delete(e.searched, gvr)
		}
	}
	for gvr, s := range e.stores {
		_, searched := e.searched[gvr]
		s.mu.Lock()
		for cluster, c := range s.sources {
			w, registered := wanted[gvr][cluster]
			keep := joined[cluster] && (registered && c.registered && maps.Equal(w.namespaces, c.namespaces) ||
				!registered && !c.registered && searched)
			if !keep {
				s.remove(c)
			}
		}
		empty := len(s.sources) == 0 && wanted[gvr] == nil && !searched
		s.mu.Unlock()
		if empty {
			delete(e.stores, gvr)
		}
	}
	for gvk, gvr := range e.registered {
		for cluster, w := range wanted[gvr] {
			e.open(gvr, gvk.Kind, cluster, w.namespaces, true)
		}
	}
}

// wanted returns what the registries want, by resource and cluster.
func (e *Engine) wanted(ctx context.Context, registries []searchv1alpha1.ResourceRegistry,
	clusters []clusterv1alpha1.Cluster) map[schema.GroupVersionResource]map[string]want {
	all := map[schema.GroupVersionResource]map[string]want{}
	registered := map[schema.GroupVersionKind]schema.GroupVersionResource{}
	for i := range registries {
		r := &registries[i]
		if !Supported(r) || r.DeletionTimestamp != nil {
			continue
		}
		var targets []*clusterv1alpha1.Cluster
		for j := range clusters {
			if c := &clusters[j]; c.DeletionTimestamp == nil && match.Affinity(&r.Spec.TargetCluster, c) {
				targets = append(targets, c)
			}
		}
		for _, selector := range r.Spec.ResourceSelectors {
			gvk := schema.FromAPIVersionAndKind(selector.APIVersion, selector.Kind)
			gvr, known := e.resourceOf(ctx, gvk, targets)
			if !known {
				continue // the status of the registry says so
			}
			registered[gvk] = gvr
			if all[gvr] == nil {
				all[gvr] = map[string]want{}
			}
			for _, c := range targets {
				all[gvr][c.Name] = all[gvr][c.Name].plus(selector.Namespace)
			}
		}
	}
	e.mu.Lock()
	e.registered = registered
	e.mu.Unlock()
	return all
}

// plus adds a namespace, or all if it is empty.
func (w want) plus(namespace string) want {
	switch {
	case namespace == "" || w.everything:
		return want{everything: true}
	case w.namespaces == nil:
		w.namespaces = map[string]bool{}
	}
	w.namespaces[namespace] = true
	return w
}

// Supported reports whether the hub can cache what a registry selects.
func Supported(r *searchv1alpha1.ResourceRegistry) bool {
	return r.Spec.BackendStore == nil || r.Spec.BackendStore.OpenSearch == nil
}

// resourceOf returns the resource of a kind. It asks the clusters that respond, until one serves the kind.
func (e *Engine) resourceOf(ctx context.Context, gvk schema.GroupVersionKind,
	clusters []*clusterv1alpha1.Cluster) (gvr schema.GroupVersionResource, known bool) {
	e.mu.Lock()
	gvr, known = e.registered[gvk]
	missed := e.unserved[gvk]
	e.mu.Unlock()
	if known || time.Since(missed) < unservedAge {
		return gvr, known
	}
	for _, c := range clusters {
		if membership.KnownNotReady(c) {
			continue
		}
		m, err := e.Members.Get(c.Name)
		if err != nil {
			continue
		}
		if mapping, err := m.Mapping(ctx, gvk); err == nil && mapping.Resource.Version == gvk.Version {
			return mapping.Resource, true
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.unserved[gvk] = time.Now()
	return gvr, false
}

// unservedAge is the time after which the clusters are asked again for a resource that they did not serve.
const unservedAge = 20 * time.Second

// open starts the cache of a resource in a cluster, unless there is one. It must be called with the lock.
func (e *Engine) open(gvr schema.GroupVersionResource, kind, cluster string, namespaces map[string]bool,
	registered bool) {
	s := e.stores[gvr]
	if s == nil {
		s = newStore(gvr, kind)
		e.stores[gvr] = s
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sources[cluster] != nil {
		return
	}
	ctx, stop := context.WithCancel(e.ctx)
	c := &source{store: s, cluster: cluster, namespaces: namespaces, registered: registered, stop: stop}
	s.sources[cluster] = c
	if registered {
		go follow(ctx, c, e.Members, &e.registry)
	} else {
		go follow(ctx, c, e.Searching, &e.searching)
	}
}

// follow fills a cache until ctx ends.
func follow(ctx context.Context, c *source, members Members, budget *member.Budget) {
	for ctx.Err() == nil {
		pause := retryAfter
		m, err := members.Refresh(ctx, c.cluster)
		if err == nil {
			_, err = m.Served(ctx, c.store.gvr)
		}
		switch {
		case err == nil:
			namespace := ""
			if len(c.namespaces) == 1 {
				namespace = slices.Collect(maps.Keys(c.namespaces))[0]
			}
			followUntilStale(ctx, members, m, c, namespace, budget)
			err = errNotListed
		case errors.Is(err, member.ErrKindNotServed):
			c.Replace(nil) // there are no objects
			err, pause = nil, unservedAge
		}
		if ctx.Err() != nil {
			return
		}
		c.State(err)
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// refreshEvery is the interval at which the credentials of a member that is followed are read again.
const refreshEvery = 30 * time.Second

// followUntilStale follows a member until ctx ends, or another member has its name.
func followUntilStale(ctx context.Context, members Members, m *member.Member, c *source, namespace string,
	budget *member.Budget) {
	ctx, stop := context.WithCancel(ctx)
	var ended sync.WaitGroup
	ended.Go(func() {
		tick := time.NewTicker(refreshEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if now, err := members.Refresh(ctx, c.cluster); err == nil && now != m {
				stop()
			}
		}
	})
	member.Follow(ctx, m, c.store.gvr, namespace, member.Mirror[*entry](c), budget)
	stop()
	ended.Wait()
}

// registeredStore returns the caches of a resource that a registry selects; nil if none does.
func (e *Engine) registeredStore(gvr schema.GroupVersionResource) *store {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, known := range e.registered {
		if known == gvr {
			return e.stores[gvr]
		}
	}
	return nil
}

// searchedStore returns the caches of a resource in clusters, and starts those that are missing.
func (e *Engine) searchedStore(ctx context.Context, user string, gvr schema.GroupVersionResource,
	clusters []string) (*store, error) {
	e.mu.Lock()
	known, kind := e.stores[gvr], ""
	e.mu.Unlock()
	if known != nil {
		kind = known.kind
	}
	for i := 0; i < len(clusters) && kind == ""; i++ {
		if m, err := e.Searching.Get(clusters[i]); err == nil {
			if r, err := m.Served(ctx, gvr); err == nil {
				kind = r.Kind
			}
		}
	}
	if kind == "" {
		return nil, apistatus.Error(http.StatusNotFound, metav1.StatusReasonNotFound,
			fmt.Sprintf("no cluster that you may read and that responds serves %s", gvr.String()))
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	known = e.stores[gvr]
	if known != nil && known.registeredIn(clusters) {
		return known, nil // registries cache all of it
	}
	search, began := e.searched[gvr]
	if !began {
		search.user = user
		own := 0
		for _, other := range e.searched {
			if other.user == user {
				own++
			}
		}
		if len(e.searched) >= maxSearched || own >= maxSearchedOfUser {
			return nil, apistatus.Error(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, fmt.Sprintf("searches "+
				"already cache %d resources, %d of them for you (at most %d and %d): use a ResourceRegistry for resources that "+
				"are searched often, or try again in %v", len(e.searched), own, maxSearched, maxSearchedOfUser, e.Idle))
		}
	}
	search.last = time.Now()
	e.searched[gvr] = search
	for _, cluster := range clusters {
		e.open(gvr, kind, cluster, nil, false)
	}
	return e.stores[gvr], nil
}

// clusters returns the names of the clusters of the hub, sorted, and those that do not respond.
func (e *Engine) clusters(ctx context.Context) (names []string, silent map[string]bool, err error) {
	all := &clusterv1alpha1.ClusterList{}
	if err := e.Hub.List(ctx, all, client.UnsafeDisableDeepCopy); err != nil {
		return nil, nil, apistatus.Error(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable,
			fmt.Sprintf("read the clusters: %v", err))
	}
	silent = map[string]bool{}
	for i := range all.Items {
		names = append(names, all.Items[i].Name)
		silent[all.Items[i].Name] = membership.KnownNotReady(&all.Items[i])
	}
	slices.Sort(names)
	return names, silent, nil
}

// Usage is the memory of the caches.
type Usage struct {
	// Registries and Searches are bytes.
	Registries, Searches int64
	// Objects are the numbers of objects by resource.
	Objects map[schema.GroupResource]int
	Watches int
}

// Usage returns the memory of the caches now.
func (e *Engine) Usage() Usage {
	e.mu.Lock()
	defer e.mu.Unlock()
	u := Usage{Registries: e.registry.Used(), Searches: e.searching.Used(), Objects: map[schema.GroupResource]int{}}
	for gvr, s := range e.stores {
		states, _ := s.states()
		for _, state := range states {
			u.Objects[gvr.GroupResource()] += state.objects
		}
		s.mu.Lock()
		u.Watches += s.watches
		s.mu.Unlock()
	}
	return u
}

// Report is the state of what a registry selects.
type Report struct {
	Resources, Clusters, Objects int
	Bytes                        int64
	// Problems has a sentence for each resource and cluster that is not cached, sorted.
	Problems []string
}

// Report returns the state of a registry. clusters are those of the hub.
func (e *Engine) Report(r *searchv1alpha1.ResourceRegistry, clusters []clusterv1alpha1.Cluster) Report {
	report, counted := Report{}, map[schema.GroupVersionResource]bool{}
	for _, selector := range r.Spec.ResourceSelectors {
		gvk := schema.FromAPIVersionAndKind(selector.APIVersion, selector.Kind)
		e.mu.Lock()
		gvr, known := e.registered[gvk]
		s := e.stores[gvr]
		e.mu.Unlock()
		if !known || s == nil {
			report.Problems = append(report.Problems, fmt.Sprintf("no selected cluster that responds serves %s of %s",
				selector.Kind, selector.APIVersion))
			continue
		}
		if counted[gvr] {
			continue
		}
		counted[gvr] = true
		report.Resources++
		states, _ := s.states()
		targets := 0
		for i := range clusters {
			c := &clusters[i]
			if !match.Affinity(&r.Spec.TargetCluster, c) {
				continue
			}
			targets++
			state, cached := states[c.Name]
			err := state.err
			if !cached {
				err = errNotListed
			}
			if membership.KnownNotReady(c) {
				err = errors.New("the cluster is not Ready")
			}
			if err != nil {
				report.Problems = append(report.Problems, fmt.Sprintf("%s in cluster %s: %s", gvr.GroupResource(), c.Name,
					reason(err)))
			}
			report.Objects += state.objects
			report.Bytes += state.bytes
		}
		report.Clusters = max(report.Clusters, targets)
	}
	slices.Sort(report.Problems)
	return report
}
