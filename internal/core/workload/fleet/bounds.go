package fleet

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argosy-io/argosy/internal/core/kind"
)

// Bounds are the smallest and the largest number of pods to which an autoscaler scales.
type Bounds struct {
	Min int32 `json:"min"`
	Max int32 `json:"max"`
}

// lowest is the smallest minimum of a cluster: 1, or 0 if the workload may be scaled to zero.
func (b Bounds) lowest() int32 { return min(max(b.Min, 0), 1) }

// SplitBounds divides the bounds between clusters in proportion to weights, of which there are at most of.Max. The
// maxima add up to of.Max. The minima add up to of.Min, or to the number of clusters if that is higher, since each is
// at least 1, unless of.Min is 0. limits are the largest shares and kept are fixed shares, unless the bounds cannot be
// divided so.
func SplitBounds(of Bounds, weights, limits map[string]int32, kept map[string]Bounds) map[string]Bounds {
	clusters := slices.Sorted(maps.Keys(weights))
	n := len(clusters)
	floor := of.lowest()
	lowest := max(of.Min, int32(n)*floor)
	free := Bounds{lowest, of.Max}
	for _, b := range kept {
		free.Min, free.Max = free.Min-b.Min, free.Max-b.Max
	}
	if rest := int32(n - len(kept)); free.Min < rest*floor || free.Max < rest || rest == 0 && (free != Bounds{}) {
		kept = nil
	}
	seats, top := make([]Seat, n), make([]int64, n)
	for i, name := range clusters {
		seats[i] = Seat{Weight: int64(max(weights[name], 1)), Cap: int64(of.Max), Floor: 1}
		if limit, limited := limits[name]; limited {
			seats[i].Cap = int64(max(limit, 1))
		}
		top[i] = int64(of.Max)
		if b, keeps := kept[name]; keeps {
			seats[i].Floor, seats[i].Cap, top[i] = int64(b.Max), int64(b.Max), int64(b.Max)
		}
	}
	most := pour(int64(of.Max), seats, top)
	for i, name := range clusters {
		seats[i].Floor, seats[i].Cap, top[i] = int64(floor), min(seats[i].Cap, most[i]), most[i]
		if b, keeps := kept[name]; keeps {
			seats[i].Floor, seats[i].Cap, top[i] = int64(b.Min), int64(b.Min), int64(b.Min)
		}
	}
	least := pour(int64(lowest), seats, top, most)
	out := make(map[string]Bounds, n)
	for i, name := range clusters {
		out[name] = Bounds{int32(least[i]), int32(most[i])}
	}
	return out
}

// pour divides total between seats, and what remains up to the tops, one after the other.
func pour(total int64, seats []Seat, tops ...[]int64) []int64 {
	shares := Split(total, seats)
	for _, top := range tops {
		raised := slices.Clone(seats)
		for i := range raised {
			raised[i].Floor, raised[i].Cap = shares[i], max(top[i], shares[i])
		}
		shares = Split(total, raised)
	}
	return shares
}

// shareBounds divides the bounds of an autoscaler by the replicas of its workload in each cluster, and in equal parts
// while they are not known. A cluster without replicas gets the lowest bounds, which do not count: nothing is scaled
// there. The shares stay until the bounds or the clusters with replicas change, and not when the autoscalers have moved
// the load.
func (f *fleet) shareBounds(s *kind.Scaler) error {
	of, err := BoundsOf(f.Template)
	if err != nil {
		return err
	}
	weights := f.scaledHere()
	shares := f.boundsBefore(of, weights)
	switch {
	case shares != nil:
	case int(of.Max) >= len(weights):
		shares = SplitBounds(of, weights, nil, nil)
	default:
		f.addCondition(BoundsTooLow, "%s is %d, but the workload is in %d clusters, each of which needs at least one pod; increase it, or select fewer clusters",
			strings.Join(s.Max, "."), of.Max, len(weights))
	}
	paused := f.pausedAt(s, weights)
	for _, m := range f.members {
		b, ok := shares[m.Cluster]
		if !ok {
			b = Bounds{of.lowest(), 1}
		}
		f.put(m, int64(b.Min), s.Min...)
		f.put(m, int64(b.Max), s.Max...)
		if n, ok := paused[m.Cluster]; ok {
			f.put(m, strconv.FormatInt(n, 10), "metadata", "annotations", s.PausedAt)
		}
	}
	return nil
}

// scaledHere returns the weights of the clusters in which the workload has replicas; of all while that is not known.
func (f *fleet) scaledHere() map[string]int32 {
	weights := map[string]int32{}
	for _, m := range f.members {
		if n := f.Target[m.Cluster]; n > 0 || len(f.Target) == 0 {
			weights[m.Cluster] = int32(min(max(n, 1), math.MaxInt32))
		}
	}
	return weights
}

// BoundsOf returns the bounds in an autoscaler.
func BoundsOf(autoscaler *unstructured.Unstructured) (Bounds, error) {
	s := kind.Facts(autoscaler).Scaler
	from, to := cmp.Or(field(autoscaler.Object, s.Min...), any(s.DefaultMin)),
		cmp.Or(field(autoscaler.Object, s.Max...), any(s.DefaultMax))
	lowest, isMin := whole(from)
	highest, isMax := whole(to)
	if !isMin || !isMax || lowest < 0 || highest < max(lowest, 1) || highest > math.MaxInt32 {
		return Bounds{}, fmt.Errorf("%s %v and %s %v are not the least and the most pods", strings.Join(s.Min, "."), from,
			strings.Join(s.Max, "."), to)
	}
	return Bounds{int32(lowest), int32(highest)}, nil
}

// boundsBefore returns the present shares of these clusters; nil if they are of other bounds or of other clusters.
func (f *fleet) boundsBefore(of Bounds, clusters map[string]int32) map[string]Bounds {
	shares, sum := map[string]Bounds{}, Bounds{}
	for _, m := range f.members {
		if _, counts := clusters[m.Cluster]; !counts {
			continue
		}
		if m.before == nil {
			return nil
		}
		b, err := BoundsOf(m.before)
		if err != nil || b.Min < of.lowest() || b.Max > of.Max {
			return nil
		}
		shares[m.Cluster] = b
		sum.Min, sum.Max = sum.Min+b.Min, sum.Max+b.Max
	}
	if sum.Max != of.Max || sum.Min != max(of.Min, int32(len(shares))*of.lowest()) {
		return nil
	}
	return shares
}

// pausedAt divides the number of pods at which a paused autoscaler keeps its workload; nil if it is not paused at one.
func (f *fleet) pausedAt(s *kind.Scaler, weights map[string]int32) map[string]int64 {
	n, err := strconv.ParseInt(f.Template.GetAnnotations()[s.PausedAt], 10, 32)
	if err != nil || n < 0 {
		return nil // members refuse it
	}
	clusters := slices.Sorted(maps.Keys(weights))
	seats := make([]Seat, len(clusters))
	for i, name := range clusters {
		seats[i] = Seat{Weight: int64(weights[name]), Cap: n}
	}
	shares := map[string]int64{}
	for i, share := range Split(n, seats) {
		shares[clusters[i]] = share
	}
	return shares
}
