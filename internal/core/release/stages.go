package release

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
)

// resolve returns the clusters of each stage, in the order in which they are updated: those of the names given that the
// stage selects, and the clusters in no stage.
func resolve(strategy *releasev1alpha1.ReleaseStrategySpec, names []string,
	clusters map[string]*clusterv1alpha1.Cluster) (byStage [][]string, unassigned []string) {
	complete, assigned := map[string]bool{}, map[string]bool{}
	byStage = make([][]string, len(strategy.Stages))
	for k, stage := range strategy.Stages {
		for _, name := range names {
			c := clusters[name]
			switch {
			case stage.Clusters == nil && complete[name]:
			case stage.Clusters == nil || c != nil && match.Affinity(stage.Clusters, c):
				byStage[k] = append(byStage[k], name)
			}
		}
		sortClusters(byStage[k], stage, clusters)
		for _, name := range byStage[k] {
			assigned[name] = true
			complete[name] = complete[name] || completes(strategy, k)
		}
	}
	for _, name := range names {
		if !assigned[name] {
			unassigned = append(unassigned, name)
		}
	}
	if len(unassigned) > 0 && strategy.Unassigned == releasev1alpha1.UnassignedLastStage {
		last := len(byStage) - 1
		byStage[last] = append(byStage[last], unassigned...)
		sortClusters(byStage[last], strategy.Stages[last], clusters)
		unassigned = nil
	}
	return byStage, unassigned
}

// completes reports whether all pods of the clusters of stage k are new when it ends, whatever their number.
func completes(strategy *releasev1alpha1.ReleaseStrategySpec, k int) bool {
	to := strategy.Stages[k].To
	switch {
	case to == nil:
		return true
	case to.Percent != nil:
		return *to.Percent == 100
	case to.Weight == nil:
		return false
	}
	return !slices.ContainsFunc(strategy.Stages[k+1:], func(later releasev1alpha1.ReleaseStage) bool {
		return later.To != nil && later.To.Weight != nil && SameSelection(later, strategy.Stages[k])
	})
}

// SameSelection reports whether two stages select the same clusters.
func SameSelection(a, b releasev1alpha1.ReleaseStage) bool {
	return equal(a.Clusters, b.Clusters)
}

// sortClusters sorts by the label of the stage's order, then as the stage lists names, then by name.
func sortClusters(names []string, stage releasev1alpha1.ReleaseStage, clusters map[string]*clusterv1alpha1.Cluster) {
	label := func(name string) string {
		if key, ok := strings.CutPrefix(stage.Order, releasev1alpha1.OrderByLabelPrefix); ok && clusters[name] != nil {
			return clusters[name].Labels[key]
		}
		return ""
	}
	rank := func(name string) int {
		if stage.Clusters != nil {
			if i := slices.Index(stage.Clusters.ClusterNames, name); i >= 0 {
				return i
			}
		}
		return len(clusters)
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(strings.Compare(label(a), label(b)), rank(a)-rank(b), strings.Compare(a, b))
	})
}

// planStages returns the stages of a strategy with their clusters. With whole, all stages update whole clusters.
func planStages(strategy *releasev1alpha1.ReleaseStrategySpec, byStage [][]string, whole bool) []fleet.PlanStage {
	stages := make([]fleet.PlanStage, len(strategy.Stages))
	for k, s := range strategy.Stages {
		p := fleet.PlanStage{Name: s.Name, Clusters: byStage[k], Part: [2]int64{1, 1},
			WholeClusters: whole || s.Unit == releasev1alpha1.UnitCluster,
			InOrder:       s.Order != "" && s.Order != releasev1alpha1.OrderProportional,
			MaxClusters:   limitOf(s.MaxConcurrentClusters, len(byStage[k]), 1)}
		switch to := s.To; {
		case to == nil:
		case to.Percent != nil:
			p.Part = [2]int64{*to.Percent, 100}
		case to.Pods != nil:
			p.Part, p.Pods = [2]int64{}, *to.Pods
		case to.Weight != nil:
			p.Part = weights(strategy, k)
		}
		stages[k] = p
	}
	return stages
}

// weights are the sum of the weights up to stage k, and of all stages that select the same clusters. The selection
// counts, not the clusters: the last stage may have more of them, and each stage has its own order.
func weights(strategy *releasev1alpha1.ReleaseStrategySpec, k int) (part [2]int64) {
	for i, s := range strategy.Stages {
		if s.To == nil || s.To.Weight == nil || !SameSelection(s, strategy.Stages[k]) {
			continue
		}
		part[1] += *s.To.Weight
		if i <= k {
			part[0] += *s.To.Weight
		}
	}
	return part
}

// limitOf is a number or a percentage of n; 0 if it is not set. It is at least least: if this is more than 0, a
// percentage is rounded up, otherwise down.
func limitOf(v *intstr.IntOrString, n, least int) int {
	if v == nil {
		return 0
	}
	limit, _ := intstr.GetScaledValueFromIntOrPercent(v, n, least > 0) // the API refuses values that cannot be read
	return max(limit, least)
}

func clusterNames(stages []releasev1alpha1.ReleaseStageStatus, k int) []string {
	for ; k > 0 && stages[k].SameClusters; k-- {
	}
	return stages[k].ClusterNames
}
