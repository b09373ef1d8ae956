package schedule

import (
	"errors"
	"fmt"
	"slices"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

var (
	// errSpread is what users know for a constraint by provider, zone or label.
	errSpread       = errors.New("just support cluster and region spread constraint")
	errSpreadRegion = errors.New("the region spread constraint is not supported yet")
	errMinGroups    = errors.New("the number of feasible clusters is less than spreadConstraint.MinGroups")
)

// spreads says whether the placement's spread constraints are in force. Static weights say themselves which clusters
// take part, so that constraints beside them are not.
func spreads(spec *workv1alpha2.ResourceBindingSpec) bool {
	if len(spec.Placement.SpreadConstraints) == 0 {
		return false
	}
	scheduling := spec.Placement.ReplicaScheduling
	weighted := spec.Placement.DividesReplicas() &&
		scheduling.ReplicaDivisionPreference != policyv1alpha1.ReplicaDivisionPreferenceAggregated &&
		(scheduling.WeightPreference == nil || scheduling.WeightPreference.DynamicWeight == "")
	return !weighted
}

// spread chooses the clusters that are used, by the placement's constraints. It ranks candidates in place.
func spread(spec *workv1alpha2.ResourceBindingSpec, candidates []Candidate) ([]Candidate, error) {
	if !spreads(spec) {
		return candidates, nil
	}
	var byCluster *policyv1alpha1.SpreadConstraint
	for i := range spec.Placement.SpreadConstraints {
		c := &spec.Placement.SpreadConstraints[i]
		switch {
		case c.SpreadByLabel != "":
			return nil, errSpread
		case c.SpreadByField == policyv1alpha1.SpreadByFieldCluster, c.SpreadByField == "":
			byCluster = c
		case c.SpreadByField == policyv1alpha1.SpreadByFieldRegion:
			return nil, errSpreadRegion
		default:
			return nil, errSpread
		}
	}
	slices.SortFunc(candidates, better)
	return spreadByCluster(*byCluster, candidates, needs(spec))
}

// needs is the replicas that the chosen clusters must have room for together; 0 if each takes what it is given.
func needs(spec *workv1alpha2.ResourceBindingSpec) int64 {
	if strategyOf(spec).byRoom() {
		return int64(spec.Replicas)
	}
	return 0
}

// spreadByCluster takes the best, as many as allowed. If they have no room for need replicas, the last of them make way,
// one after the other, for those with the most room. MaxGroups 0 is no limit.
func spreadByCluster(c policyv1alpha1.SpreadConstraint, ranked []Candidate, need int64) ([]Candidate, error) {
	if len(ranked) < c.MinGroups {
		return nil, errMinGroups
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
	if roomOf(chosen) < need {
		return nil, fmt.Errorf("no enough resource when selecting %d clusters", len(chosen))
	}
	return chosen, nil
}

// groups is how many of n groups a constraint uses.
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
