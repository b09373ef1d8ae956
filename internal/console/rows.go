package console

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"reflect"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/explain/overview"
	"github.com/argosy-io/argosy/internal/core/workload/pods"
	"github.com/argosy-io/argosy/internal/scope"
	"github.com/argosy-io/argosy/internal/why"
)

const (
	// freshFor is the maximum age of the state that all streams share. Without a stream nothing is read. In a large fleet
	// it is longer, up to maxRest, so that reads take at most one part in restFactor of the time.
	freshFor   = 200 * time.Millisecond
	restFactor = 20
	maxRest    = 3 * time.Second
	// freshRemote applies while the controllers run in another hub, so that each read is a list of the API.
	freshRemote = 3 * time.Second
	// freshPods applies to facts that are costly to collect.
	freshPods = 3 * time.Second
	// kindsAge is the maximum age of the discovered kinds of the hub.
	kindsAge = 30 * time.Second
)

// row is one row of a table, encoded once for all streams.
type row struct {
	key  string
	json []byte
	sum  uint64
}

var seed = maphash.MakeSeed()

func newRow(key string, v any) row {
	encoded, err := json.Marshal(v)
	if err != nil {
		encoded = []byte("null") // our rows can be encoded
	}
	return row{key, encoded, maphash.Bytes(seed, encoded)}
}

// cluster and workload are rows with the object that a reader needs rights for.
type cluster struct {
	overview.ClusterRow
	row     row
	version string
}

type workload struct {
	overview.WorkloadRow
	row     row
	version string
}

// state is the fleet at one moment. It does not change.
type state struct {
	at        time.Time
	clusters  []cluster
	workloads []workload
	troubled  []pods.Workload
	hub       []overview.HubFinding
	releases  []overview.ReleaseRow
	summaries []summary
}

// rows projects the fleet into rows, for all streams together.
type rows struct {
	o   Options
	now func() time.Time

	mu        sync.Mutex
	last      *state
	read      time.Time // when last was found to be up to date
	took      time.Duration
	extra     time.Time // when the facts about pods and the hub were read
	remote    client.Reader
	clusters  map[string]cluster  // by name
	workloads map[string]workload // by namespace and name of the binding
}

func newRows(o Options) *rows {
	return &rows{o: o, now: time.Now, clusters: map[string]cluster{}, workloads: map[string]workload{}}
}

// current returns the fleet, read at most every freshFor. It is the same value as long as nothing has changed.
func (r *rows) current(ctx context.Context) (*state, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fresh := freshFor
	if r.o.Cached() == nil {
		fresh = freshRemote
	}
	reader, err := r.readerLocked()
	if err != nil {
		return nil, err
	}
	now := r.now()
	if r.last != nil && now.Sub(r.read) < max(fresh, min(restFactor*r.took, maxRest)) {
		return r.last, nil
	}
	next, changed := &state{at: now}, r.last == nil
	r.took = 0 // the first read encodes all rows: it does not show how long others take
	if r.last != nil {
		defer func() { r.took = r.now().Sub(now) }()
	}
	if r.last != nil {
		next.troubled, next.hub, next.summaries = r.last.troubled, r.last.hub, r.last.summaries
	}
	var list clusterv1alpha1.ClusterList
	if err := reader.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list clusters: %w", err)
	}
	bindings, err := scope.Bindings.List(ctx, reader, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("list bindings: %w", err)
	}

	// Objects that did not change keep their rows.
	clusters := make(map[string]cluster, len(list.Items))
	for i := range list.Items {
		c := &list.Items[i]
		known, found := r.clusters[c.Name]
		if !found || known.version != c.ResourceVersion {
			known = cluster{ClusterRow: overview.RowOfCluster(c), version: c.ResourceVersion}
			known.row = newRow(c.Name, known.ClusterRow)
			changed = true
		}
		clusters[c.Name] = known
		next.clusters = append(next.clusters, known)
	}
	workloads := make(map[string]workload, len(bindings))
	for _, b := range bindings {
		key := b.GetNamespace() + "/" + b.GetName()
		known, found := r.workloads[key]
		if !found || known.version != b.GetResourceVersion() {
			known = workload{WorkloadRow: overview.RowOfWorkload(b), version: b.GetResourceVersion()}
			known.row = newRow(known.Object.String(), known.WorkloadRow)
			changed = true
		}
		workloads[key] = known
		next.workloads = append(next.workloads, known)
	}
	changed = changed || len(clusters) != len(r.clusters) || len(workloads) != len(r.workloads)
	r.clusters, r.workloads, r.read = clusters, workloads, now
	slices.SortFunc(next.clusters, func(a, b cluster) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(next.workloads, func(a, b workload) int { return cmp.Compare(a.row.key, b.row.key) })

	var releases releasev1alpha1.ReleaseList
	if err := reader.List(ctx, &releases, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list releases: %w", err)
	}
	var other bool
	next.summaries, other = summarize(releases.Items, next.summaries)
	changed = changed || other
	for i := range releases.Items {
		if row, waits := overview.RowOfRelease(&releases.Items[i]); waits {
			next.releases = append(next.releases, row)
		}
	}
	if now.Sub(r.extra) >= freshPods {
		next.hub, next.troubled, r.extra = nil, nil, now
		if r.o.Findings != nil {
			next.hub = r.o.Findings()
		}
		if r.o.Troubled != nil {
			// Where the controllers do not run, or do not know yet, nothing is known of pods.
			next.troubled, _, _ = r.o.Troubled(ctx, "")
		}
		changed = changed || !reflect.DeepEqual(next.hub, r.last.hub) || !reflect.DeepEqual(next.troubled, r.last.troubled)
	}
	if changed {
		r.last = next
	}
	return r.last, nil
}

// reader returns the cache of this hub's controllers, or a reader of the API while they run elsewhere.
func (r *rows) reader() (client.Reader, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.readerLocked()
}

// readerLocked is reader for a caller that has locked mu.
func (r *rows) readerLocked() (client.Reader, error) {
	if cached := r.o.Cached(); cached != nil {
		return cached, nil
	}
	if r.remote == nil {
		mapper := meta.NewDefaultRESTMapper(nil)
		mapper.Add(clusterv1alpha1.GroupVersion.WithKind("Cluster"), meta.RESTScopeRoot)
		mapper.Add(workv1alpha2.GroupVersion.WithKind("ResourceBinding"), meta.RESTScopeNamespace)
		mapper.Add(workv1alpha2.GroupVersion.WithKind("ClusterResourceBinding"), meta.RESTScopeRoot)
		mapper.Add(releasev1alpha1.GroupVersion.WithKind("Release"), meta.RESTScopeNamespace)
		mapper.Add(corev1.SchemeGroupVersion.WithKind("Namespace"), meta.RESTScopeRoot)
		c, err := client.New(r.o.Config, client.Options{Scheme: why.Scheme(), Mapper: mapper})
		if err != nil {
			return nil, fmt.Errorf("create the console's client: %w", err)
		}
		r.remote = c
	}
	return r.remote, nil
}

// forget drops the rows when no stream is open.
func (r *rows) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last, r.extra = nil, time.Time{}
	r.clusters, r.workloads = map[string]cluster{}, map[string]workload{}
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
	rows []row
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
	// Silent are the first maxSilent clusters that are not ready, so that pages mark what they last reported as old. The
	// figures are sent again with each change of a figure, so an outage of a large fleet must not put all names in them.
	Silent []string `json:"silent,omitempty"`
	// More is the number of items that are not sent.
	More int `json:"more,omitempty"`
}

var (
	listClusters = right{verb: "list", group: clusterv1alpha1.GroupVersion.Group, resource: "clusters"}
	listBindings = right{verb: "list", group: workv1alpha2.GroupVersion.Group, resource: "resourcebindings"}
)

// visible returns the clusters and workloads that a user may list. A workload needs the right to list its kind and the
// bindings of its namespace.
func (a *API) visible(ctx context.Context, u user.Info, s *state) (clusters []cluster, workloads []workload,
	missing []*Missing) {
	if a.rights.allows(ctx, u, listClusters) {
		clusters = s.clusters
	} else {
		missing = append(missing, listClusters.missing())
	}
	seen, hidden := a.sees(ctx, u), 0
	for _, w := range s.workloads {
		if seen(w.Object) {
			workloads = append(workloads, w)
		} else {
			hidden++
		}
	}
	if hidden > 0 && len(workloads) == 0 && !a.rights.allows(ctx, u, listBindings) {
		missing = append(missing, listBindings.missing())
	}
	return clusters, workloads, missing
}

// sees returns a function that reports whether a user may list an object and its binding.
func (a *API) sees(ctx context.Context, u user.Info) func(overview.Object) bool {
	mapper, err := a.kinds.mapper()
	if err != nil {
		return func(overview.Object) bool { return false }
	}
	type place struct{ group, kind, namespace string }
	known := map[place]bool{}
	lists := func(want right) bool { return a.lists(ctx, u, want) }
	return func(o overview.Object) bool {
		p := place{o.Group, o.Kind, o.Namespace}
		allowed, found := known[p]
		if !found {
			binding := listBindings
			binding.namespace = o.Namespace
			if o.Namespace == "" {
				binding.resource = "clusterresourcebindings"
			}
			m, err := mapper.RESTMapping(schema.GroupKind{Group: o.Group, Kind: o.Kind})
			allowed = err == nil && lists(binding) && lists(right{verb: "list", group: o.Group, resource: m.Resource.Resource,
				namespace: o.Namespace})
			known[p] = allowed
		}
		return allowed
	}
}

// lists reports whether a user has a right everywhere, or in its namespace.
func (a *API) lists(ctx context.Context, u user.Info, want right) bool {
	everywhere := want
	everywhere.namespace = ""
	return a.rights.allows(ctx, u, everywhere) || want.namespace != "" && a.rights.allows(ctx, u, want)
}

const (
	// maxItems bounds the items of the Fleet page.
	maxItems = 300
	// maxSilent bounds the names of silent clusters.
	maxSilent = 200
)

// topics has the topics of streams.
var topics = map[string]func(*API, context.Context, user.Info, *state) view{
	"fleet":    (*API).fleet,
	"releases": (*API).releases,
	"clusters": func(a *API, ctx context.Context, u user.Info, s *state) view {
		clusters, workloads, missing := a.visible(ctx, u, s)
		placed := map[string]placements{}
		for _, w := range workloads {
			for _, p := range w.Places {
				n := placed[p.Cluster]
				n.Placed++
				if p.State == overview.Refused || p.State == overview.Unhealthy {
					n.Bad++
				}
				placed[p.Cluster] = n
			}
		}
		v := view{}
		for _, c := range clusters {
			v.rows = append(v.rows, newRow(c.Name, struct {
				overview.ClusterRow
				placements
			}{c.ClusterRow, placed[c.Name]}))
		}
		for _, m := range missing {
			if m.Resource == listClusters.resource {
				v.missing = append(v.missing, m)
			}
		}
		return v
	},
	"workloads": func(a *API, ctx context.Context, u user.Info, s *state) view {
		_, workloads, missing := a.visible(ctx, u, s)
		v := view{rows: make([]row, 0, len(workloads))}
		for _, w := range workloads {
			v.rows = append(v.rows, w.row)
		}
		for _, m := range missing {
			if m.Resource == listBindings.resource {
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

// fleet returns the items that need attention and that the user may see.
func (a *API) fleet(ctx context.Context, u user.Info, s *state) view {
	clusters, workloads, missing := a.visible(ctx, u, s)
	f := overview.Facts{}
	n := totals{Clusters: len(clusters), Workloads: len(workloads)}
	for _, c := range clusters {
		f.Clusters = append(f.Clusters, c.ClusterRow)
		if c.State == overview.NotReady {
			if n.NotReady++; n.NotReady <= maxSilent {
				n.Silent = append(n.Silent, c.Name)
			}
		}
	}
	for _, w := range workloads {
		f.Workloads = append(f.Workloads, w.WorkloadRow)
		switch w.State {
		case overview.Unplaced:
			n.Unplaced++
		case overview.Refused, overview.Unhealthy:
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
	for _, r := range s.releases {
		if a.lists(ctx, u, right{verb: "list", group: r.Group, resource: "releases", namespace: r.Namespace}) {
			f.Releases = append(f.Releases, r)
			n.Waiting++
		}
	}
	items := overview.Attention(f)
	if len(items) > maxItems {
		n.More = len(items) - maxItems
		items = items[:maxItems]
	}
	v := view{totals: n, missing: missing}
	for i, item := range items {
		v.rows = append(v.rows, newRow(item.Key, struct {
			overview.Item
			Rank int `json:"rank"`
		}{item, i}))
	}
	return v
}
