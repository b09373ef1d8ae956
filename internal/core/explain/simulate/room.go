package simulate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/cluster/capacity"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
	"github.com/argosy-io/argosy/internal/core/schedule"
)

// rooms is the capacity of clusters, updated while workloads are placed: per node if nodes are known, else by summary.
// A placement takes room at once. Clusters with nodes follow it later: only then they free what is no longer needed.
type rooms struct {
	members map[string]*capacity.Rehearsal
	// originals are the members of which a copy makes its own when it needs them.
	originals map[string]*capacity.Rehearsal
	// free is the free capacity of clusters without nodes. It is negative if more was placed than fits. A cluster that
	// never reported its capacity is absent: its capacity is unknown.
	free map[string]capacity.Amounts
	// pulls are those of them in Pull mode: the hub reads what they report, and reserves nothing there.
	pulls map[string]bool
}

// newRooms returns the capacity of a fleet. The error is about impossible values in files.
func newRooms(f *Fleet) (rooms, error) {
	r := rooms{members: map[string]*capacity.Rehearsal{}, free: map[string]capacity.Amounts{},
		pulls: map[string]bool{}}
	for _, name := range sortedKeys(f.clusters) {
		if err := r.join(f, name); err != nil {
			return r, err
		}
	}
	return r, nil
}

// copied returns a copy for a plan.
func (r rooms) copied() rooms {
	free := maps.Clone(r.free)
	for name := range free {
		free[name] = maps.Clone(free[name])
	}
	return rooms{members: map[string]*capacity.Rehearsal{}, originals: r.members, free: free, pulls: r.pulls}
}

// member returns a cluster with nodes; nil for another.
func (r rooms) member(name string) *capacity.Rehearsal {
	if original := r.originals[name]; original != nil && r.members[name] == nil {
		r.members[name] = original.Clone()
	}
	return r.members[name]
}

// join adds a cluster.
func (r rooms) join(f *Fleet, name string) error {
	listed := f.members[name]
	delete(r.pulls, name)
	if listed == nil || len(listed.Nodes) == 0 {
		if membership.Pulls(f.clusters[name]) {
			r.pulls[name] = true
		}
		if free := freeOf(f.clusters[name].Status.ResourceSummary); free != nil {
			r.free[name] = free
		}
		return nil
	}
	m, err := capacity.Rehearse(listed.Record)
	if err != nil {
		return fmt.Errorf("cluster %q: %w", name, err)
	}
	r.members[name] = m
	if listed.Pods != nil {
		return nil
	}
	// It is unknown on which nodes the existing replicas run.
	for _, key := range slices.SortedFunc(maps.Keys(f.bindings), compareKeys) {
		spec := f.bindings[key].BindingSpec()
		if a := capacity.AssumptionOf(f.bindings[key], capacity.PartsOf(f.bindings[key]), name, nil,
			spec.Clusters); a.Replicas > 0 {
			m.Expect(a, false)
			m.Follow()
		}
	}
	return nil
}

func compareKeys(a, b types.NamespacedName) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}

// freeOf returns the free capacity in the summary; nil if there is no summary.
func freeOf(s *clusterv1alpha1.ResourceSummary) capacity.Amounts {
	if s == nil || len(s.Allocatable) == 0 {
		return nil
	}
	free := capacity.AmountsOf(s.Allocatable)
	for _, taken := range []capacity.Amounts{capacity.AmountsOf(s.Allocated), capacity.AmountsOf(s.Allocating)} {
		for name, n := range taken {
			if _, counted := free[name]; counted {
				free[name] -= n
			}
		}
	}
	return free
}

// capacityFor returns the estimator of a binding: per node like the hub's, otherwise by the current summary like
// schedule.Snapshot's Room.
func (r rooms) capacityFor(b workv1alpha2.Binding) schedule.Capacity {
	spec := b.BindingSpec()
	var parts []capacity.Part
	var sets bool
	var likeness string
	return func(cluster string) (int32, bool) {
		if parts == nil {
			parts, sets = capacity.Parts(b)
			likeness = capacity.Likeness(spec.ReplicaRequirements, capacity.SpreadOfBinding(b).Ports)
		}
		if m := r.member(cluster); m != nil && m.HasNodes() {
			return m.Room(parts, sets, likeness), true
		}
		free, known := r.free[cluster]
		return free.Fit(parts), known
	}
}

// move takes the room of a binding that becomes another; was may be nil. rewritten is true if its template changed too:
// only then members replace the pods.
func (r rooms) move(was, is workv1alpha2.Binding, rewritten bool) {
	r.account(was, 1)
	r.account(is, -1)
	if len(r.members)+len(r.originals) == 0 {
		return
	}
	spec := is.BindingSpec()
	var had []workv1alpha2.TargetCluster
	renewed := false // replace its pods, because their requests changed
	if was != nil {
		before := was.BindingSpec()
		had = before.Clusters
		renewed = rewritten && (!equality.Semantic.DeepEqual(before.ReplicaRequirements, spec.ReplicaRequirements) ||
			!equality.Semantic.DeepEqual(before.Components, spec.Components) ||
			was.GetAnnotations()[wellknown.PodSpreadAnnotation] != is.GetAnnotations()[wellknown.PodSpreadAnnotation] ||
			was.GetAnnotations()[wellknown.QuotaUseAnnotation] != is.GetAnnotations()[wellknown.QuotaUseAnnotation])
	}
	var parts []capacity.Part
	at := func(cluster string) {
		m := r.member(cluster)
		if m == nil {
			return
		}
		if parts == nil {
			parts = capacity.PartsOf(is)
		}
		if a := capacity.AssumptionOf(is, parts, cluster, had, spec.Clusters); renewed || a.Before != a.Replicas {
			m.Expect(a, renewed)
		}
	}
	for _, t := range had {
		if !workv1alpha2.HasTarget(spec.Clusters, t.Name) {
			at(t.Name)
		}
	}
	for _, t := range spec.Clusters {
		at(t.Name)
	}
}

// account adds the requests of a binding to the free capacity by summary, or subtracts them.
func (r rooms) account(b workv1alpha2.Binding, sign int64) {
	if b == nil || len(b.BindingSpec().Clusters) == 0 || len(r.free) == 0 {
		return
	}
	// Each target has all components, or its replicas.
	parts, sets := capacity.Parts(b)
	for _, t := range b.BindingSpec().Clusters {
		if sets {
			t.Replicas = 1
		}
		r.free[t.Name].Return(parts, sign*int64(t.Replicas))
	}
}

// become replaces the clusters of now by those of next. What was placed still counts.
func (r rooms) become(now, next *Fleet) error {
	for name := range now.clusters {
		if next.clusters[name] == nil {
			delete(r.free, name)
			delete(r.members, name)
			delete(r.pulls, name)
		}
	}
	for _, name := range sortedKeys(next.clusters) {
		was, is := now.clusters[name], next.clusters[name]
		listed := next.members[name]
		var err error
		switch {
		case was == nil:
			err = r.join(next, name)
		case r.members[name] != nil:
			if listed != now.members[name] {
				err = r.members[name].Amend(listed.Record)
			}
		case listed != now.members[name]: // its nodes are known now
			delete(r.free, name)
			err = r.join(next, name)
		case is != was:
			r.adjust(name, freeOf(was.Status.ResourceSummary), freeOf(is.Status.ResourceSummary))
		}
		if err != nil {
			return fmt.Errorf("cluster %q: %w", name, err)
		}
	}
	return nil
}

// adjust changes the free capacity of a cluster by the difference of is and was; nil if the cluster does not report it.
func (r rooms) adjust(cluster string, was, is capacity.Amounts) {
	if is == nil {
		delete(r.free, cluster)
		return
	}
	free := capacity.Amounts{}
	for name, n := range is {
		free[name] = n
		if used, counted := r.free[cluster][name]; counted {
			free[name] += used - was[name]
		}
	}
	r.free[cluster] = free
}

// balance is the capacity of a cluster and what is free, with the replicas that fit on no node.
type balance struct {
	allocatable, free capacity.Amounts
	homeless          int64
}

// balances returns the balances of the clusters that report their capacity.
func (r rooms) balances(clusters map[string]*clusterv1alpha1.Cluster) map[string]balance {
	all := map[string]balance{}
	for name, c := range clusters {
		if m := r.members[name]; m != nil {
			b := balance{homeless: m.Unplaced()}
			b.allocatable, b.free = m.Sums()
			all[name] = b
		} else if free, known := r.free[name]; known {
			all[name] = balance{allocatable: capacity.AmountsOf(c.Status.ResourceSummary.Allocatable), free: maps.Clone(free)}
		}
	}
	return all
}
