package schedule

import (
	"cmp"
	"slices"
	"strings"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/match"
)

// divide assigns replicas to the chosen clusters, at least one. Divided shares add up to the wanted replicas, and
// clusters without replicas are left out. The workload's UID breaks ties, so reruns agree.
func divide(b workv1alpha2.Binding, chosen []Candidate) ([]workv1alpha2.TargetCluster, error) {
	if targets, ok := pinned(b, chosen); ok {
		return targets, nil
	}
	if targets, ok := scaled(b, chosen); ok {
		return targets, nil
	}
	spec := b.BindingSpec()
	switch s := strategyOf(spec); s {
	case everywhere:
		targets := uniformTargets(chosen, 0)
		for i := range targets {
			targets[i].Components = sharesOf(spec.Components)
		}
		return targets, nil
	case duplicated:
		return uniformTargets(chosen, spec.Replicas), nil
	case static:
		shares := weigh(spec.Placement.ReplicaScheduling.WeightPreference, chosen)
		Apportion(spec.Replicas, shares, spec.Resource.UID)
		return seated(spec, shares, chosen, false)
	default:
		return divideByRoom(spec, chosen, s, fresh(b))
	}
}

// sharesOf returns the components of each cluster: all of them.
func sharesOf(components []workv1alpha2.Component) []workv1alpha2.TargetComponent {
	if len(components) == 0 {
		return nil
	}
	shares := make([]workv1alpha2.TargetComponent, len(components))
	for i := range components {
		shares[i] = workv1alpha2.TargetComponent{Name: components[i].Name, Replicas: components[i].Replicas}
	}
	return shares
}

func uniformTargets(chosen []Candidate, replicas int32) []workv1alpha2.TargetCluster {
	targets := make([]workv1alpha2.TargetCluster, len(chosen))
	for i := range chosen {
		targets[i] = workv1alpha2.TargetCluster{Name: chosen[i].Cluster.Name, Replicas: replicas}
	}
	return targets
}

// weigh gives each cluster the largest weight of the rules that match it. Without rules, or if no rule matches, all
// have the same weight.
func weigh(p *policyv1alpha1.ClusterPreferences, chosen []Candidate) []Share {
	shares := make([]Share, len(chosen))
	for i := range chosen {
		shares[i].Name = chosen[i].Cluster.Name
	}
	if p != nil {
		applyWeights(p.StaticWeightList, chosen, shares)
	}
	if !slices.ContainsFunc(shares, func(s Share) bool { return s.Weight > 0 }) {
		for i := range shares {
			shares[i].Weight = 1
		}
	}
	return shares
}

// applyWeights raises the shares of the candidates, in the same order, to their static weights. Most rules name their
// clusters and are looked up by name. Otherwise a rule per cluster would cost the square of their number.
func applyWeights(rules []policyv1alpha1.StaticClusterWeight, candidates []Candidate, shares []Share) {
	var position map[string]int
	for r := range rules {
		rule := &rules[r]
		a := &rule.TargetCluster
		if a.LabelSelector != nil || a.FieldSelector != nil || len(a.ClusterNames) == 0 {
			for i := range candidates {
				if match.Affinity(a, candidates[i].Cluster) {
					shares[i].Weight = max(shares[i].Weight, rule.Weight)
				}
			}
			continue
		}
		if position == nil {
			position = make(map[string]int, len(candidates))
			for i := range candidates {
				position[candidates[i].Cluster.Name] = i
			}
		}
		for _, name := range a.ClusterNames {
			if i, ok := position[name]; ok && !slices.Contains(a.ExcludeClusters, name) {
				shares[i].Weight = max(shares[i].Weight, rule.Weight)
			}
		}
	}
}

// weightless returns an error if no static weight is for any cluster of the fleet: a name is misspelt, or the clusters
// left. If the weights are for clusters that are not candidates, all candidates have equal weights.
func weightless(spec *workv1alpha2.ResourceBindingSpec, s Snapshot) error {
	preference := spec.Placement.ReplicaScheduling
	if strategyOf(spec) != static || preference.WeightPreference == nil ||
		len(preference.WeightPreference.StaticWeightList) == 0 {
		return nil
	}
	for i := range preference.WeightPreference.StaticWeightList {
		a := &preference.WeightPreference.StaticWeightList[i].TargetCluster
		if a.LabelSelector == nil && a.FieldSelector == nil && len(a.ClusterNames) > 0 {
			if slices.ContainsFunc(a.ClusterNames, func(name string) bool {
				return s.member(name) != nil && !slices.Contains(a.ExcludeClusters, name)
			}) {
				return nil
			}
			continue
		}
		if slices.ContainsFunc(s.members, func(m member) bool { return match.Affinity(a, m.cluster) }) {
			return nil
		}
	}
	return errWeightless
}

// staticWeight returns the largest weight of the rules that match the cluster, which may be nil; -1 if none does.
func staticWeight(spec *workv1alpha2.ResourceBindingSpec, m *member) int64 {
	most, preference := int64(-1), spec.Placement.ReplicaScheduling.WeightPreference
	if m == nil || preference == nil {
		return most
	}
	for i := range preference.StaticWeightList {
		if w := &preference.StaticWeightList[i]; match.Affinity(&w.TargetCluster, m.cluster) {
			most = max(most, w.Weight)
		}
	}
	return most
}

// divideByRoom divides by the capacity of clusters, affinity tier by tier. Placed replicas stay: a scale-down shrinks
// all clusters in proportion, the last tier first, and a scale-up adds replicas. Only a fresh run ignores the current
// placement.
func divideByRoom(spec *workv1alpha2.ResourceBindingSpec, chosen []Candidate, s strategy,
	fresh bool) ([]workv1alpha2.TargetCluster, error) {
	var placed int64
	for i := range chosen {
		placed += int64(chosen[i].Assigned)
	}
	wanted := int64(spec.Replicas)
	scale := down // or unchanged: then each cluster keeps its replicas, which are all of its weight
	switch {
	case fresh:
		scale = anew
	case placed < wanted:
		scale, wanted = up, wanted-placed
	}

	if slices.ContainsFunc(chosen, func(c Candidate) bool { return c.Tier > 0 }) {
		slices.SortStableFunc(chosen, func(a, b Candidate) int { return cmp.Compare(a.Tier, b.Tier) })
	}
	shares := make([]Share, len(chosen))
	var room int64
	for i := range chosen {
		shares[i] = Share{Name: chosen[i].Cluster.Name, Weight: scale.weight(&chosen[i])}
		room += shares[i].Weight
	}
	if room < wanted {
		return nil, &UnschedulableError{Available: room, Wanted: wanted}
	}
	for start := 0; start < len(chosen); {
		end := start + 1
		room := shares[start].Weight
		for ; end < len(chosen) && chosen[end].Tier == chosen[start].Tier; end++ {
			room += shares[end].Weight
		}
		tier, part := shares[start:end], min(wanted, room)
		if s == aggregated {
			aggregate(tier, chosen[start:end], scale, part)
		}
		// No share exceeds its weight, which is its capacity: with Webster's method, each share gets all seats within its
		// weight before another share gets a seat beyond its own.
		Apportion(int32(part), tier, spec.Resource.UID)
		wanted, start = wanted-part, end
	}
	return seated(spec, shares, chosen, scale == up)
}

// scaling is the kind of change of the placed replicas.
type scaling int

const (
	down scaling = iota
	up
	anew
)

// weight returns the weight of a cluster: its replicas for a scale-down, its capacity for a scale-up, and both for a
// fresh run.
func (s scaling) weight(c *Candidate) int64 {
	switch s {
	case down:
		return int64(c.Assigned)
	case up:
		return c.Available
	default:
		return c.holds()
	}
}

// aggregate keeps the weights of as few shares as have capacity for wanted: those with the most, and of equals the
// first by name. In a scale-up, clusters with replicas come first. The shares are those of chosen, in the same order.
func aggregate(shares []Share, chosen []Candidate, scale scaling, wanted int64) {
	order := make([]int, len(shares))
	for i := range order {
		order[i] = i
	}
	other := func(i int) int {
		if scale == up && chosen[i].Assigned == 0 {
			return 1
		}
		return 0
	}
	slices.SortFunc(order, func(i, j int) int {
		return cmp.Or(
			cmp.Compare(other(i), other(j)),
			cmp.Compare(shares[j].Weight, shares[i].Weight),
			strings.Compare(shares[i].Name, shares[j].Name),
		)
	})
	for _, i := range order {
		if wanted <= 0 {
			shares[i].Weight = 0
		}
		wanted -= shares[i].Weight
	}
}

// seated returns the clusters with seats, including the existing replicas if they are kept. shares are those of chosen.
func seated(spec *workv1alpha2.ResourceBindingSpec, shares []Share, chosen []Candidate,
	kept bool) ([]workv1alpha2.TargetCluster, error) {
	replicas := make([]int32, len(shares))
	for i := range shares {
		replicas[i] = shares[i].Seats
		if kept {
			replicas[i] += chosen[i].Assigned
		}
	}
	if spreads(spec) {
		if err := keepApart(spec, chosen, replicas, strategyOf(spec).byRoom()); err != nil {
			return nil, err
		}
	}
	targets := make([]workv1alpha2.TargetCluster, 0, len(shares))
	for i := range shares {
		if replicas[i] > 0 {
			targets = append(targets, workv1alpha2.TargetCluster{Name: shares[i].Name, Replicas: replicas[i]})
		}
	}
	return targets, nil
}
