package schedule

import (
	"slices"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

// The division uses only capacity and weights, and may leave a group of the chosen clusters without replicas. This file
// adjusts it so that the result satisfies the spread constraints.

// least returns the number of groups that must have replicas: at most one per replica.
func (g grouping) least(replicas int32) int { return min(g.MinGroups, int(replicas)) }

// satisfiesSpread reports whether the targets of a workload that divides its replicas satisfy the placement's spread
// constraints.
func satisfiesSpread(spec *workv1alpha2.ResourceBindingSpec, s Snapshot) bool {
	if !spreads(spec) {
		return true
	}
	used := make([]Candidate, 0, len(spec.Clusters))
	for i := range spec.Clusters {
		if m := s.member(spec.Clusters[i].Name); m != nil && spec.Clusters[i].Replicas > 0 {
			used = append(used, Candidate{Cluster: m.cluster})
		}
	}
	for _, g := range boundsOf(spec.Placement).constraints() {
		n := len(used)
		if !g.byCluster() {
			n = len(g.number(used).names)
		}
		if n < g.least(spec.Replicas) || g.MaxGroups > 0 && n > g.MaxGroups {
			return false
		}
	}
	return true
}

// reaches reports whether the clusters with replicas are in that many groups. Mostly the first few are.
func (g grouping) reaches(least int, chosen []Candidate, replicas []int32) bool {
	seen := make([]string, 0, least)
	for i := range chosen {
		if replicas[i] == 0 {
			continue
		}
		for name := range g.groupsOf(chosen[i].Cluster) {
			if slices.Contains(seen, name) {
				continue
			}
			if seen = append(seen, name); len(seen) == least {
				return true
			}
		}
	}
	return false
}

// occupied are the clusters with replicas, counted per group.
type occupied struct {
	bounds   []grouping
	of       []numbering
	replicas []int32
	// total is the number of replicas to place, which bounds the number of groups.
	total int32
	// in counts the clusters with replicas of each group, by grouping and number, and groups the groups that have some.
	in     [][]int32
	groups []int
}

func occupy(spec *workv1alpha2.ResourceBindingSpec, all []grouping, chosen []Candidate, replicas []int32) *occupied {
	o := &occupied{
		bounds: all, of: make([]numbering, len(all)), replicas: replicas, total: spec.Replicas,
		in: make([][]int32, len(all)), groups: make([]int, len(all)),
	}
	for d, g := range all {
		o.of[d] = g.number(chosen)
		o.in[d] = make([]int32, max(len(chosen), len(o.of[d].names)))
	}
	for i := range replicas {
		if replicas[i] > 0 {
			o.enter(i)
		}
	}
	return o
}

func (o *occupied) enter(i int) {
	for d := range o.of {
		for _, n := range o.of[d].groups(i) {
			if o.in[d][n]++; o.in[d][n] == 1 {
				o.groups[d]++
			}
		}
	}
}

func (o *occupied) leave(i int) {
	for d := range o.of {
		for _, n := range o.of[d].groups(i) {
			if o.in[d][n]--; o.in[d][n] == 0 {
				o.groups[d]--
			}
		}
	}
}

// opens reports whether cluster i is in a group of grouping d that has no replicas.
func (o *occupied) opens(d, i int) bool {
	for _, n := range o.of[d].groups(i) {
		if o.in[d][n] == 0 {
			return true
		}
	}
	return false
}

// needed reports whether the cluster is the only one with replicas in a group without which there were too few.
func (o *occupied) needed(i int) bool {
	for d := range o.of {
		rest := o.groups[d]
		for _, n := range o.of[d].groups(i) {
			if o.in[d][n] == 1 {
				rest--
			}
		}
		if rest < o.groups[d] && rest < o.bounds[d].least(o.total) {
			return true
		}
	}
	return false
}

// keepApart moves single replicas from the clusters with the most to groups without any, until there are enough groups.
// replicas are the replicas of chosen, in the same order. limited means that no cluster gets more than it has capacity
// for. It returns an error if there are too few replicas to satisfy several constraints.
func keepApart(spec *workv1alpha2.ResourceBindingSpec, chosen []Candidate, replicas []int32, limited bool) error {
	// one has some anyway
	all := slices.DeleteFunc(boundsOf(spec.Placement).constraints(),
		func(g grouping) bool { return g.least(spec.Replicas) <= 1 })
	var o *occupied
	for d, g := range all {
		least := g.least(spec.Replicas)
		if o == nil {
			if g.reaches(least, chosen, replicas) {
				continue
			}
			o = occupy(spec, all, chosen, replicas)
		}
		for o.groups[d] < least {
			if !o.moveOne(d, chosen, limited) {
				return &SpreadError{Text: lacking(g),
					Hint: "its clusters do not have capacity for a replica in each group: free capacity in the clusters of more groups by " + g.name() + ", or lower its minGroups"}
			}
		}
	}
	return nil
}

// moveOne moves one replica to the cluster with the most capacity outside the used groups; clusters in use come first.
// It takes the replica from the cluster with the most replicas, but never the last one of a group that is needed.
func (o *occupied) moveOne(d int, chosen []Candidate, limited bool) bool {
	to, from := -1, -1
	for i := range chosen {
		c := &chosen[i]
		if !o.opens(d, i) || limited && int64(o.replicas[i]) >= c.holds() {
			continue
		}
		if to < 0 || receives(c, &chosen[to]) {
			to = i
		}
	}
	if to < 0 {
		return false
	}
	for i, n := range o.replicas {
		if n == 0 || i == to || from >= 0 &&
			(n < o.replicas[from] || n == o.replicas[from] && chosen[i].Cluster.Name < chosen[from].Cluster.Name) ||
			n == 1 && o.needed(i) {
			continue
		}
		from = i
	}
	if from < 0 {
		return false
	}
	if o.replicas[from]--; o.replicas[from] == 0 {
		o.leave(from)
	}
	if o.replicas[to]++; o.replicas[to] == 1 {
		o.enter(to)
	}
	return true
}

// receives reports whether a takes a replica rather than b.
func receives(a, b *Candidate) bool {
	if was, is := a.Assigned > 0, b.Assigned > 0; was != is {
		return was
	}
	if a.Tier == b.Tier && a.holds() != b.holds() {
		return a.holds() > b.holds()
	}
	if a.Tier != b.Tier {
		return a.Tier < b.Tier
	}
	return a.Cluster.Name < b.Cluster.Name
}
