package deschedule

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/cluster/capacity"
	"github.com/argosy-io/argosy/internal/core/schedule"
)

// Threshold is the maximum requested percentage of a cluster's allocatable resources.
type Threshold map[corev1.ResourceName]int32

// ceiling is the part of the threshold, in tenths, up to which a cluster takes replicas. The distance to the threshold
// prevents that replicas move back and forth.
const ceiling = 9

// loadAmounts are CPU in millicores and other resources in units.
type loadAmounts map[corev1.ResourceName]int64

// Load has the requests of the pods in each cluster, including pending changes.
type Load map[string]*use

type use struct {
	has loadAmounts
	// gives are the requests of pods on nodes, without pods about to leave. takes also has pending pods and pods about to
	// come. A cluster gives by the first and takes by the second, so that pending moves are not repeated.
	gives, takes loadAmounts
}

// LoadOf returns the load of the clusters that report it. used is the current requested share of a cluster's nodes, or
// nil if unknown; the cluster's status may be some seconds old. all are all bindings.
func LoadOf(s schedule.Snapshot, clusters []string, used func(cluster string) map[corev1.ResourceName]float64,
	all []workv1alpha2.Binding) Load {
	l := Load{}
	for _, name := range clusters {
		c := s.Cluster(name)
		if c == nil || c.Status.ResourceSummary == nil || len(c.Status.ResourceSummary.Allocatable) == 0 {
			continue
		}
		u := &use{loadAmounts{}, loadAmounts{}, loadAmounts{}}
		summary, now := c.Status.ResourceSummary, used(name)
		for resource, q := range summary.Allocatable {
			u.has[resource] = capacity.Amount(resource, q)
			u.gives[resource] = capacity.Amount(resource, summary.Allocated[resource])
			if share, known := now[resource]; known {
				u.gives[resource] = int64(math.Round(share * float64(u.has[resource])))
			}
			u.takes[resource] = u.gives[resource] + capacity.Amount(resource, summary.Allocating[resource])
		}
		l[name] = u
	}
	for _, b := range all {
		spec := b.BindingSpec()
		if spec.ReplicaRequirements == nil || spec.Placement == nil || !spec.Placement.DividesReplicas() {
			continue
		}
		for _, item := range b.BindingStatus().AggregatedStatus {
			if s, known := seenIn(b, item.ClusterName); known {
				has := workv1alpha2.ReplicasIn(b.BindingSpec().Clusters, item.ClusterName)
				l.move(b, item.ClusterName, min(0, has-s.Replicas), 0)
			}
		}
		for _, t := range spec.Clusters {
			if s, known := seenIn(b, t.Name); known || len(b.BindingStatus().AggregatedStatus) == 0 {
				l.move(b, t.Name, 0, max(0, t.Replicas-s.Replicas))
			}
		}
	}
	return l
}

// Over reports whether a cluster may be over the threshold. Without bindings in LoadOf the answer is an upper bound.
func (l Load) Over(t Threshold) bool {
	for _, u := range l {
		if _, _, over := u.worst(t); over {
			return true
		}
	}
	return false
}

// move adds replicas that leave (negative) and come to a cluster.
func (l Load) move(b workv1alpha2.Binding, cluster string, leave, come int32) {
	u := l[cluster]
	if u == nil || b.BindingSpec().ReplicaRequirements == nil {
		return
	}
	for name, q := range b.BindingSpec().ReplicaRequirements.ResourceRequest {
		u.gives[name] += int64(leave) * capacity.Amount(name, q)
		u.takes[name] += int64(come) * capacity.Amount(name, q)
	}
}

// excess returns the amount over the threshold; 0 or less if not over.
func (u *use) excess(t Threshold, name corev1.ResourceName) int64 {
	return u.gives[name] - part(u.has[name], int64(t[name]), 100)
}

// part returns all*of/whole without overflow of the product.
func part(all, of, whole int64) int64 { return all/whole*of + all%whole*of/whole }

// worst returns the resource that exceeds the threshold by the largest share. ok is false if none does.
func (u *use) worst(t Threshold) (name corev1.ResourceName, over float64, ok bool) {
	for _, r := range slices.Sorted(maps.Keys(t)) {
		if share := float64(u.excess(t, r)) / float64(max(1, u.has[r])); u.excess(t, r) > 0 && share > over {
			name, over, ok = r, share, true
		}
	}
	return name, over, ok
}

// room returns how many replicas the cluster takes before it reaches the ceiling.
func (u *use) room(t Threshold, b workv1alpha2.Binding) int32 {
	if _, _, over := u.worst(t); over {
		return 0
	}
	n := int64(math.MaxInt32)
	for name, percent := range t {
		if one := request(b, name); one > 0 {
			n = min(n, (part(u.has[name], int64(percent)*ceiling, 1000)-u.takes[name])/one)
		}
	}
	return int32(max(0, n))
}

// request returns the request of one replica of b.
func request(b workv1alpha2.Binding, name corev1.ResourceName) int64 {
	if r := b.BindingSpec().ReplicaRequirements; r != nil {
		if q, ok := r.ResourceRequest[name]; ok {
			return capacity.Amount(name, q)
		}
	}
	return 0
}

// relief returns how many replicas of b must leave to bring the resources that they request below the threshold; 0 if
// they request none of these.
func (u *use) relief(t Threshold, b workv1alpha2.Binding) int32 {
	var n int64
	for name := range t {
		if one, excess := request(b, name), u.excess(t, name); one > 0 && excess > 0 {
			n = max(n, (excess+one-1)/one)
		}
	}
	return int32(min(n, math.MaxInt32))
}

// Decision is a move of one binding out of one cluster.
type Decision struct {
	Binding workv1alpha2.Binding
	From    string
	Move    Move
}

// Rebalanced is the result of Rebalance.
type Rebalanced struct {
	Decisions []Decision
	// Over are the clusters over the threshold, sorted by name, with the resource that exceeds it most.
	Over map[string]corev1.ResourceName
	// Blocked are the clusters over the threshold from which nothing moves now.
	Blocked map[string]Blocked
}

// Blocked explains why nothing moves out of a cluster over the threshold.
type Blocked struct {
	Why string
	// Waits is true if the state will change by itself.
	Waits bool
}

// Rebalance moves replicas from clusters over the threshold to clusters well under it, largest replicas first, until
// they are at the threshold. targets are the bindings at rest (see Rests) that may move, allowed the replicas of each
// at once, most the number of bindings. A workload moves replicas only while all are ready, and never its last one.
// Rebalance updates load and room with the moves.
func Rebalance(t Threshold, targets []workv1alpha2.Binding, load Load, s schedule.Snapshot, room schedule.Room,
	allowed intstr.IntOrString, most int, now time.Time) Rebalanced {
	out := Rebalanced{Over: map[string]corev1.ResourceName{}, Blocked: map[string]Blocked{}}
	shares := map[string]float64{}
	for cluster, u := range load {
		if name, share, over := u.worst(t); over {
			out.Over[cluster], shares[cluster] = name, share
		}
	}
	order := slices.SortedFunc(maps.Keys(shares), func(a, b string) int {
		return cmp.Or(cmp.Compare(shares[b], shares[a]), strings.Compare(a, b))
	})
	gone := map[workv1alpha2.Binding]bool{}
	for _, from := range order {
		if len(out.Decisions) >= most {
			break // the others follow in later rounds
		}
		blocked := Blocked{Why: "no replicas that this policy may move request any of its " + string(out.Over[from])}
		before := len(out.Decisions)
		for _, b := range largest(targets, from, out.Over[from]) {
			if _, _, over := load[from].worst(t); !over || len(out.Decisions) >= most {
				break
			}
			wanted := load[from].relief(t, b)
			if gone[b] || wanted == 0 {
				continue
			}
			if !spare(b, from, now) {
				blocked = Blocked{"the workloads in it have replicas that are not ready, or that moved recently", true}
				continue
			}
			replicas := b.BindingSpec().Replicas
			n := min(Allowance(allowed, replicas), replicas-1, workv1alpha2.ReplicasIn(b.BindingSpec().Clusters, from), wanted)
			if n <= 0 {
				blocked.Why = "the workloads in it have one replica, which does not move while it is ready"
				continue
			}
			record := RecordOf(b)
			m, err := elsewhere(b, map[string]int32{from: n}, s, room, func(cluster string) (int32, bool) {
				if load[cluster] == nil || record.shut(cluster, now) {
					return 0, true
				}
				return load[cluster].room(t, b), true
			})
			if err != nil {
				blocked.Why = "no other cluster can run more replicas without reaching the threshold"
				continue
			}
			load.move(b, from, -m.Left[from], 0)
			for cluster, n := range m.Took {
				load.move(b, cluster, 0, n)
			}
			gone[b] = true
			out.Decisions = append(out.Decisions, Decision{b, from, m})
		}
		if _, _, over := load[from].worst(t); over && len(out.Decisions) == before {
			out.Blocked[from] = blocked
		}
	}
	return out
}

// largest returns the bindings with replicas in a cluster, sorted by request, largest first.
func largest(targets []workv1alpha2.Binding, cluster string, name corev1.ResourceName) []workv1alpha2.Binding {
	var there []workv1alpha2.Binding
	for _, b := range targets {
		if workv1alpha2.ReplicasIn(b.BindingSpec().Clusters, cluster) > 0 {
			there = append(there, b)
		}
	}
	slices.SortFunc(there, func(a, b workv1alpha2.Binding) int {
		return cmp.Or(cmp.Compare(request(b, name), request(a, name)), strings.Compare(a.GetNamespace(), b.GetNamespace()),
			strings.Compare(a.GetName(), b.GetName()))
	})
	return there
}

// spare reports whether b can have fewer ready replicas for a while: all are ready, in place, and did not move
// recently.
func spare(b workv1alpha2.Binding, from string, now time.Time) bool {
	for _, t := range b.BindingSpec().Clusters {
		if s, known := seenIn(b, t.Name); !known || s.Ready != t.Replicas || s.Replicas != t.Replicas {
			return false
		}
	}
	return !RecordOf(b).settling(from, now)
}
