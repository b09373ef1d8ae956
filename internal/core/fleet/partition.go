package fleet

import (
	"fmt"
	"math/big"
	"slices"
)

// targets says where n new pods go: seats are the clusters by name, in order. done says whether as many pods are new,
// and available, as a stage wants.
func (o options) targets(clusters []string) func(n int64, seats []Seat, done func([]int64) bool) []int64 {
	switch o.order {
	case oneByOne:
		return func(n int64, seats []Seat, _ func([]int64) bool) []int64 { return inOrder(n, seats) }
	case inStages:
		return func(n int64, seats []Seat, done func([]int64) bool) []int64 {
			return o.staged(clusters, n, seats, done)
		}
	default:
		return func(n int64, seats []Seat, _ func([]int64) bool) []int64 { return Split(n, seats) }
	}
}

// staged is the first stage that is not reached, or that is and pauses; each begins with what the one before has.
func (o options) staged(clusters []string, n int64, seats []Seat, done func([]int64) bool) []int64 {
	var total int64
	for _, s := range seats {
		total += s.Cap
	}
	seats = slices.Clone(seats)
	var targets []int64
	for k, stage := range o.stages {
		if stage.Percent != nil {
			upTo := ceil(big.NewRat(*stage.Percent*total, 100))
			targets = Split(min(n, upTo), seats)
		} else {
			// The clusters named fill up; what the others have stays.
			var others int64
			named := slices.Clone(seats)
			for i, cluster := range clusters {
				if !slices.Contains(stage.Clusters, cluster) {
					named[i].Cap = min(named[i].Cap, named[i].Floor)
					others += named[i].Cap
				}
			}
			targets = inOrder(n, named)
		}
		if !done(targets) || stage.Pause && o.approved < int64(k+1) {
			return targets
		}
		for i := range seats {
			seats[i].Floor = targets[i]
		}
	}
	return targets
}

// unknownClusters are those that the stages name and that the workload does not run in.
func (o options) unknownClusters(clusters []string) error {
	for k, stage := range o.stages {
		for _, c := range stage.Clusters {
			if !slices.Contains(clusters, c) {
				return fmt.Errorf("annotation %s: stage %d names cluster %q, to which the workload is not scheduled", StagesAnnotation, k+1, c)
			}
		}
	}
	return nil
}
