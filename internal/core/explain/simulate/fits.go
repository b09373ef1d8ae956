package simulate

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/cluster/capacity"
	"github.com/argosy-io/argosy/internal/core/schedule"
)

// roomLacking returns what would give a binding enough capacity: more in its clusters, or fewer replicas. It returns
// nil if the scheduler failed for another reason; then schedule.Help has the advice.
func (s *state) roomLacking(b workv1alpha2.Binding, failure error) []string {
	var short *schedule.UnschedulableError
	if !errors.As(failure, &short) || len(b.BindingSpec().Components) > 0 {
		return nil
	}
	candidates, _ := schedule.Feasible(b, s.seenBy(b))
	where := make([]string, len(candidates))
	for i := range candidates {
		where[i] = candidates[i].Cluster.Name
	}
	spec, missing := b.BindingSpec(), short.Wanted-short.Available
	needs := requests(spec.ReplicaRequirements, missing)
	out := []string{fmt.Sprintf("room for %d more replicas%s in %s%s", missing, needs, few(where), s.limits(b, where))}
	if fewer := int64(spec.Replicas) - missing; fewer > 0 {
		out = append(out, fmt.Sprintf("%d replicas instead of %d", fewer, spec.Replicas))
	}
	return out
}

// limits returns what limits a binding in clusters, after "; "; empty if nothing is known.
func (s *state) limits(b workv1alpha2.Binding, clusters []string) string {
	limits := capacity.LimitsText(clusters, func(cluster string) string {
		m := s.rooms.member(cluster)
		if m == nil || !m.HasNodes() {
			return ""
		}
		return m.Limit(b).Text(b)
	})
	if limits == "" {
		return ""
	}
	return "; " + limits
}

// requests returns what n replicas request, as " (cpu 4, memory 8Gi)"; empty for no requests.
func requests(need *workv1alpha2.ReplicaRequirements, n int64) string {
	if need == nil {
		return ""
	}
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(need.ResourceRequest)) {
		q := need.ResourceRequest[name]
		if q.IsZero() {
			continue
		}
		texts = append(texts, amount(name, capacity.Quantity(name, capacity.Amount(name, q)*n)))
	}
	if len(texts) == 0 {
		return ""
	}
	return " (" + strings.Join(texts, ", ") + ")"
}

// amount returns "cpu 4" or "memory 8Gi".
func amount(name corev1.ResourceName, q resource.Quantity) string {
	return string(name) + " " + capacity.UnitOf(name, q).Write(q)
}
