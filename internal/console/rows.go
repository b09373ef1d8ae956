package console

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	ocmv1 "github.com/argosy-io/argosy/api/ocm/work/v1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
	"github.com/argosy-io/argosy/internal/core/explain/overview"
	"github.com/argosy-io/argosy/internal/core/explain/state"
	"github.com/argosy-io/argosy/internal/core/hub/upkeep"
	"github.com/argosy-io/argosy/internal/core/workload/pods"
	"github.com/argosy-io/argosy/internal/history"
	"github.com/argosy-io/argosy/internal/scope"
	"github.com/argosy-io/argosy/internal/why"
)

const (
	// freshFor is the maximum age of the state that all streams share, and so the minimum time between two reads. Without
	// a stream nothing is read.
	freshFor = 100 * time.Millisecond
	// freshRemote applies while the controllers run in another hub, so that each read is a list of the API.
	freshRemote = 3 * time.Second
	// freshWorks applies there to ManifestWorks, of which there can be many thousands.
	freshWorks = 30 * time.Second
	// pageSize is the number of objects that one request to the API returns.
	pageSize = 500
	// freshPods applies to facts that are costly to collect.
	freshPods = 3 * time.Second
	// kindsAge is the maximum age of the discovered kinds of the hub.
	kindsAge = 30 * time.Second
)

// row is one row of a table, encoded once for all streams. It does not change.
type row struct {
	key  string
	json []byte
	sum  uint64
}

var seed = maphash.MakeSeed()

func newRow(key string, v any) *row {
	encoded, err := json.Marshal(v)
	if err != nil {
		encoded = []byte("null") // our rows can be encoded
	}
	return &row{key, encoded, maphash.Bytes(seed, encoded)}
}

// fleetState is the fleet at one moment. It does not change.
type fleetState struct {
	at time.Time
	// The objects of each kind are sorted by the keys of their rows.
	clusters  []*cluster
	workloads []*workload
	releases  []*releaseObject
	works     []*manifestWork
	troubled  []pods.Workload
	hub       []upkeep.Finding
}

// changedKeys returns the keys whose values differ in two maps.
func changedKeys[K, V comparable](a, b map[K]V) sets.Set[K] {
	changed := sets.New[K]()
	for key, x := range a {
		if y, found := b[key]; !found || x != y {
			changed.Insert(key)
		}
	}
	for key := range b {
		if _, found := a[key]; !found {
			changed.Insert(key)
		}
	}
	return changed
}

// standing is what of a cluster its workloads show.
type standing struct{ lost, leaving bool }

// factsOfWorkloads returns what the rows of workloads show beside their bindings.
func (s *fleetState) factsOfWorkloads() (state.Facts, map[string]standing) {
	clusters, all := make(map[string]*clusterv1alpha1.Cluster, len(s.clusters)), make(map[string]standing, len(s.clusters))
	for _, c := range s.clusters {
		clusters[c.facts.Name] = c.facts.cluster
		all[c.facts.Name] = standing{membership.OutageOf(c.facts.cluster) != nil, c.facts.cluster.DeletionTimestamp != nil}
	}
	return state.Facts{Troubled: state.TroubledOf(s.troubled),
		Cluster: func(name string) *clusterv1alpha1.Cluster { return clusters[name] }}, all
}

// rows projects the fleet into rows, for all streams together.
type rows struct {
	o   Options
	now func() time.Time

	mu             sync.Mutex
	last           *fleetState
	read           time.Time // when last was found to be up to date
	extra          time.Time // when the facts about pods and the hub were read
	works          time.Time // when ManifestWorks were read
	remote         client.Reader
	tracker        *changeTracker // of the cache that last was read from; nil if it was read from the API
	remotePolicies *policies      // read from the API; nil for none
	// facts and standing are those with which the rows of workloads were made.
	facts    state.Facts
	standing map[string]standing
}

func newRows(o Options) *rows { return &rows{o: o, now: time.Now} }

// current returns the fleet, read at most every freshFor. It is the same value as long as nothing has changed.
func (r *rows) current(ctx context.Context) (*fleetState, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now, fresh, cached := r.now(), freshFor, r.o.Cached()
	if cached == nil {
		fresh = freshRemote
	}
	if r.last != nil && now.Sub(r.read) < fresh {
		return r.last, nil
	}
	next := fleetState{}
	if r.last != nil {
		next = *r.last
	}
	extra := now.Sub(r.extra) >= freshPods
	if extra {
		next.hub, next.troubled = nil, nil
		if r.o.Findings != nil {
			next.hub = r.o.Findings()
		}
		if r.o.Troubled != nil {
			// Where the controllers do not run, or do not know yet, nothing is known of pods.
			next.troubled, _, _ = r.o.Troubled(ctx, "", nil)
		}
	}
	changed, err := r.nextLocked(ctx, cached, &next, extra)
	if err != nil {
		r.stopTracking() // the recorded changes are lost: the next read lists all objects
		return nil, err
	}
	next.at, r.read = now, now
	if extra {
		r.extra = now
		changed = changed || !reflect.DeepEqual(next.hub, r.last.hub) || !reflect.DeepEqual(next.troubled, r.last.troubled)
	}
	if changed {
		r.last = &next
	}
	return r.last, nil
}

// nextLocked updates the objects of the last state in next, and reports whether any row changed. extra is true if the
// facts about pods were read. Of a cache whose changes are tracked it reads only what changed; elsewhere it lists all
// objects. The caller has locked mu.
func (r *rows) nextLocked(ctx context.Context, cached Cache, next *fleetState, extra bool) (changed bool, err error) {
	reader, err := r.readerLocked(cached)
	if err != nil {
		return false, err
	}
	var only changes
	switch {
	case r.tracker != nil && r.tracker.cache == cached:
		only = r.tracker.take()
	case cached != nil:
		r.stopTracking()
		if r.tracker, err = trackChanges(ctx, cached); err != nil {
			return false, err
		}
	default:
		r.stopTracking()
	}
	c, clustersErr := clusterKind.update(ctx, reader, &next.clusters, only.clusters, nil)
	// The rows of workloads show the states of clusters and pods, too. If those change, their rows are made again.
	facts, standing := r.facts, r.standing
	if c || extra || facts.Cluster == nil {
		facts, standing = next.factsOfWorkloads()
	}
	again := sets.New[types.NamespacedName]()
	clusters, troubled := changedKeys(r.standing, standing), changedKeys(r.facts.Troubled, facts.Troubled)
	for _, w := range next.workloads {
		if len(clusters)+len(troubled) == 0 {
			break
		}
		o := &w.facts.Object
		if slices.ContainsFunc(w.facts.Places, func(p state.Place) bool {
			return clusters.Has(p.Cluster) || troubled.Has(state.At{Kind: schema.GroupKind{Group: o.Group, Kind: o.Kind},
				Namespace: o.Namespace, Name: o.Name, Cluster: p.Cluster})
		}) {
			again.Insert(w.name)
		}
	}
	w, bindingsErr := bindingKind(facts).update(ctx, reader, &next.workloads, only.bindings, again)
	l, releasesErr := releaseKind.update(ctx, reader, &next.releases, only.releases, nil)
	var m bool
	var worksErr error
	works := r.works
	if now := r.now(); cached != nil || r.last == nil || now.Sub(works) >= freshWorks {
		works = now
		m, worksErr = workKind.update(ctx, reader, &next.works, only.works, nil)
	}
	if err := errors.Join(clustersErr, bindingsErr, releasesErr, worksErr); err != nil {
		return false, err
	}
	r.facts, r.standing, r.works = facts, standing, works
	return r.last == nil || c || w || l || m, nil
}

// reader returns the cache of this hub's controllers, or a reader of the API while they run elsewhere.
func (r *rows) reader() (client.Reader, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.readerLocked(r.o.Cached())
}

// readerLocked is reader for a caller that has locked mu.
func (r *rows) readerLocked(cached Cache) (client.Reader, error) {
	if cached != nil {
		return cached, nil
	}
	if r.remote == nil {
		mapper := meta.NewDefaultRESTMapper(nil)
		mapper.Add(clusterv1alpha1.GroupVersion.WithKind("Cluster"), meta.RESTScopeRoot)
		mapper.Add(workv1alpha2.GroupVersion.WithKind("ResourceBinding"), meta.RESTScopeNamespace)
		mapper.Add(workv1alpha2.GroupVersion.WithKind("ClusterResourceBinding"), meta.RESTScopeRoot)
		mapper.Add(releasev1alpha1.GroupVersion.WithKind("Release"), meta.RESTScopeNamespace)
		for kind := range history.PolicyResources {
			at := meta.RESTScopeNamespace
			if strings.HasPrefix(kind, "Cluster") {
				at = meta.RESTScopeRoot
			}
			mapper.Add(policyv1alpha1.GroupVersion.WithKind(kind), at)
		}
		mapper.Add(ocmv1.GroupVersion.WithKind("ManifestWork"), meta.RESTScopeNamespace)
		mapper.Add(corev1.SchemeGroupVersion.WithKind("Namespace"), meta.RESTScopeRoot)
		c, err := client.New(r.o.Config, client.Options{Scheme: why.Scheme(), Mapper: mapper})
		if err != nil {
			return nil, fmt.Errorf("create the console's client: %w", err)
		}
		r.remote = paged{c}
	}
	return r.remote, nil
}

// paged lists objects in pages.
type paged struct{ client.Reader }

func (p paged) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	var all []runtime.Object
	for token := ""; ; {
		page, _ := list.DeepCopyObject().(client.ObjectList) // the copy of a list is one
		err := p.Reader.List(ctx, page, append(slices.Clone(opts), client.Limit(pageSize), client.Continue(token))...)
		if err != nil {
			return err
		}
		items, err := meta.ExtractList(page)
		if err != nil {
			return fmt.Errorf("read the objects of a list: %w", err)
		}
		all = append(all, items...)
		if token = page.GetContinue(); token == "" {
			return meta.SetList(list, all)
		}
	}
}

// policies are all policies of a hub at one moment.
type policies struct {
	at           time.Time
	propagations []policyv1alpha1.Propagation
	overrides    []policyv1alpha1.Override
}

// policies returns those of the controllers' cache, or of the API, read at most every freshRemote for all users.
func (r *rows) policies(ctx context.Context) (*policies, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now, cached := r.now(), r.o.Cached()
	if cached == nil && r.remotePolicies != nil && now.Sub(r.remotePolicies.at) < freshRemote {
		return r.remotePolicies, nil
	}
	reader, err := r.readerLocked(cached)
	if err != nil {
		return nil, err
	}
	all := &policies{at: now}
	if all.propagations, err = scope.Propagations.List(ctx, reader, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	if all.overrides, err = scope.Overrides.List(ctx, reader, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	if r.remotePolicies = nil; cached == nil {
		r.remotePolicies = all
	}
	return all, nil
}

// forget drops the rows when no stream is open.
func (r *rows) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last, r.extra, r.remotePolicies = nil, time.Time{}, nil
	r.stopTracking()
}

// stopTracking stops the tracker, if there is one. The caller has locked mu.
func (r *rows) stopTracking() {
	if r.tracker != nil {
		r.tracker.stop()
		r.tracker = nil
	}
}

// kinds knows the hub's kinds.
type kinds struct {
	config *rest.Config
	now    func() time.Time

	mu    sync.Mutex
	known meta.RESTMapper
	at    time.Time
}

func (k *kinds) mapper() (meta.RESTMapper, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.known != nil && k.now().Sub(k.at) < kindsAge {
		return k.known, nil
	}
	_, mapper, err := why.Connect(k.config)
	if err != nil {
		return nil, err
	}
	k.known, k.at = mapper, k.now()
	return mapper, nil
}

// view is the part of a topic that a user may see.
type view struct {
	rows []*row
	// totals has figures beside the rows.
	totals any
	// missing has the rights that keep rows from the user.
	missing []*Missing
}

// totals has the figures of the fleet that a user may see.
type totals struct {
	Clusters  int `json:"clusters"`
	NotReady  int `json:"notReady"`
	Workloads int `json:"workloads"`
	Bad       int `json:"bad"`
	Unplaced  int `json:"unplaced"`
	// Waiting is the number of releases that wait for a person.
	Waiting int `json:"waiting"`
	// More is the number of items that are not sent.
	More int `json:"more,omitempty"`
}

var (
	listClusters = right{verb: "list", group: clusterv1alpha1.GroupVersion.Group, resource: "clusters"}
	listBindings = right{verb: "list", group: workv1alpha2.GroupVersion.Group, resource: "resourcebindings"}

	listManifestWorks = right{verb: "list", group: ocmv1.GroupVersion.Group, resource: "manifestworks"}
)

// visible returns the clusters and workloads that a user may list. A workload needs the right to list its kind and the
// bindings of its namespace.
func (a *API) visible(ctx context.Context, u user.Info, s *fleetState) (clusters []*cluster, workloads []*workload,
	missing []*Missing) {
	if a.rights.allows(ctx, u, listClusters) {
		clusters = s.clusters
	} else {
		missing = append(missing, listClusters.missing())
	}
	seen := a.sees(ctx, u)
	workloads = make([]*workload, 0, len(s.workloads))
	for _, w := range s.workloads {
		if seen(w.facts.Object) {
			workloads = append(workloads, w)
		}
	}
	if len(s.workloads) > 0 && len(workloads) == 0 {
		missing = append(missing, a.missingWorkloads(ctx, u, s)...)
	}
	return clusters, workloads, missing
}

// missingWorkloads returns the rights that keep all workloads from a user: to list their bindings, otherwise to list
// their kinds. It names three.
func (a *API) missingWorkloads(ctx context.Context, u user.Info, s *fleetState) (missing []*Missing) {
	mapper, err := a.kinds.mapper()
	if err != nil {
		return nil
	}
	lists, named := a.lists(ctx, u), sets.New[right]()
	for _, w := range s.workloads {
		want := bindingsOf(w.facts.Namespace)
		want.namespace = ""
		if lists(want) {
			m, err := mapper.RESTMapping(schema.GroupKind{Group: w.facts.Group, Kind: w.facts.Kind})
			if err != nil {
				continue
			}
			want = right{verb: "list", group: w.facts.Group, resource: m.Resource.Resource}
		}
		if !lists(want) && !named.Has(want) && len(missing) < 3 {
			named.Insert(want)
			missing = append(missing, want.missing())
		}
	}
	return missing
}

// bindingsOf returns the right to list the bindings of a namespace, or those of templates without one.
func bindingsOf(namespace string) right {
	want := listBindings
	if want.namespace = namespace; namespace == "" {
		want.resource = "clusterresourcebindings"
	}
	return want
}

// sees returns a function that reports whether a user may list an object and its binding.
func (a *API) sees(ctx context.Context, u user.Info) func(overview.Object) bool {
	mapper, err := a.kinds.mapper()
	if err != nil {
		return func(overview.Object) bool { return false }
	}
	type place struct{ group, kind, namespace string }
	known, lists := map[place]bool{}, a.lists(ctx, u)
	var last place // sorted objects are often of the same place as the one before
	var allowed bool
	return func(o overview.Object) bool {
		p := place{o.Group, o.Kind, o.Namespace}
		if p == last {
			return allowed
		}
		var found bool
		if allowed, found = known[p]; !found {
			m, err := mapper.RESTMapping(schema.GroupKind{Group: o.Group, Kind: o.Kind})
			allowed = err == nil && lists(bindingsOf(o.Namespace)) && lists(right{verb: "list", group: o.Group,
				resource: m.Resource.Resource, namespace: o.Namespace})
			known[p] = allowed
		}
		last = p
		return allowed
	}
}

// lists returns a function that reports whether a user has a right everywhere, or in its namespace. It asks once for
// each right: use it for one answer only.
func (a *API) lists(ctx context.Context, u user.Info) func(right) bool {
	known := map[right]bool{}
	allows := func(want right) bool {
		allowed, found := known[want]
		if !found {
			allowed = a.rights.allows(ctx, u, want)
			known[want] = allowed
		}
		return allowed
	}
	return func(want right) bool {
		everywhere := want
		everywhere.namespace = ""
		return allows(everywhere) || want.namespace != "" && allows(want)
	}
}

const (
	// maxItems bounds the items of the Fleet page: in an outage, every workload is one.
	maxItems = 300
)

var topics = map[string]func(*API, context.Context, user.Info, *fleetState) view{
	"fleet":    (*API).fleet,
	"releases": (*API).releases,
	"clusters": func(a *API, ctx context.Context, u user.Info, s *fleetState) view {
		clusters, workloads, missing := a.visible(ctx, u, s)
		placed := map[string]*placements{}
		for _, w := range workloads {
			for _, p := range w.facts.Places {
				n := placed[p.Cluster]
				if n == nil {
					n = &placements{}
					placed[p.Cluster] = n
				}
				n.Placed++
				if p.State.Bad() {
					n.Bad++
				}
			}
		}
		v := view{rows: make([]*row, 0, len(clusters))}
		for _, c := range clusters {
			v.rows = append(v.rows, c.row.withFields(cmp.Or(placed[c.facts.Name], &placements{})))
		}
		for _, m := range missing {
			if m.Resource == listClusters.resource {
				v.missing = append(v.missing, m)
			}
		}
		return v
	},
	"workloads": func(a *API, ctx context.Context, u user.Info, s *fleetState) view {
		_, workloads, missing := a.visible(ctx, u, s)
		v := view{rows: make([]*row, 0, len(workloads))}
		for _, w := range workloads {
			v.rows = append(v.rows, w.row)
		}
		for _, m := range missing {
			if m.Resource != listClusters.resource {
				v.missing = append(v.missing, m)
			}
		}
		return v
	},
}

// placements counts the templates in a cluster that the user may list.
type placements struct {
	Placed int `json:"placed"`
	Bad    int `json:"bad"`
}

// withFields returns the row of an object with the fields of a second object too. Neither is empty.
func (r *row) withFields(second any) *row {
	encoded := slices.Concat(r.json[:len(r.json)-1], []byte{','}, newRow("", second).json[1:])
	return &row{r.key, encoded, maphash.Bytes(seed, encoded)}
}

// fleet returns the items that need attention and that the user may see.
func (a *API) fleet(ctx context.Context, u user.Info, s *fleetState) view {
	clusters, workloads, missing := a.visible(ctx, u, s)
	f := overview.Facts{}
	n := totals{Clusters: len(clusters), Workloads: len(workloads)}
	for _, c := range clusters {
		f.Clusters = append(f.Clusters, &c.facts.ClusterRow)
		if c.facts.State == overview.NotReady {
			n.NotReady++
		}
	}
	for _, w := range workloads {
		f.Workloads = append(f.Workloads, &w.facts)
		switch {
		case w.facts.State == overview.Unplaced:
			n.Unplaced++
		case w.facts.Bad:
			n.Bad++
		}
	}
	if a.rights.allowsGet(ctx, u, a.HealthPath) {
		f.Hub = s.hub
	}
	sees, everywhere := a.sees(ctx, u), a.rights.allowsGet(ctx, u, why.PodsPath)
	for _, t := range s.troubled {
		gv, err := schema.ParseGroupVersion(t.APIVersion)
		o := overview.Object{Group: gv.Group, Kind: t.Kind, Namespace: t.Namespace, Name: t.Name}
		if err == nil && sees(o) && (everywhere || a.rights.allows(ctx, u, podsOfBindings(t.Namespace))) {
			f.Troubled = append(f.Troubled, t)
		}
	}
	lists := a.lists(ctx, u)
	for _, r := range s.releases {
		if r.facts.waiting != nil && lists(listReleasesIn(r.facts.Namespace)) {
			f.Others = append(f.Others, *r.facts.waiting)
			n.Waiting++
		}
	}
	for _, m := range s.works {
		works := listManifestWorks
		if works.namespace = m.name.Namespace; m.facts != nil && lists(works) {
			f.Others = append(f.Others, *m.facts)
		}
	}
	if len(s.releases) > 0 && !slices.ContainsFunc(s.releases, func(r *releaseObject) bool {
		return lists(listReleasesIn(r.facts.Namespace))
	}) {
		missing = append(missing, listReleases.missing())
	}
	items, more := overview.Attention(f, maxItems)
	n.More = more
	v := view{totals: n, missing: missing}
	for i, item := range items {
		v.rows = append(v.rows, newRow(item.Key, struct {
			overview.Item
			Rank int `json:"rank"`
		}{item, i}))
	}
	return v
}
