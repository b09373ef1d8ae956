// Package placement chooses clusters for Placements of Open Cluster Management.
package placement

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	clusterv1 "github.com/argosy-io/argosy/api/ocm/cluster/v1"
	scorev1alpha1 "github.com/argosy-io/argosy/api/ocm/cluster/v1alpha1"
	placementv1beta1 "github.com/argosy-io/argosy/api/ocm/cluster/v1beta1"
	setv1beta2 "github.com/argosy-io/argosy/api/ocm/cluster/v1beta2"
	"github.com/argosy-io/argosy/internal/core/source/ocm"
)

// Input is what a choice depends on.
type Input struct {
	Placement *placementv1beta1.Placement
	// Sets are the existing ManagedClusterSets with a binding in the namespace of the Placement.
	Sets []setv1beta2.ManagedClusterSet
	// Clusters are all clusters of the hub.
	Clusters []clusterv1.ManagedCluster
	// Current are the PlacementDecisions that this Placement has now.
	Current []placementv1beta1.PlacementDecision
	// Others counts the decisions of other Placements by cluster. It is called if a score needs it.
	Others func() map[string]int
	Scores Scores
	// Programs are those of NewPrograms.
	Programs *ocm.Programs
	Now      time.Time

	// chosen are the clusters of Current. Choose sets it, and spending.
	chosen   map[string]bool
	spending *spending
}

const (
	// budget is what a choice may cost: about a tenth of a second.
	budget = 1_000_000
	// budgetPerCluster is what each cluster adds to it: about a millisecond.
	budgetPerCluster = 10_000
)

// spending is what a choice has cost, in units of the cost of expressions, and its limit. A unit is about 100 ns.
type spending struct{ spent, budget uint64 }

// add adds a cost. It fails beyond the limit.
func (s *spending) add(cost uint64) error {
	if s.spent += cost; s.spent > s.budget {
		return fmt.Errorf("the choice costs more than %d: use fewer or simpler predicates, tolerations, scores and groups",
			s.budget)
	}
	return nil
}

// Scores returns the AddOnPlacementScore of a cluster with a name; nil if there is none.
type Scores func(cluster, name string) *scorev1alpha1.AddOnPlacementScore

// Choice is the outcome for a Placement.
type Choice struct {
	// Groups are the groups of the chosen clusters; at least one, which may be empty.
	Groups []Group
	// Conditions are PlacementSatisfied and PlacementMisconfigured.
	Conditions []metav1.Condition
	// Expired are AddOnPlacementScores, as NAMESPACE/NAME, that count as 0 because they have expired.
	Expired []string
	// Sums are the sums of scores of all clusters that match, chosen or not.
	Sums map[string]int64
	// After is when the first toleration or score ends; 0 if none does.
	After time.Duration
}

// misconfigured is the error of a Placement that is not valid.
type misconfigured struct {
	// plugin is the name of the part of Open Cluster Management's scheduler that reports it; empty for scores.
	plugin, message string
}

func (m *misconfigured) Error() string { return m.plugin + ":" + m.message }

// Choose chooses the clusters of a Placement. A Placement that is not valid keeps its groups, without clusters that its
// sets lost: an error of its author must not remove workloads.
func Choose(in Input) Choice {
	in.chosen = map[string]bool{}
	in.spending = &spending{budget: budget + budgetPerCluster*uint64(len(in.Clusters))}
	for _, d := range in.Current {
		for _, of := range d.Status.Decisions {
			in.chosen[of.ClusterName] = true
		}
	}
	c := Choice{}
	eligible, candidates, err := candidates(in)
	if err != nil { // which clusters the unreadable set has is unknown
		candidates = existing(in.Clusters)
	} else if len(in.Placement.Name) > validation.LabelValueMaxLength {
		err = &misconfigured{message: fmt.Sprintf("the name is longer than %d characters, the limit of a label "+
			"value: create the Placement under a shorter name", validation.LabelValueMaxLength)}
	}
	var chosen []*clusterv1.ManagedCluster
	if err == nil {
		chosen, err = c.choose(in, candidates)
	}
	if err == nil {
		c.Groups, err = group(in, chosen)
	}
	if err != nil {
		c.Groups = keepGroups(in.Current, candidates)
	}
	c.Conditions = []metav1.Condition{satisfied(in, eligible, len(candidates), c.count(), err),
		{Type: placementv1beta1.PlacementMisconfigured, Status: metav1.ConditionFalse,
			Reason: placementv1beta1.ReasonSucceedConfigured, Message: "Placement configurations check pass"}}
	if err != nil {
		c.Conditions[1].Status, c.Conditions[1].Reason = metav1.ConditionTrue, placementv1beta1.ReasonMisconfigured
		c.Conditions[1].Message = err.Error()
	}
	return c
}

// count returns the number of chosen clusters.
func (c *Choice) count() (n int) {
	for _, g := range c.Groups {
		n += len(g.Clusters)
	}
	return n
}

// Fail makes a choice one that could not be published.
func (c *Choice) Fail(err error) {
	c.Conditions[0].Status, c.Conditions[0].Reason = metav1.ConditionFalse, placementv1beta1.ReasonNotAllScheduled
	c.Conditions[0].Message = err.Error()
}

// satisfied returns the condition PlacementSatisfied, without a time.
func satisfied(in Input, eligible []string, candidates, chosen int, err error) metav1.Condition {
	is := func(status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return metav1.Condition{Type: placementv1beta1.PlacementSatisfied, Status: status, Reason: reason, Message: message}
	}
	spec := in.Placement.Spec
	switch {
	case len(in.Sets) == 0:
		return is(metav1.ConditionFalse, placementv1beta1.ReasonNoBindings,
			"No valid ManagedClusterSetBindings found in placement namespace")
	case len(eligible) == 0:
		return is(metav1.ConditionFalse, placementv1beta1.ReasonNoIntersection, fmt.Sprintf(
			"None of ManagedClusterSets [%s] is bound to placement namespace", strings.Join(spec.ClusterSets, ",")))
	case err != nil && chosen > 0:
		return is(metav1.ConditionFalse, placementv1beta1.ReasonNotAllScheduled,
			err.Error()+": the clusters that were chosen before stay")
	case candidates == 0:
		return is(metav1.ConditionFalse, placementv1beta1.ReasonAllSetsEmpty,
			fmt.Sprintf("All ManagedClusterSets [%s] have no member ManagedCluster", strings.Join(eligible, ",")))
	case chosen == 0:
		return is(metav1.ConditionFalse, placementv1beta1.ReasonNoMatch,
			"No ManagedCluster matches any of the cluster predicate")
	case spec.NumberOfClusters != nil && int(*spec.NumberOfClusters) > chosen:
		return is(metav1.ConditionFalse, placementv1beta1.ReasonNotAllScheduled,
			fmt.Sprintf("%d cluster decisions unscheduled", int(*spec.NumberOfClusters)-chosen))
	}
	return is(metav1.ConditionTrue, placementv1beta1.ReasonAllScheduled, "All cluster decisions scheduled")
}

// choose returns the chosen ones of the candidates, the best first.
func (c *Choice) choose(in Input, candidates []*clusterv1.ManagedCluster) ([]*clusterv1.ManagedCluster, error) {
	matched, err := matching(in, candidates)
	if err != nil {
		return nil, err
	}
	feasible, err := c.tolerated(in, matched)
	if err != nil {
		return nil, err
	}
	weights, err := weights(in.Placement.Spec.PrioritizerPolicy)
	if err != nil {
		return nil, err
	}
	c.Sums = map[string]int64{}
	for _, mc := range feasible {
		c.Sums[mc.Name] = 0
	}
	for of, weight := range weights {
		scores, err := c.scores(of, in, feasible)
		if err != nil {
			return nil, &misconfigured{message: err.Error()}
		}
		for name, score := range scores {
			c.Sums[name] += weight * score
		}
	}
	slices.Sort(c.Expired)
	c.Expired = slices.Compact(c.Expired)
	feasible = slices.Clone(feasible)
	slices.SortFunc(feasible, func(a, b *clusterv1.ManagedCluster) int {
		return cmp.Or(cmp.Compare(c.Sums[b.Name], c.Sums[a.Name]), cmp.Compare(a.Name, b.Name))
	})
	if n := in.Placement.Spec.NumberOfClusters; n != nil {
		feasible = feasible[:min(len(feasible), max(int(*n), 0))]
	}
	return feasible, nil
}

// repeatAfter makes the choice one that may be another after a time.
func (c *Choice) repeatAfter(after time.Duration) {
	if after > 0 && (c.After == 0 || after < c.After) {
		c.After = after
	}
}
