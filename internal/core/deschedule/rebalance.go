package deschedule

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/schedule"
)

// Threshold is how much of each resource the pods of a cluster may request, in percent of what its nodes can allocate.
type Threshold map[corev1.ResourceName]int32

// ceiling is the part of a threshold, in tenths, up to which a cluster takes replicas that others give: what takes
// never has to give then, and what gave a replica too much does not get it back.
const ceiling = 9

// amounts are of CPU in thousandths, of others in units.
type amounts map[corev1.ResourceName]int64

func amount(name corev1.ResourceName, q resource.Quantity) int64 {
	if name == corev1.ResourceCPU {
		return q.MilliValue()
	}
	return q.Value()
}

// Load is what the pods of each cluster request, counted with what is on its way.
type Load map[string]*use

type use struct {
	has amounts
	// gives is requested by the pods on nodes, without those about to go; takes with those that wait and those about to
	// come. A cluster gives by the one and takes by the other, so that no move is made for what an earlier one will have
	// done.
	gives, takes amounts
}

// LoadOf is the load of these clusters, as far as they tell of it. used is the share of each resource that the pods on
// nodes request by now, nil where that is not known: the summary in a cluster's status is some seconds old. all are the
// bindings of the fleet.
func LoadOf(s schedule.Snapshot, clusters []string, used func(cluster string) map[corev1.ResourceName]float64,
	all []workv1alpha2.Binding) Load {
	l := Load{}
	for _, name := range clusters {
		c := s.Cluster(name)
		if c == nil || c.Status.ResourceSummary == nil || len(c.Status.ResourceSummary.Allocatable) == 0 {
			continue
		}
		u := &use{amounts{}, amounts{}, amounts{}}
		summary, now := c.Status.ResourceSummary, used(name)
		for resource, q := range summary.Allocatable {
			u.has[resource] = amount(resource, q)
			u.gives[resource] = amount(resource, summary.Allocated[resource])
			if share, known := now[resource]; known {
				u.gives[resource] = int64(math.Round(share * float64(u.has[resource])))
			}
			u.takes[resource] = u.gives[resource] + amount(resource, summary.Allocating[resource])
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
				l.move(b, item.ClusterName, min(0, assigned(b, item.ClusterName)-s.Replicas), 0)
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

// Over says whether a cluster may be over the threshold. Counted with nothing on its way it is at most that.
func (l Load) Over(t Threshold) bool {
	for _, u := range l {
		if _, _, over := u.worst(t); over {
			return true
		}
	}
	return false
}

// move counts replicas that leave a cluster, a negative number, and that come to it.
func (l Load) move(b workv1alpha2.Binding, cluster string, leave, come int32) {
	u := l[cluster]
	if u == nil || b.BindingSpec().ReplicaRequirements == nil {
		return
	}
	for name, q := range b.BindingSpec().ReplicaRequirements.ResourceRequest {
		u.gives[name] += int64(leave) * amount(name, q)
		u.takes[name] += int64(come) * amount(name, q)
	}
}

// excess is by how much of a resource the cluster is over the threshold; 0 or less if it is not.
func (u *use) excess(t Threshold, name corev1.ResourceName) int64 {
	return u.gives[name] - part(u.has[name], int64(t[name]), 100)
}

// part is all*of/whole; the product need not fit.
func part(all, of, whole int64) int64 { return all/whole*of + all%whole*of/whole }

// worst is the resource that the cluster is most over the threshold in, by share; ok is false where it is in none.
func (u *use) worst(t Threshold) (name corev1.ResourceName, over float64, ok bool) {
	for _, r := range slices.Sorted(maps.Keys(t)) {
		if share := float64(u.excess(t, r)) / float64(max(1, u.has[r])); u.excess(t, r) > 0 && share > over {
			name, over, ok = r, share, true
		}
	}
	return name, over, ok
}

// room is how many replicas a cluster takes before it is near the threshold.
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

// request is what one replica of b asks of a resource.
func request(b workv1alpha2.Binding, name corev1.ResourceName) int64 {
	if r := b.BindingSpec().ReplicaRequirements; r != nil {
		if q, ok := r.ResourceRequest[name]; ok {
			return amount(name, q)
		}
	}
	return 0
}

// relief is how many replicas of b must go for the cluster to be over the threshold in nothing that they ask for; 0 if
// they ask for nothing of it.
func (u *use) relief(t Threshold, b workv1alpha2.Binding) int32 {
	var n int64
	for name := range t {
		if one, excess := request(b, name), u.excess(t, name); one > 0 && excess > 0 {
			n = max(n, (excess+one-1)/one)
		}
	}
	return int32(min(n, math.MaxInt32))
}

// Decision is a move of one binding, out of one cluster.
type Decision struct {
	Binding workv1alpha2.Binding
	From    string
	Move    Move
}

// Rebalanced is what a look at the clusters came to.
type Rebalanced struct {
	Decisions []Decision
	// Over are the clusters that were over the threshold, sorted by name, with the resource that they were most over in.
	Over map[string]corev1.ResourceName
	// Held says of those that give nothing now, why.
	Held map[string]Held
}

// Held is why a cluster over the threshold gives nothing.
type Held struct {
	Why string
	// Waits says that it will by itself.
	Waits bool
}

// Rebalance has clusters over the threshold give replicas to clusters that are well under it, the largest first, until
// they are at it. targets are the bindings at rest (see Rests) that may give; allowed is how many replicas of each at a
// time, most how many bindings. A workload gives while all of its replicas are ready, and never its last: so no more
// than is allowed are out at a time. load is changed as if the moves had been made.
func Rebalance(t Threshold, targets []workv1alpha2.Binding, load Load, f Fleet, allowed intstr.IntOrString, most int,
	now time.Time) Rebalanced {
	out := Rebalanced{Over: map[string]corev1.ResourceName{}, Held: map[string]Held{}}
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
			break // the others have their turn later
		}
		held := Held{Why: "no replicas that this policy may move request any of its " + string(out.Over[from])}
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
				held = Held{"the workloads in it have replicas that are not ready, or that moved recently", true}
				continue
			}
			replicas := b.BindingSpec().Replicas
			n := min(Allowance(allowed, replicas), replicas-1, assigned(b, from), wanted)
			if n <= 0 {
				held.Why = "the workloads in it have one replica, which does not move while it is ready"
				continue
			}
			record := RecordOf(b)
			m, err := elsewhere(b, map[string]int32{from: n}, f, func(cluster string) (int32, bool) {
				if load[cluster] == nil || record.shut(cluster, now) {
					return 0, true
				}
				return load[cluster].room(t, b), true
			})
			if err != nil {
				held.Why = "no other cluster can run more replicas without reaching the threshold"
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
			out.Held[from] = held
		}
	}
	return out
}

// largest are the bindings with replicas in a cluster, those first whose replica asks for most.
func largest(targets []workv1alpha2.Binding, cluster string, name corev1.ResourceName) []workv1alpha2.Binding {
	var there []workv1alpha2.Binding
	for _, b := range targets {
		if assigned(b, cluster) > 0 {
			there = append(there, b)
		}
	}
	slices.SortFunc(there, func(a, b workv1alpha2.Binding) int {
		return cmp.Or(cmp.Compare(request(b, name), request(a, name)), strings.Compare(a.GetNamespace(), b.GetNamespace()),
			strings.Compare(a.GetName(), b.GetName()))
	})
	return there
}

// spare says whether b can do with fewer ready replicas for a while: all are ready, where they shall be, and did not
// just come.
func spare(b workv1alpha2.Binding, from string, now time.Time) bool {
	for _, t := range b.BindingSpec().Clusters {
		if s, known := seenIn(b, t.Name); !known || s.Ready != t.Replicas || s.Replicas != t.Replicas {
			return false
		}
	}
	return !RecordOf(b).settling(from, now)
}
