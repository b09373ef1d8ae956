package schedule

import (
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
)

// Capacity is an estimator's answers for one binding: how many more replicas a cluster has room for, and whether it
// could say. Unknown is not zero: nobody has refused, so the cluster is trusted with what is asked for. Of a template
// with several components it is sets of all of them. math.MaxInt32 is no limit. A nil Capacity knows nothing.
type Capacity func(cluster string) (replicas int32, known bool)

// Answers is the Capacity of a map; clusters that it does not hold are unknown.
func Answers(replicas map[string]int32) Capacity {
	return func(cluster string) (int32, bool) {
		n, known := replicas[cluster]
		return n, known
	}
}

// Least is the smallest answer of those that could say.
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

// NeedsRoom says whether a run asks for the room of clusters; if not, no estimator need be asked.
func NeedsRoom(b workv1alpha2.Binding) bool {
	spec := b.BindingSpec()
	if spec.Placement == nil || spec.Replicas == 0 && len(spec.Components) == 0 {
		return false
	}
	s := strategyOf(spec)
	return s.byRoom() || s != static && spreads(spec)
}

// AwaitsRoom says whether a binding did not get the room it asked for, and would take some in this cluster.
func AwaitsRoom(b workv1alpha2.Binding, cluster *clusterv1alpha1.Cluster, plugins Plugins) bool {
	spec, m := b.BindingSpec(), seen(cluster)
	if m == nil || !NeedsRoom(b) || meta.IsStatusConditionTrue(b.BindingStatus().Conditions, workv1alpha2.Scheduled) &&
		fits(b) {
		return false
	}
	target := slices.ContainsFunc(spec.Clusters, func(t workv1alpha2.TargetCluster) bool { return t.Name == cluster.Name })
	for i := range terms(spec.Placement) {
		if !newQuestion(spec, i, plugins).reject(m, target).refuses() {
			return true
		}
	}
	return false
}

// estimate fills in the room of candidates. Where there is no limit, or none is known, it is what is asked for: so that
// such clusters share alike, and beside those whose room is known they weigh no more than needed.
func estimate(spec *workv1alpha2.ResourceBindingSpec, candidates []Candidate, room Capacity) {
	wanted := int64(spec.Replicas)
	if len(spec.Components) > 0 {
		wanted = 1
	}
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

// stay has targets that do not answer keep what they have and get nothing more: a run that moves what is placed moves
// nothing into a cluster of which nobody knows whether it works.
func stay(candidates []Candidate) {
	for i := range candidates {
		if c := &candidates[i]; c.Assigned > 0 && membership.Silent(c.Cluster) {
			c.Available = 0
		}
	}
}

// resources are amounts: of CPU in thousandths, of others in units.
type resources map[corev1.ResourceName]int64

func amount(name corev1.ResourceName, q *resource.Quantity) int64 {
	if name == corev1.ResourceCPU {
		return q.MilliValue()
	}
	return q.Value()
}

// freeOf is what the summary leaves; nil if there is none.
func freeOf(s *clusterv1alpha1.ResourceSummary) resources {
	if s == nil || len(s.Allocatable) == 0 {
		return nil
	}
	free := make(resources, len(s.Allocatable))
	for name, q := range s.Allocatable {
		left := q.DeepCopy()
		left.Sub(s.Allocated[name])
		left.Sub(s.Allocating[name])
		free[name] = max(0, amount(name, &left))
	}
	return free
}

// setOf is what all replicas of all components request together, without what is not requested, and how many pods they
// are, at least one. What does not fit into a number is the largest.
func setOf(components []workv1alpha2.Component) (set resources, pods int64) {
	set = resources{}
	for i := range components {
		c := &components[i]
		pods += int64(max(0, c.Replicas))
		if c.ReplicaRequirements == nil {
			continue
		}
		for name, q := range c.ReplicaRequirements.ResourceRequest {
			one, replicas := amount(name, &q), int64(max(0, c.Replicas))
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

// Room estimates from the clusters' own summaries: what is free divided by what one replica requests, and free pods. In
// a cluster whose nodes the hub does not see, its resource models say how that is spread over nodes. A cluster without
// a summary is unknown; one that has none of a resource requested has no room.
func (s Snapshot) Room(b workv1alpha2.Binding) Capacity {
	var requests []request
	pods := int64(1)
	spec := b.BindingSpec()
	if len(spec.Components) > 0 {
		var set resources
		set, pods = setOf(spec.Components)
		for name, n := range set {
			requests = append(requests, request{name, n})
		}
	} else if r := spec.ReplicaRequirements; r != nil {
		for name, q := range r.ResourceRequest {
			if n := amount(name, &q); n > 0 {
				requests = append(requests, request{name, n})
			}
		}
	}
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
		if m.cluster.Spec.SyncMode == clusterv1alpha1.Pull && len(spec.Components) == 0 {
			n = min(n, modelled(m.cluster, requests))
		}
		return int32(n), true
	}
}

// modelled is how many replicas fit on nodes of which only the grade is known: each has the least of its grade.
// Resources that the models do not name bound nothing, and neither do models that name none of the resources.
func modelled(c *clusterv1alpha1.Cluster, requests []request) int64 {
	total, says := int64(0), false
	for _, counted := range c.Status.ResourceSummary.AllocatableModelings {
		at := slices.IndexFunc(c.Spec.ResourceModels, func(m clusterv1alpha1.ResourceModel) bool {
			return m.Grade == counted.Grade
		})
		if at < 0 {
			continue // the models changed, and the nodes were not counted by them yet
		}
		each := int64(math.MaxInt32)
		for _, r := range requests {
			for i := range c.Spec.ResourceModels[at].Ranges {
				if least := &c.Spec.ResourceModels[at].Ranges[i]; least.Name == r.name {
					says = true
					each = min(each, max(0, amount(r.name, &least.Min))/r.amount)
				}
			}
		}
		total = min(math.MaxInt32, total+each*int64(max(0, counted.Count)))
	}
	if !says {
		return math.MaxInt32
	}
	return total
}
