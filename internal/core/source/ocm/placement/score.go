package placement

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	clusterv1 "github.com/argosy-io/argosy/api/ocm/cluster/v1"
	placementv1beta1 "github.com/argosy-io/argosy/api/ocm/cluster/v1beta1"
)

// best and worst are the limits of a score.
const best, worst = 100, -100

// resources are the resources of the scores that compare them.
var resources = map[string]corev1.ResourceName{
	placementv1beta1.ResourceAllocatableCPU:    corev1.ResourceCPU,
	placementv1beta1.ResourceAllocatableMemory: corev1.ResourceMemory,
}

// coordinate is a ScoreCoordinate that can be compared.
type coordinate struct {
	builtIn string
	addOn   placementv1beta1.AddOnScore
}

// weights returns the weights of the scores that count.
func weights(policy placementv1beta1.PrioritizerPolicy) (map[coordinate]int64, error) {
	all := map[coordinate]int64{}
	switch policy.Mode {
	case placementv1beta1.Additive, "":
		all[coordinate{builtIn: placementv1beta1.Balance}] = 1
		all[coordinate{builtIn: placementv1beta1.Steady}] = 1
	case placementv1beta1.Exact:
	default:
		return nil, &misconfigured{message: fmt.Sprintf("incorrect prioritizer policy mode: %s", policy.Mode)}
	}
	for _, c := range policy.Configurations {
		s := c.ScoreCoordinate
		switch {
		case s == nil:
			return nil, &misconfigured{message: "scoreCoordinate field is required"}
		case s.Type != placementv1beta1.ScoreAddOn:
			all[coordinate{builtIn: s.BuiltIn}] = int64(c.Weight)
		case s.AddOn == nil && c.Weight != 0:
			return nil, &misconfigured{message: "addOn should not be empty"}
		case s.AddOn != nil:
			all[coordinate{addOn: *s.AddOn}] += int64(c.Weight)
		}
	}
	for of, weight := range all {
		if weight == 0 {
			delete(all, of)
			continue
		}
		switch of.builtIn {
		case placementv1beta1.Steady:
			if weight < 0 {
				return nil, &misconfigured{message: fmt.Sprintf("the weight of %s is negative, so each choice would "+
					"replace the clusters: set 0 or more", of.builtIn)}
			}
		case placementv1beta1.Balance, placementv1beta1.ResourceAllocatableCPU,
			placementv1beta1.ResourceAllocatableMemory:
		default:
			if of.addOn == (placementv1beta1.AddOnScore{}) {
				return nil, &misconfigured{message: fmt.Sprintf("incorrect builtin prioritizer: %s", of.builtIn)}
			}
		}
	}
	return all, nil
}

// scores returns a score of each cluster from worst to best; clusters without one are missing. The error is that of the
// budget.
func (c *Choice) scores(of coordinate, in Input, clusters []*clusterv1.ManagedCluster) (map[string]int64, error) {
	all := map[string]int64{}
	if err := in.spending.add(uint64(len(clusters))); err != nil {
		return nil, err
	}
	switch of.builtIn {
	case placementv1beta1.Balance:
		most, others := 0, in.Others()
		for _, n := range others {
			most = max(most, n)
		}
		for _, mc := range clusters {
			all[mc.Name] = best
			if n := others[mc.Name]; n > 0 {
				all[mc.Name] = 2 * int64(best*(0.5-float64(n)/float64(most)))
			}
		}
	case placementv1beta1.Steady:
		for _, mc := range clusters {
			if in.chosen[mc.Name] {
				all[mc.Name] = best
			}
		}
	case placementv1beta1.ResourceAllocatableCPU, placementv1beta1.ResourceAllocatableMemory:
		return allocatable(resources[of.builtIn], clusters), nil
	default:
		for _, mc := range clusters {
			score := in.Scores(mc.Name, of.addOn.ResourceName)
			cost := uint64(costOfPredicate)
			if score != nil {
				cost += uint64(len(score.Status.Scores))
			}
			if err := in.spending.add(cost); err != nil {
				return nil, err
			}
			if score == nil {
				continue
			}
			if until := score.Status.ValidUntil; until != nil {
				if in.Now.After(until.Time) {
					c.Expired = append(c.Expired, mc.Name+"/"+of.addOn.ResourceName)
					continue
				}
				c.repeatAfter(until.Sub(in.Now) + time.Nanosecond)
			}
			for _, item := range score.Status.Scores {
				if item.Name == of.addOn.ScoreName {
					all[mc.Name] = min(max(int64(item.Value), worst), best)
				}
			}
		}
	}
	return all, nil
}

// allocatable scores clusters by an allocatable resource: the one with most is best, the one with least is worst.
func allocatable(resource corev1.ResourceName, clusters []*clusterv1.ManagedCluster) map[string]int64 {
	amounts, all := map[string]float64{}, map[string]int64{}
	var least, most float64
	for _, mc := range clusters {
		amount, ok := mc.Status.Allocatable[resource]
		if _, capacity := mc.Status.Capacity[resource]; !ok || !capacity {
			continue
		}
		x := amount.AsApproximateFloat64()
		if len(amounts) == 0 {
			least, most = x, x
		}
		amounts[mc.Name], least, most = x, min(least, x), max(most, x)
	}
	for name, x := range amounts {
		all[name] = best
		if most > least {
			all[name] = int64(((x-least)/(most-least) - 0.5) * 2 * best)
		}
	}
	return all
}

// Reads reports whether the choice of a Placement depends on AddOnPlacementScores with a name. Expressions may compute
// the name.
func Reads(p *placementv1beta1.Placement, name string) bool {
	return slices.ContainsFunc(p.Spec.PrioritizerPolicy.Configurations, func(c placementv1beta1.PrioritizerConfig) bool {
		return c.ScoreCoordinate != nil && c.ScoreCoordinate.AddOn != nil && c.ScoreCoordinate.AddOn.ResourceName == name
	}) || slices.ContainsFunc(p.Spec.Predicates, func(of placementv1beta1.ClusterPredicate) bool {
		return slices.ContainsFunc(of.RequiredClusterSelector.CelSelector.CelExpressions, func(expression string) bool {
			return strings.Contains(expression, "scores")
		})
	})
}

// Evaluates reports whether a Placement has expressions, which may read all of a cluster.
func Evaluates(p *placementv1beta1.Placement) bool {
	n, _ := expressions(p)
	return n > 0
}
