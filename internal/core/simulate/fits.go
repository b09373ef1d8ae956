package simulate

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/capacity"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/core/schedule"
)

// remedies are what would make a binding fit that does not, each by itself, as found by asking the scheduler again.
func (s *state) remedies(b workv1alpha2.Binding, failure error) []string {
	var out []string
	candidates, rejected := schedule.Feasible(b, s.seenBy(b))

	// 1. More room, or fewer replicas.
	var short *schedule.UnschedulableError
	if errors.As(failure, &short) {
		spec := b.BindingSpec()
		missing := short.Wanted - short.Available
		where := make([]string, len(candidates))
		for i := range candidates {
			where[i] = candidates[i].Cluster.Name
		}
		out = append(out, fmt.Sprintf("room for %d more replicas%s in %s", missing, requests(spec.ReplicaRequirements, missing), few(where)))
		if fewer := int64(spec.Replicas) - missing; fewer > 0 {
			if _, err := s.attempt(b, func(spec *workv1alpha2.ResourceBindingSpec) { spec.Replicas = int32(fewer) }); err == nil {
				out = append(out, fmt.Sprintf("%d replicas instead of %d", fewer, spec.Replicas))
			}
		}
	}

	// 2. The kind, where the policy would have it.
	gk := propagate.GroupKind(b.BindingSpec().Resource.APIVersion, b.BindingSpec().Resource.Kind)
	var unserved []string
	for _, r := range rejected {
		if c := s.snapshot.Cluster(r.Cluster); len(s.snapshot.Versions(r.Cluster, gk)) == 0 && means(b.BindingSpec().Placement, c.Name, s) {
			unserved = append(unserved, r.Cluster)
		}
	}
	if len(unserved) > 0 && len(candidates) == 0 {
		out = append(out, fmt.Sprintf("the definition of %s in %s", gk, few(unserved)))
	}

	// 3. A policy that asks for less: one thing alone if that does, else together with others.
	placement := b.BindingSpec().Placement
	relaxations := []relaxation{
		{len(placement.SpreadConstraints) > 0, func(p *policyv1alpha1.Placement) { p.SpreadConstraints = nil },
			func([]string) string { return "no spreadConstraints, or a smaller minGroups" }},
		{true, func(p *policyv1alpha1.Placement) {
			p.ClusterTolerations = append(p.ClusterTolerations, corev1.Toleration{Operator: corev1.TolerationOpExists})
		}, func(gained []string) string {
			return fmt.Sprintf("clusterTolerations for %s, or %s without it", strings.Join(s.taints(gained), " and "), few(gained))
		}},
		{placement.ClusterAffinity != nil || len(placement.ClusterAffinities) > 0, func(p *policyv1alpha1.Placement) { p.ClusterAffinity, p.ClusterAffinities = nil, nil },
			func(gained []string) string { return "a cluster affinity that takes " + few(gained) + " in" }},
	}
	for together := 1; together <= len(relaxations); together++ {
		found := false
		for _, some := range choose(relaxations, together) {
			result, err := s.attempt(b, func(spec *workv1alpha2.ResourceBindingSpec) {
				for _, r := range some {
					r.relax(spec.Placement)
				}
			})
			if err != nil {
				continue
			}
			found = true
			gained := s.gained(result, candidates)
			var texts []string
			for _, r := range some {
				texts = append(texts, r.text(gained))
			}
			out = append(out, strings.Join(texts, ", and "))
		}
		if found {
			break
		}
	}
	if len(out) == 0 && s.snapshot.Len() == 0 {
		out = append(out, "a cluster")
	}
	return out
}

// relaxation is a way in which a placement may ask for less, where it applies at all; text names it, by the clusters that it gained.
type relaxation struct {
	applies bool
	relax   func(*policyv1alpha1.Placement)
	text    func(gained []string) string
}

// choose are the ways to take n of those that apply, in their order.
func choose(from []relaxation, n int) (out [][]relaxation) {
	from = slices.DeleteFunc(slices.Clone(from), func(r relaxation) bool { return !r.applies })
	for mask := range 1 << len(from) {
		var some []relaxation
		for i := range from {
			if mask&(1<<i) != 0 {
				some = append(some, from[i])
			}
		}
		if len(some) == n {
			out = append(out, some)
		}
	}
	return out
}

// attempt is what the scheduler says of the binding if its spec were another.
func (s *state) attempt(b workv1alpha2.Binding, change func(*workv1alpha2.ResourceBindingSpec)) (schedule.Result, error) {
	b = b.DeepCopyObject().(workv1alpha2.Binding)
	change(b.BindingSpec())
	return schedule.Schedule(b, s.seenBy(b), s.room(b))
}

// gained are the targets that were no candidates before; all targets if each was one.
func (s *state) gained(result schedule.Result, candidates []schedule.Candidate) []string {
	var all, others []string
	for _, t := range result.Clusters {
		all = append(all, t.Name)
		if !slices.ContainsFunc(candidates, func(c schedule.Candidate) bool { return c.Cluster.Name == t.Name }) {
			others = append(others, t.Name)
		}
	}
	if len(others) == 0 {
		return all
	}
	return others
}

// taints are those of the clusters that keep templates away, each once.
func (s *state) taints(clusters []string) []string {
	all := map[string]bool{}
	for _, name := range clusters {
		for _, t := range s.snapshot.Cluster(name).Spec.Taints {
			if t.Effect != corev1.TaintEffectPreferNoSchedule {
				all[t.ToString()] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// means says whether a placement's affinity, by any of its terms, takes a cluster in.
func means(p *policyv1alpha1.Placement, cluster string, s *state) bool {
	c := s.snapshot.Cluster(cluster)
	if len(p.ClusterAffinities) == 0 {
		return p.ClusterAffinity == nil || schedule.MatchesAffinity(c, *p.ClusterAffinity)
	}
	return slices.ContainsFunc(p.ClusterAffinities, func(t policyv1alpha1.ClusterAffinityTerm) bool { return schedule.MatchesAffinity(c, t.ClusterAffinity) })
}

// requests is what n replicas request, as " (cpu 4, memory 8Gi)"; empty if that is nothing.
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
		texts = append(texts, amount(name, quantity(name, capacity.AmountsOf(corev1.ResourceList{name: q})[name]*n)))
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

// quantity returns an amount as Kubernetes writes it.
func quantity(name corev1.ResourceName, n int64) resource.Quantity {
	switch name {
	case corev1.ResourceCPU:
		return *resource.NewMilliQuantity(n, resource.DecimalSI)
	case corev1.ResourceMemory, corev1.ResourceEphemeralStorage, corev1.ResourceStorage:
		return *resource.NewQuantity(n, resource.BinarySI)
	}
	return *resource.NewQuantity(n, resource.DecimalSI)
}
