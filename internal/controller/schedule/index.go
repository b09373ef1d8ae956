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

// index finds the bindings that a change concerns without visiting all of them. Thousands of bindings share a few
// placements: each kind of binding is checked once for the bindings in the changed cluster, and once for the others. It
// stores the read-only objects of the cache, in the state that the handler received. A binding is indexed before it is
// queued, so no change is missed: a change that finds the older state precedes the binding's own run.
type index struct {
	// scheduler is the name of the scheduler whose bindings are found by cluster. Bindings of groups are found for every
	// scheduler.
	scheduler string
	// plugins are the plugins that the scheduler runs with.
	plugins schedule.Plugins

	mu      sync.Mutex
	entries map[client.ObjectKey]*entry
	alike   map[string]*alike
	// waiting has the kinds of bindings with a binding that waits.
	waiting map[*alike]bool
	grouped map[affinity]map[*entry]bool
}

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

// affinity is a group of workloads that are placed together or apart.
type affinity struct {
	namespace, name string
	apart           bool
}

func newIndex(scheduler string, plugins schedule.Plugins) *index {
	return &index{scheduler: scheduler, plugins: plugins, entries: map[client.ObjectKey]*entry{},
		alike: map[string]*alike{}, waiting: map[*alike]bool{},
		grouped: map[affinity]map[*entry]bool{}}
}

// put stores the current state of a binding.
func (x *index) put(b workv1alpha2.Binding) {
	x.mu.Lock()
	defer x.mu.Unlock()
	key := client.ObjectKeyFromObject(b)
	ours := schedule.PlacedBy(b, x.scheduler)
	if known := x.entries[key]; known != nil {
		was := known.binding
		if was.GetUID() == b.GetUID() && was.GetGeneration() == b.GetGeneration() && (known.alike != nil) == ours &&
			schedule.Waits(was) == schedule.Waits(b) &&
			was.GetAnnotations()[wellknown.SubsetClustersAnnotation] == b.GetAnnotations()[wellknown.SubsetClustersAnnotation] {
			known.binding = b // everything else depends on the spec, which is the same
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

// remove removes a deleted binding.
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

// changed returns the scheduler's bindings that a change of a cluster may move, the most urgent first.
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

// concerned returns the scheduler's bindings that a change of a cluster concerns, the most urgent first. It calls
// concerns for one binding of each kind that is in the cluster, and for one that is not.
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

// waits returns the bindings of concerned that are not placed as their policy requires.
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

// peers returns the bindings that share a group with b, whoever places them; b itself is not among them.
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
