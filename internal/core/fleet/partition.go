package fleet

import (
	"fmt"
	"math/big"
	"slices"
	"strings"
)

// targets returns where n new pods go, and the stage of that: seats are the clusters by name, in order. done says whether as many pods
// are new, and available, as a stage wants.
func (o options) targets(clusters []string) func(n int64, seats []Seat, done func([]int64) bool) ([]int64, Stage) {
	switch o.order {
	case oneByOne:
		return func(n int64, seats []Seat, _ func([]int64) bool) ([]int64, Stage) { return inOrder(n, seats), Stage{} }
	case inStages:
		return func(n int64, seats []Seat, done func([]int64) bool) ([]int64, Stage) {
			return o.staged(clusters, n, seats, done)
		}
	default:
		return func(n int64, seats []Seat, _ func([]int64) bool) ([]int64, Stage) { return Split(n, seats), Stage{} }
	}
}

// staged returns the first stage that is not reached, or that is and pauses; each begins with what the one before has.
func (o options) staged(clusters []string, n int64, seats []Seat, done func([]int64) bool) ([]int64, Stage) {
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
		at := Stage{Number: k + 1, Of: len(o.stages)}
		switch {
		case !done(targets):
			at.State = StageInProgress
			return targets, at
		case k+1 == len(o.stages):
		case stage.Pause && o.approved < int64(k+1):
			at.State = StageWaiting
			return targets, at
		}
		for i := range seats {
			seats[i].Floor = targets[i]
		}
	}
	return targets, Stage{Number: len(o.stages), Of: len(o.stages), State: StageCompleted}
}

// tellAbsent reports the clusters that stages name and where the workload does not run. The stages skip them.
func (f *fleet) tellAbsent() {
	var absent []string
	if len(f.members) == 0 {
		return // it runs nowhere yet
	}
	for k, stage := range f.options.stages {
		for _, c := range stage.Clusters {
			if !slices.Contains(f.clusters(), c) {
				absent = append(absent, fmt.Sprintf("stage %d skips cluster %s", k+1, c))
			}
		}
	}
	if len(absent) > 0 {
		f.tell(StageClusterNotFound, "%s, because the workload does not run there; correct the annotation %s, or ignore this if the cluster comes back",
			strings.Join(absent, ", "), StagesAnnotation)
	}
}
