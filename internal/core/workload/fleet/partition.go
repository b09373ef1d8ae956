package fleet

import (
	"fmt"
	"github.com/argosy-io/argosy/api/wellknown"
	"math/big"
	"slices"
	"strings"
)

// targets returns a function that divides n new pods among seats, the clusters sorted by name, and returns the stage.
// done reports whether that many pods are new and available.
func (o options) targets(clusters []string) func(n int64, seats []Seat, done func([]int64) bool) ([]int64, Stage) {
	if o.plan != nil {
		return func(_ int64, seats []Seat, done func([]int64) bool) ([]int64, Stage) {
			return o.plan.targets(clusters, seats, done), Stage{}
		}
	}
	if o.order == inStages {
		return func(n int64, seats []Seat, done func([]int64) bool) ([]int64, Stage) {
			return o.staged(clusters, n, seats, done)
		}
	}
	return func(n int64, seats []Seat, _ func([]int64) bool) ([]int64, Stage) { return o.divide(n, seats), Stage{} }
}

// divide divides new pods, or a budget, where there are no stages.
func (o options) divide(n int64, seats []Seat) []int64 {
	if o.order == oneByOne {
		return inOrder(n, seats)
	}
	return Split(n, seats)
}

// staged returns the first stage that is not reached, or that is and pauses; each begins with what the one before has.
func (o options) staged(clusters []string, n int64, seats []Seat, done func([]int64) bool) ([]int64, Stage) {
	var released int64
	for _, s := range seats {
		released += min(s.Floor, s.Cap)
	}
	before := seats
	seats = slices.Clone(seats)
	var targets []int64
	for k, stage := range o.stages {
		targets = stage.targets(clusters, n, seats)
		switch {
		case !done(targets):
			return targets, Stage{Number: o.underWay(k, clusters, n, before, released) + 1, Of: len(o.stages),
				State: StageInProgress}
		case k+1 == len(o.stages):
		case stage.Pause && o.approved < int64(k+1):
			return targets, Stage{Number: k + 1, Of: len(o.stages), State: StageWaiting}
		}
		for i := range seats {
			seats[i].Floor = targets[i]
		}
	}
	return targets, Stage{Number: len(o.stages), Of: len(o.stages), State: StageCompleted}
}

// underWay returns the index of the stage that is under way when so many pods are released: k, or a later one. A stage
// that was done is not done again while a cluster has yet to report about what a later one wrote.
func (o options) underWay(k int, clusters []string, n int64, seats []Seat, released int64) int {
	seats = slices.Clone(seats)
	for i := range seats {
		seats[i].Floor = 0
	}
	for i, stage := range o.stages {
		targets := stage.targets(clusters, n, seats)
		if i >= k && (released <= sum(targets) || i+1 == len(o.stages)) {
			return i
		}
		for j := range seats {
			seats[j].Floor = targets[j]
		}
	}
	return k
}

// targets returns the new pods at the end of the stage, of n in all, beside those that are new already.
func (s stage) targets(clusters []string, n int64, seats []Seat) []int64 {
	if s.Percent != nil {
		var total int64
		for _, seat := range seats {
			total += seat.Cap
		}
		return Split(min(n, ceil(big.NewRat(*s.Percent*total, 100))), seats)
	}
	// The clusters named fill up; what the others have stays.
	named := slices.Clone(seats)
	for i, cluster := range clusters {
		if !slices.Contains(s.Clusters, cluster) {
			named[i].Cap = min(named[i].Cap, named[i].Floor)
		}
	}
	return inOrder(n, named)
}

// reportAbsentClusters reports the clusters that stages name and where the workload does not run. The stages skip them.
func (f *fleet) reportAbsentClusters() {
	var absent []string
	if len(f.members) == 0 {
		return // it runs nowhere yet
	}
	if p := f.options.plan; p != nil {
		f.reportAbsentOf(p)
		return
	}
	for k, stage := range f.options.stages {
		for _, c := range stage.Clusters {
			if !f.hasMember(c) {
				absent = append(absent, fmt.Sprintf("stage %d skips cluster %s", k+1, c))
			}
		}
	}
	if len(absent) > 0 {
		f.addCondition(StageClusterNotFound, "%s, because the workload does not run there; correct the annotation %s, or ignore this if the cluster comes back",
			strings.Join(absent, ", "), wellknown.RolloutStagesAnnotation)
	}
}

// reportAbsentOf reports the clusters that the stages of a release name and where the workload does not run.
func (f *fleet) reportAbsentOf(p *Plan) {
	var absent []string
	for _, stage := range p.Stages {
		for _, c := range stage.Clusters {
			if !f.hasMember(c) {
				absent = append(absent, c)
			}
		}
	}
	if len(absent) > 0 && !p.Done {
		f.addCondition(StageClusterNotFound, "release %s skips %s, because the workload does not run there; "+
			"a cluster that comes back takes part again", p.Release, strings.Join(unique(absent), ", "))
	}
}
