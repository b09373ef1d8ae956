package schedule

import (
	"maps"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/cluster/capacity"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
)

// Capacity has an estimator's answers for one binding: how many more replicas fit into a cluster, and whether that is
// known. An unknown cluster is not full: it can get all replicas. For a template with several components, the answer is
// the number of sets of components. math.MaxInt32 means no limit. A nil Capacity knows nothing.
type Capacity func(cluster string) (replicas int32, known bool)

// Answers returns the Capacity of a map; clusters that are not in it are unknown.
func Answers(replicas map[string]int32) Capacity {
	return func(cluster string) (int32, bool) {
		n, known := replicas[cluster]
		return n, known
	}
}

// Least returns the smallest known answer.
func Least(all ...Capacity) Capacity {
	return func(cluster string) (least int32, known bool) {
		for _, c := range all {
			if c == nil {
				continue
			}
			if n, ok := c(cluster); ok && (!known || n < least) {
				least, known = n, true
			}
		}
		return least, known
	}
}

// Room is the free room of clusters for one plan that places several bindings.
type Room interface {
	// Free returns how many more replicas of a binding fit.
	Free(b workv1alpha2.Binding) Capacity
	// Take takes the room that a binding needs in addition when it is placed in these clusters. Free was called for it
	// last.
	Take(b workv1alpha2.Binding, clusters []workv1alpha2.TargetCluster)
}

// Summaries is the Room by the summaries of the clusters: the snapshot has them, less what was taken.
type Summaries struct{ Snapshot }

// Summaries returns the room by the summaries of the clusters.
func (s Snapshot) Summaries() *Summaries {
	s.members = slices.Clone(s.members)
	return &Summaries{s}
}

// Free implements Room.
func (s *Summaries) Free(b workv1alpha2.Binding) Capacity { return s.Room(b) }

// Take implements Room.
func (s *Summaries) Take(b workv1alpha2.Binding, clusters []workv1alpha2.TargetCluster) {
	requests, pods := perReplica(b.BindingSpec())
	requests = append(requests, request{corev1.ResourcePods, pods})
	for _, t := range capacity.Gains(b.BindingSpec(), clusters) {
		m := s.member(t.Name)
		if m == nil || m.free == nil {
			continue
		}
		m.free = maps.Clone(m.free)
		for _, r := range requests {
			free, counted := m.free[r.name]
			switch gain := int64(t.Replicas); {
			case !counted:
			case r.amount > free/gain: // the product may overflow
				m.free[r.name] = 0
			default:
				m.free[r.name] = free - r.amount*gain
			}
		}
	}
}

// NeedsRoom reports whether a run uses the capacity of clusters. If not, no estimator is called.
func NeedsRoom(b workv1alpha2.Binding) bool {
	spec := b.BindingSpec()
	if spec.Placement == nil || spec.Replicas == 0 && len(spec.Components) == 0 {
		return false
	}
	s := strategyOf(spec)
	return s.byRoom() || s != static && spreads(spec) ||
		undivided(spec) && strategyFor(spec.Placement).byRoom()
}

// AwaitsRoom reports whether a binding lacks capacity, and would use capacity of this cluster.
func AwaitsRoom(b workv1alpha2.Binding, cluster *clusterv1alpha1.Cluster, plugins Plugins) bool {
	spec, m := b.BindingSpec(), seen(cluster)
	if m == nil || !NeedsRoom(b) || meta.IsStatusConditionTrue(b.BindingStatus().Conditions, workv1alpha2.Scheduled) &&
		fits(b) {
		return false
	}
	target := workv1alpha2.HasTarget(spec.Clusters, cluster.Name)
	for i := range terms(spec.Placement) {
		if !newQuestion(spec, i, plugins).reject(m, target).refuses() {
			return true
		}
	}
	return false
}

// Wanted returns how many replicas one cluster may get, or sets of components, which stay together.
func Wanted(spec *workv1alpha2.ResourceBindingSpec) int64 {
	if len(spec.Components) > 0 {
		return 1
	}
	return int64(spec.Replicas)
}

// estimate sets the capacity of candidates. If a cluster has no limit, or is unknown, its capacity is the number of
// wanted replicas. So these clusters get equal shares, and do not outweigh clusters with known capacity more than
// needed.
func estimate(spec *workv1alpha2.ResourceBindingSpec, candidates []Candidate, room Capacity) {
	wanted := Wanted(spec)
	for i := range candidates {
		c := &candidates[i]
		c.Available, c.Known = wanted, false
		if room == nil {
			continue
		}
		n, known := room(c.Cluster.Name)
		if c.Known = known; known && n != math.MaxInt32 {
			c.Available = max(0, int64(n))
		}
	}
}

// stay limits targets with unknown capacity to their current replicas: a run that moves replicas moves none into a
// cluster that may not work.
func stay(candidates []Candidate) {
	for i := range candidates {
		if c := &candidates[i]; c.Assigned > 0 && membership.KnownNotReady(c.Cluster) {
			c.Available = 0
		}
	}
}

// resources are amounts: of CPU in thousandths, of others in units.
type resources map[corev1.ResourceName]int64

// freeOf returns the free capacity in the summary; nil if there is no summary.
func freeOf(s *clusterv1alpha1.ResourceSummary) resources {
	if s == nil || len(s.Allocatable) == 0 {
		return nil
	}
	free := make(resources, len(s.Allocatable))
	for name, q := range s.Allocatable {
		left := q.DeepCopy()
		left.Sub(s.Allocated[name])
		left.Sub(s.Allocating[name])
		free[name] = max(0, capacity.Amount(name, left))
	}
	return free
}

// setOf returns the requests of all replicas of all components together, without resources that are not requested, and
// the number of pods, at least one. Sums that overflow are the largest number.
func setOf(components []workv1alpha2.Component) (set resources, pods int64) {
	set = resources{}
	for i := range components {
		c := &components[i]
		pods += int64(max(0, c.Replicas))
		if c.ReplicaRequirements == nil {
			continue
		}
		for name, q := range c.ReplicaRequirements.ResourceRequest {
			one, replicas := capacity.Amount(name, q), int64(max(0, c.Replicas))
			switch {
			case one <= 0 || replicas == 0:
			case one > (math.MaxInt64-set[name])/replicas:
				set[name] = math.MaxInt64
			default:
				set[name] += one * replicas
			}
		}
	}
	return set, max(1, pods)
}

// request is a positive amount.
type request struct {
	name   corev1.ResourceName
	amount int64
}

// Room estimates by the clusters' own summaries: free resources divided by the requests of a replica, and free pods.
// If the hub does not see the nodes of a cluster, it uses the cluster's resource models. A cluster without a summary
// is unknown. One that has nothing of a requested resource has no capacity.
func (s Snapshot) Room(b workv1alpha2.Binding) Capacity {
	spec := b.BindingSpec()
	requests, pods := perReplica(spec)
	return func(cluster string) (int32, bool) {
		m := s.member(cluster)
		if m == nil || m.free == nil {
			return 0, false
		}
		n := int64(math.MaxInt32)
		if free, ok := m.free[corev1.ResourcePods]; ok {
			n = min(n, free/pods)
		}
		for _, r := range requests {
			n = min(n, m.free[r.name]/r.amount)
		}
		switch {
		case m.cluster.Spec.SyncMode != clusterv1alpha1.Pull:
		case len(spec.Components) == 0:
			n = min(n, modelled(m.cluster, requests))
		default:
			for i := range spec.Components {
				if c := &spec.Components[i]; c.Replicas > 0 && c.ReplicaRequirements != nil {
					fit := modelled(m.cluster, requestsOf(c.ReplicaRequirements.ResourceRequest))
					n = min(n, fit/int64(c.Replicas))
				}
			}
		}
		return int32(n), true
	}
}

// perReplica returns the requests of a replica, or of a set of all components, and its number of pods.
func perReplica(spec *workv1alpha2.ResourceBindingSpec) (requests []request, pods int64) {
	if len(spec.Components) > 0 {
		set, pods := setOf(spec.Components)
		for name, n := range set {
			requests = append(requests, request{name, n})
		}
		return requests, pods
	}
	if r := spec.ReplicaRequirements; r != nil {
		requests = requestsOf(r.ResourceRequest)
	}
	return requests, 1
}

func requestsOf(list corev1.ResourceList) (requests []request) {
	for name, q := range list {
		if n := capacity.Amount(name, q); n > 0 {
			requests = append(requests, request{name, n})
		}
	}
	return requests
}

// modelled returns how many replicas fit on nodes of known grades: each node has the minimum of its grade. Resources
// that are in no model do not limit the result.
func modelled(c *clusterv1alpha1.Cluster, requests []request) int64 {
	total, known := int64(0), false
	for _, counted := range c.Status.ResourceSummary.AllocatableModelings {
		at := slices.IndexFunc(c.Spec.ResourceModels, func(m clusterv1alpha1.ResourceModel) bool {
			return m.Grade == counted.Grade
		})
		if at < 0 {
			continue // the models changed, and the nodes were not counted again yet
		}
		each := int64(math.MaxInt32)
		for _, r := range requests {
			for i := range c.Spec.ResourceModels[at].Ranges {
				if least := &c.Spec.ResourceModels[at].Ranges[i]; least.Name == r.name {
					known = true
					each = min(each, max(0, capacity.Amount(r.name, least.Min))/r.amount)
				}
			}
		}
		total = min(math.MaxInt32, total+each*int64(max(0, counted.Count)))
	}
	if !known {
		return math.MaxInt32
	}
	return total
}
