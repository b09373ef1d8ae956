package deschedule

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/schedule"
)

// Move is a new placement of a binding with the same total of replicas.
type Move struct {
	// Clusters is the new placement, sorted by name.
	Clusters []workv1alpha2.TargetCluster
	// Left and Took are the replicas that clusters lose and gain. The sums are equal and no cluster is in both.
	Left, Took map[string]int32
}

// errUnmoved occurs if spread constraints or unusable clusters would move other replicas too.
var errUnmoved = errors.New("the scheduler would have to move other replicas as well")

// Rests reports whether b is scheduled, up to date, and divided by available replicas, so that replicas may move.
func Rests(b workv1alpha2.Binding, s schedule.Snapshot, schedulerName string) bool {
	spec := b.BindingSpec()
	if !schedule.PlacedBy(b, schedulerName) || !schedule.SharedByRoom(spec) || len(spec.GracefulEvictionTasks) > 0 {
		return false
	}
	if halt := spec.Suspension; halt != nil &&
		(halt.Dispatching != nil && *halt.Dispatching || halt.DispatchingOnClusters != nil) {
		return false // dispatching is suspended
	}
	_, due := schedule.Due(b, s)
	return !due
}

// elsewhere moves as many replicas as have room elsewhere. leave is the maximum by cluster. It returns an error if none
// can move. limit, if not nil, bounds what a cluster takes. A cluster with unknown room takes none, because a replica
// may be unschedulable there too. The move takes its room.
func elsewhere(b workv1alpha2.Binding, leave map[string]int32, s schedule.Snapshot, room schedule.Room,
	limit schedule.Capacity) (Move, error) {
	free := room.Free(b)
	takes := func(cluster string) (int32, bool) {
		n, known := free(cluster)
		if !known || leave[cluster] > 0 {
			return 0, true
		}
		if schedule.Grouped(b) && workv1alpha2.ReplicasIn(b.BindingSpec().Clusters, cluster) == 0 {
			return 0, true // the scheduler handles workload groups
		}
		if limit != nil {
			if most, ok := limit(cluster); ok {
				n = min(n, most)
			}
		}
		return n, true
	}
	failure := error(errUnmoved)
	for total := sum(leave); total > 0; {
		leave := trim(leave, total)
		result, err := schedule.Schedule(lowered(b, leave), s, takes)
		if move, ok := moved(b, result.Clusters, leave); err == nil && ok {
			room.Take(b, move.Clusters)
			return move, nil
		}
		var short *schedule.UnschedulableError
		switch {
		case errors.As(err, &short):
			failure, total = err, min(total-1, int32(min(short.Available, math.MaxInt32)))
		case err != nil:
			return Move{}, err
		default:
			total /= 2
		}
	}
	return Move{}, failure
}

// lowered returns b without the replicas that leave, in its current affinity term, as input for the scheduler.
func lowered(b workv1alpha2.Binding, leave map[string]int32) workv1alpha2.Binding {
	b = b.DeepCopyObject().(workv1alpha2.Binding)
	spec := b.BindingSpec()
	for i := range spec.Clusters {
		spec.Clusters[i].Replicas -= leave[spec.Clusters[i].Name]
	}
	spec.Clusters = slices.DeleteFunc(spec.Clusters, func(t workv1alpha2.TargetCluster) bool { return t.Replicas <= 0 })
	for _, t := range spec.Placement.ClusterAffinities {
		if t.AffinityName == b.BindingStatus().SchedulerObservedAffinityName {
			spec.Placement.ClusterAffinities = append(spec.Placement.ClusterAffinities[:0:0], t)
			break
		}
	}
	return b
}

// moved returns the move from b's placement to another. ok is false if other replicas would move too.
func moved(b workv1alpha2.Binding, to []workv1alpha2.TargetCluster, leave map[string]int32) (m Move, ok bool) {
	change := map[string]int32{}
	for _, t := range b.BindingSpec().Clusters {
		change[t.Name] -= t.Replicas
	}
	for _, t := range to {
		change[t.Name] += t.Replicas
	}
	m = Move{Clusters: to, Left: leave, Took: map[string]int32{}}
	var total int32
	for cluster, n := range change {
		total += n
		switch {
		case n != -leave[cluster] && (n < 0 || leave[cluster] > 0):
			return Move{}, false
		case n > 0:
			m.Took[cluster] = n
		}
	}
	return m, total == 0
}

// trim reduces the replicas that leave to total, in order of cluster name.
func trim(leave map[string]int32, total int32) map[string]int32 {
	out := map[string]int32{}
	for _, cluster := range slices.Sorted(maps.Keys(leave)) {
		if n := min(leave[cluster], total); n > 0 {
			out[cluster] = n
			total -= n
		}
	}
	return out
}

func sum(replicas map[string]int32) (n int32) {
	for _, r := range replicas {
		n += r
	}
	return n
}

// Allowance returns how many of the replicas may move at once: a number, or a percentage rounded up, but at least one.
func Allowance(share intstr.IntOrString, replicas int32) int32 {
	n, err := intstr.GetScaledValueFromIntOrPercent(&share, int(replicas), true)
	if err != nil {
		n = 1 // admission rejects invalid values
	}
	return int32(max(1, min(n, int(replicas))))
}

// Listed writes replicas by cluster for users: "m1: 2, m2: 1".
func Listed(replicas map[string]int32) string {
	var out []string
	for _, cluster := range slices.Sorted(maps.Keys(replicas)) {
		out = append(out, fmt.Sprintf("%s: %d", cluster, replicas[cluster]))
	}
	return strings.Join(out, ", ")
}
