package schedule

import (
	"slices"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/capacity"
	"github.com/argosy-io/argosy/internal/core/schedule"
)

// index finds the bindings that something concerns, without looking at the others. A change of a cluster is asked about
// once for each likeness of bindings, for those in the cluster and for those that are not: thousands of bindings share
// a few placements. It holds the cache's own objects, which are read-only, in the state in which the handler has seen
// them. What is put in before it is queued is never missed: a change that did not find the newer state comes before its
// look at the fleet.
type index struct {
	// scheduler is whose bindings are found by clusters. Those of groups are found whoever places them.
	scheduler string
	// plugins are those that the scheduler runs with.
	plugins schedule.Plugins

	mu      sync.Mutex
	entries map[client.ObjectKey]*entry
	alike   map[string]*alike
	// waiting are those of alike whose bindings wait.
	waiting map[*alike]bool
	grouped map[affinity]map[*entry]bool
}

// entry is one binding.
type entry struct {
	binding workv1alpha2.Binding
	// alike is nil for bindings that are not the scheduler's.
	alike  *alike
	in     []string
	groups []affinity
}

// alike is the bindings of one likeness.
type alike struct {
	likeness string
	all      map[*entry]bool
	in       map[string]map[*entry]bool
}

// affinity is a group of workloads that keep together or apart.
type affinity struct {
	namespace, name string
	apart           bool
}

func newIndex(scheduler string, plugins schedule.Plugins) *index {
	return &index{scheduler: scheduler, plugins: plugins, entries: map[client.ObjectKey]*entry{},
		alike: map[string]*alike{}, waiting: map[*alike]bool{},
		grouped: map[affinity]map[*entry]bool{}}
}

// put takes in a binding as it is now.
func (x *index) put(b workv1alpha2.Binding) {
	x.mu.Lock()
	defer x.mu.Unlock()
	key := client.ObjectKeyFromObject(b)
	ours := schedule.Ours(b, x.scheduler)
	if known := x.entries[key]; known != nil {
		was := known.binding
		if was.GetUID() == b.GetUID() && was.GetGeneration() == b.GetGeneration() && (known.alike != nil) == ours &&
			schedule.Waits(was) == schedule.Waits(b) &&
			was.GetAnnotations()[wellknown.SubsetClustersAnnotation] == b.GetAnnotations()[wellknown.SubsetClustersAnnotation] {
			known.binding = b // all else is of the spec, which is the same
			return
		}
		x.drop(key)
	}
	e := &entry{binding: b, groups: affinities(b)}
	x.entries[key] = e
	for _, g := range e.groups {
		add(x.grouped, g, e)
	}
	if !ours {
		return
	}
	for _, t := range b.BindingSpec().Clusters {
		e.in = append(e.in, t.Name)
	}
	likeness := schedule.Likeness(b)
	if e.alike = x.alike[likeness]; e.alike == nil {
		e.alike = &alike{likeness: likeness, all: map[*entry]bool{}, in: map[string]map[*entry]bool{}}
		x.alike[likeness] = e.alike
		if schedule.Waits(b) {
			x.waiting[e.alike] = true
		}
	}
	e.alike.all[e] = true
	for _, cluster := range e.in {
		add(e.alike.in, cluster, e)
	}
}

// remove takes out a binding that is gone.
func (x *index) remove(key client.ObjectKey) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.drop(key)
}

func (x *index) drop(key client.ObjectKey) {
	e := x.entries[key]
	if e == nil {
		return
	}
	delete(x.entries, key)
	for _, g := range e.groups {
		remove(x.grouped, g, e)
	}
	if e.alike == nil {
		return
	}
	delete(e.alike.all, e)
	for _, cluster := range e.in {
		remove(e.alike.in, cluster, e)
	}
	if len(e.alike.all) == 0 {
		delete(x.alike, e.alike.likeness)
		delete(x.waiting, e.alike)
	}
}

// changed are the scheduler's bindings that a change of a cluster may move, the most urgent first.
func (x *index) changed(c capacity.Change) []workv1alpha2.Binding {
	affects := func(b workv1alpha2.Binding) bool { return schedule.Affects(b, c.Old, c.New, x.plugins) }
	if schedule.RoomAlone(c.Old, c.New) {
		return x.waits(c.New.Name, affects)
	}
	name := ""
	for _, is := range []*clusterv1alpha1.Cluster{c.Old, c.New} {
		if is != nil {
			name = is.Name
		}
	}
	return x.concerned(name, affects)
}

// concerned are the scheduler's bindings that something about a cluster concerns, the most urgent first. concerns is
// asked of one binding of each likeness that is in the cluster, and of one that is not.
func (x *index) concerned(cluster string, concerns func(workv1alpha2.Binding) bool) []workv1alpha2.Binding {
	x.mu.Lock()
	defer x.mu.Unlock()
	var found []workv1alpha2.Binding
	for _, a := range x.alike {
		found = a.concerned(found, cluster, concerns)
	}
	slices.SortFunc(found, schedule.Urgency)
	return found
}

// waits are those of concerned that wait to be placed as they want to be.
func (x *index) waits(cluster string, concerns func(workv1alpha2.Binding) bool) []workv1alpha2.Binding {
	x.mu.Lock()
	defer x.mu.Unlock()
	var found []workv1alpha2.Binding
	for a := range x.waiting {
		found = a.concerned(found, cluster, concerns)
	}
	slices.SortFunc(found, schedule.Urgency)
	return found
}

func (a *alike) concerned(found []workv1alpha2.Binding, cluster string,
	concerns func(workv1alpha2.Binding) bool) []workv1alpha2.Binding {
	inside := a.in[cluster]
	asked := false
	for e := range inside {
		if !asked && !concerns(e.binding) {
			break
		}
		asked = true
		found = append(found, e.binding)
	}
	if len(inside) == len(a.all) {
		return found
	}
	asked = false
	for e := range a.all {
		if inside[e] {
			continue
		}
		if !asked && !concerns(e.binding) {
			break
		}
		asked = true
		found = append(found, e.binding)
	}
	return found
}

// peers are the bindings that share a group with b, whoever places them; b itself is not among them.
func (x *index) peers(b workv1alpha2.Binding) []workv1alpha2.Binding {
	x.mu.Lock()
	defer x.mu.Unlock()
	key := client.ObjectKeyFromObject(b)
	seen := map[*entry]bool{}
	var found []workv1alpha2.Binding
	for _, g := range affinities(b) {
		for e := range x.grouped[g] {
			if !seen[e] && client.ObjectKeyFromObject(e.binding) != key {
				seen[e] = true
				found = append(found, e.binding)
			}
		}
	}
	return found
}

// affinities are the groups of a binding.
func affinities(b workv1alpha2.Binding) (groups []affinity) {
	if !schedule.Grouped(b) {
		return nil
	}
	of := b.BindingSpec().WorkloadAffinityGroups
	if of.AffinityGroup != "" {
		groups = append(groups, affinity{b.GetNamespace(), of.AffinityGroup, false})
	}
	if of.AntiAffinityGroup != "" {
		groups = append(groups, affinity{b.GetNamespace(), of.AntiAffinityGroup, true})
	}
	return groups
}

func add[K comparable](sets map[K]map[*entry]bool, key K, e *entry) {
	if sets[key] == nil {
		sets[key] = map[*entry]bool{}
	}
	sets[key][e] = true
}

func remove[K comparable](sets map[K]map[*entry]bool, key K, e *entry) {
	delete(sets[key], e)
	if len(sets[key]) == 0 {
		delete(sets, key)
	}
}
