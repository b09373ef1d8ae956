package simulate

import (
	"math"

	corev1 "k8s.io/api/core/v1"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/schedule"
)

// amounts are of CPU in thousandths, of other resources in units.
type amounts map[corev1.ResourceName]int64

func amountsOf(list corev1.ResourceList) amounts {
	a := make(amounts, len(list)+1)
	for name, q := range list {
		if name == corev1.ResourceCPU {
			a[name] = q.MilliValue()
			continue
		}
		a[name] = q.Value()
	}
	return a
}

// rooms is what clusters have free, kept current while workloads are placed. Where more was placed than there is room, it is negative.
type rooms struct {
	// free by cluster; a cluster that never said what it has is absent: its room is unknown.
	free map[string]amounts
}

func newRooms(clusters map[string]*clusterv1alpha1.Cluster) rooms {
	r := rooms{free: make(map[string]amounts, len(clusters))}
	for name, c := range clusters {
		if free := freeOf(c.Status.ResourceSummary); free != nil {
			r.free[name] = free
		}
	}
	return r
}

// freeOf is what the summary leaves; nil if there is none.
func freeOf(s *clusterv1alpha1.ResourceSummary) amounts {
	if s == nil || len(s.Allocatable) == 0 {
		return nil
	}
	free := amountsOf(s.Allocatable)
	for _, taken := range []amounts{amountsOf(s.Allocated), amountsOf(s.Allocating)} {
		for name, n := range taken {
			if _, counted := free[name]; counted {
				free[name] -= n
			}
		}
	}
	return free
}

func (r rooms) clone() rooms {
	next := rooms{free: make(map[string]amounts, len(r.free))}
	for cluster, free := range r.free {
		next.free[cluster] = amounts(copied(free))
	}
	return next
}

// of is the estimator's answer for a binding: as schedule.Snapshot's Room, of what is free now.
func (r rooms) of(b workv1alpha2.Binding) schedule.Capacity {
	var requests amounts
	each := int64(1) // pods
	if spec := b.BindingSpec(); len(spec.Components) > 0 {
		requests, each = amounts{}, 0
		for i := range spec.Components {
			c := &spec.Components[i]
			each += int64(c.Replicas)
			if c.ReplicaRequirements == nil {
				continue
			}
			for name, n := range amountsOf(c.ReplicaRequirements.ResourceRequest) {
				requests[name] += n * int64(c.Replicas)
			}
		}
	} else if need := spec.ReplicaRequirements; need != nil {
		requests = amountsOf(need.ResourceRequest)
	}
	return func(cluster string) (int32, bool) {
		free, known := r.free[cluster]
		if !known {
			return 0, false
		}
		n := int64(math.MaxInt32)
		if pods, limited := free[corev1.ResourcePods]; limited {
			n = min(n, pods/max(1, each))
		}
		for name, amount := range requests {
			if amount > 0 {
				n = min(n, free[name]/amount)
			}
		}
		return int32(max(0, n)), true
	}
}

// move accounts for a binding that becomes another; either may be nil.
func (r rooms) move(was, is workv1alpha2.Binding) {
	r.account(was, 1)
	r.account(is, -1)
}

func (r rooms) account(b workv1alpha2.Binding, sign int64) {
	if b == nil || len(b.BindingSpec().Clusters) == 0 {
		return
	}
	// What each target takes: of several components all, else its replicas.
	spec := b.BindingSpec()
	type part struct {
		need     amounts
		replicas int64
	}
	var parts []part
	for i := range spec.Components {
		p := part{replicas: int64(spec.Components[i].Replicas)}
		if need := spec.Components[i].ReplicaRequirements; need != nil {
			p.need = amountsOf(need.ResourceRequest)
		}
		parts = append(parts, p)
	}
	if len(spec.Components) == 0 {
		parts = []part{{}}
		if need := spec.ReplicaRequirements; need != nil {
			parts[0].need = amountsOf(need.ResourceRequest)
		}
	}
	for _, t := range spec.Clusters {
		free, known := r.free[t.Name]
		if !known {
			continue
		}
		for _, p := range parts {
			if len(spec.Components) == 0 {
				p.replicas = int64(t.Replicas)
			}
			if _, counted := free[corev1.ResourcePods]; counted {
				free[corev1.ResourcePods] += sign * p.replicas
			}
			for name, each := range p.need {
				if _, counted := free[name]; counted {
					free[name] += sign * p.replicas * each
				}
			}
		}
	}
}
