package schedule

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

// spreads reports whether the placement has spread constraints. They apply with static weights too: a weight is the
// share of a cluster if it is used.
func spreads(spec *workv1alpha2.ResourceBindingSpec) bool {
	return len(spec.Placement.SpreadConstraints) > 0
}

// bounds are the spread constraints of a placement, by what they count.
type bounds struct {
	// clusters bounds the number of clusters; the zero value means no bound.
	clusters policyv1alpha1.SpreadConstraint
	// groupings bound the groups of clusters, those that contain others first.
	groupings []grouping
}

// boundsOf reads the constraints: at most one per field, as admission ensures.
func boundsOf(p *policyv1alpha1.Placement) bounds {
	var b bounds
	for _, c := range p.SpreadConstraints {
		if c.SpreadByLabel == "" && (c.SpreadByField == "" || c.SpreadByField == policyv1alpha1.SpreadByFieldCluster) {
			b.clusters = c
			continue
		}
		b.groupings = append(b.groupings, grouping{SpreadConstraint: c})
	}
	slices.SortStableFunc(b.groupings, func(x, y grouping) int { return cmp.Compare(x.rank(), y.rank()) })
	// A cluster is in one group, but can be in several zones. If fewer clusters are allowed than groups required, the
	// groups decide, as in Karmada, which uses the best cluster of each region first.
	for _, g := range b.groupings {
		if b.clusters.MaxGroups > 0 && g.SpreadByField != policyv1alpha1.SpreadByFieldZone {
			b.clusters.MaxGroups = max(b.clusters.MaxGroups, g.MinGroups)
		}
	}
	return b
}

// spread chooses the clusters to use by the spread constraints. It ranks candidates in place. Current clusters stay as
// long as they satisfy the constraints, unless the run is fresh.
func spread(spec *workv1alpha2.ResourceBindingSpec, candidates []Candidate, fresh bool) ([]Candidate, error) {
	if undivided(spec) {
		rank(candidates)
		placed := slices.DeleteFunc(slices.Clone(candidates), func(c Candidate) bool { return c.Score != maxScore })
		switch {
		case len(placed) > 0 && !fresh:
			return placed, nil
		case strategyFor(spec.Placement).byRoom():
			return candidates[:1], nil
		}
	}
	if !spreads(spec) {
		return candidates, nil
	}
	if strategyFor(spec.Placement) == static && len(spec.Components) == 0 {
		candidates = weighted(spec, candidates)
	}
	rank(candidates)
	b := boundsOf(spec.Placement)
	if err := b.contradiction(); err != nil {
		return nil, err
	}
	if len(b.groupings) == 0 {
		return spreadByCluster(b.clusters, candidates, needs(spec))
	}
	return newSelection(spec, b, candidates, fresh).choose()
}

// contradiction returns an error if no fleet could satisfy the constraints.
func (b bounds) contradiction() error {
	for _, c := range b.constraints() {
		if c.MaxGroups > 0 && c.MinGroups > c.MaxGroups {
			return &SpreadError{
				Text: lacking(c),
				Hint: fmt.Sprintf("minGroups %d of the %s spread constraint is greater than its maxGroups %d: lower minGroups or raise maxGroups", c.MinGroups, c.name(), c.MaxGroups),
			}
		}
	}
	return nil
}

// constraints returns the constraints, that on clusters first.
func (b bounds) constraints() []grouping {
	return append([]grouping{{SpreadConstraint: b.clusters}}, b.groupings...)
}

// withRoomForSet returns the candidates with capacity for one set of components, and those that have their set already.
func withRoomForSet(candidates []Candidate) []Candidate {
	kept := make([]Candidate, 0, len(candidates))
	for _, c := range candidates {
		if c.placed || c.Available > 0 {
			kept = append(kept, c)
		}
	}
	return kept
}

// needs returns the total capacity in replicas that the chosen clusters need; 0 if each gets its own number.
func needs(spec *workv1alpha2.ResourceBindingSpec) int64 {
	if strategyOf(spec).byRoom() {
		return int64(spec.Replicas)
	}
	return 0
}

// unweighted is the tier of clusters without a static weight: replicas do not go there, and what has none goes there
// last.
const unweighted = math.MaxInt16

// weighted returns the candidates with a positive static weight and, for what has no replicas, the others as well. The
// weight is set as their capacity, so that the heaviest are preferred.
func weighted(spec *workv1alpha2.ResourceBindingSpec, candidates []Candidate) []Candidate {
	shares := weigh(spec.Placement.ReplicaScheduling.WeightPreference, candidates)
	kept := make([]Candidate, 0, len(candidates))
	for i, c := range candidates {
		c.Available = shares[i].Weight - int64(c.Assigned)
		if shares[i].Weight == 0 {
			c.Tier = unweighted
		}
		if shares[i].Weight > 0 || besideReplicas(spec) {
			kept = append(kept, c)
		}
	}
	return kept
}

// spreadByCluster selects the best candidates, as many as allowed. If their capacity is too small for need replicas, it
// replaces the last ones, one after the other, by those with the most capacity. MaxGroups 0 means no limit.
func spreadByCluster(c policyv1alpha1.SpreadConstraint, ranked []Candidate, need int64) ([]Candidate, error) {
	if len(ranked) < c.MinGroups {
		return nil, &SpreadError{
			Text: "the number of feasible clusters is less than spreadConstraint.MinGroups",
			Hint: fmt.Sprintf("%s, but at least %d are required: let the policy match %d more, or lower minGroups to %d",
				fit(len(ranked)), c.MinGroups, c.MinGroups-len(ranked), len(ranked)),
		}
	}
	chosen := ranked[:groups(c, len(ranked))]
	rest := ranked[len(chosen):]
	for last := len(chosen) - 1; last >= 0 && roomOf(chosen) < need; last-- {
		most := -1
		for i := range rest {
			if rest[i].holds() > chosen[last].holds() && (most < 0 || rest[i].holds() > rest[most].holds()) {
				most = i
			}
		}
		if most >= 0 {
			chosen[last], rest[most] = rest[most], chosen[last]
		}
	}
	if room := roomOf(chosen); room < need {
		return nil, noRoom(len(chosen), room, need, c.MaxGroups > 0 && len(rest) > 0)
	}
	return chosen, nil
}

// noRoom returns an error: the clusters that the constraints allow do not have enough capacity.
func noRoom(clusters int, room, need int64, bounded bool) error {
	e := &SpreadError{
		Text: fmt.Sprintf("no enough resource when selecting %d clusters", clusters),
		Hint: fmt.Sprintf("they have capacity for %d of %d replicas: free capacity for %d more, or request fewer replicas",
			room, need, need-room),
	}
	if bounded {
		e.Hint += ", or raise maxGroups to use more clusters"
	}
	return e
}

// groups returns how many of n groups a constraint uses.
func groups(c policyv1alpha1.SpreadConstraint, n int) int {
	if c.MaxGroups == 0 {
		return n
	}
	return min(n, c.MaxGroups)
}

func roomOf(candidates []Candidate) int64 {
	var sum int64
	for i := range candidates {
		sum += candidates[i].holds()
	}
	return sum
}
