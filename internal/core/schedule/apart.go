package schedule

import (
	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

// The division looks at room and weights alone, and may leave a group of the chosen clusters without replicas.
// Here it is made to hold what the spread constraints want of the result.

// least is how many groups must have replicas: no more than there are replicas.
func (g grouping) least(replicas int32) int { return min(g.MinGroups, int(replicas)) }

// spreadHolds says whether the targets of a workload that divides its replicas satisfy the placement's spread constraints.
func spreadHolds(spec *workv1alpha2.ResourceBindingSpec, s Snapshot) bool {
	if !spreads(spec) {
		return true
	}
	for _, g := range boundsOf(spec.Placement).all() {
		names := map[string]bool{}
		for i := range spec.Clusters {
			if m := s.member(spec.Clusters[i].Name); m != nil && spec.Clusters[i].Replicas > 0 {
				for name := range g.of(m.cluster) {
					names[name] = true
				}
			}
		}
		if len(names) < g.least(spec.Replicas) || g.MaxGroups > 0 && len(names) > g.MaxGroups {
			return false
		}
	}
	return true
}

// keepApart moves single replicas from the clusters with the most to groups without any, until there are as many groups as
// wanted. shares are those of chosen, in the same order; limited says that no cluster takes more than it holds.
// Few replicas that cannot be in enough groups by several constraints at once are an error.
func keepApart(spec *workv1alpha2.ResourceBindingSpec, chosen []Candidate, replicas []int32, limited bool) error {
	for _, g := range boundsOf(spec.Placement).all() {
		for g.least(spec.Replicas) > 1 { // one has some anyway
			used := map[string]int32{}
			for i := range chosen {
				if replicas[i] > 0 {
					for name := range g.of(chosen[i].Cluster) {
						used[name] += replicas[i]
					}
				}
			}
			if len(used) >= g.least(spec.Replicas) {
				break
			}
			if !moveOne(spec, g, chosen, replicas, used, limited) {
				return &SpreadError{Text: lacking(g), Hint: "its clusters have no room for a replica in each group: make room in the clusters of more groups by " + g.name() + ", or lower its minGroups"}
			}
		}
	}
	return nil
}

// moveOne gives one replica to the cluster outside the used groups that holds the most, one in use before others.
// It comes from the cluster with the most that is not the last of any group that is needed.
func moveOne(spec *workv1alpha2.ResourceBindingSpec, g grouping, chosen []Candidate, replicas []int32, used map[string]int32, limited bool) bool {
	to, from := -1, -1
	for i := range chosen {
		c := &chosen[i]
		if !g.opens(c.Cluster, used) || limited && int64(replicas[i]) >= c.holds() {
			continue
		}
		if to < 0 || receives(c, &chosen[to]) {
			to = i
		}
	}
	if to < 0 {
		return false
	}
	for i := range chosen {
		if i == to || replicas[i] == 0 || replicas[i] == 1 && needed(spec, chosen, replicas, i) {
			continue
		}
		if from < 0 || replicas[i] > replicas[from] || replicas[i] == replicas[from] && chosen[i].Cluster.Name > chosen[from].Cluster.Name {
			from = i
		}
	}
	if from < 0 {
		return false
	}
	replicas[from]--
	replicas[to]++
	return true
}

// opens says whether the cluster is in a group that has no replicas.
func (g grouping) opens(c *clusterv1alpha1.Cluster, used map[string]int32) bool {
	for name := range g.of(c) {
		if used[name] == 0 {
			return true
		}
	}
	return false
}

// receives says whether a takes a replica rather than b.
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

// needed says whether the cluster is the only one with replicas in a group without which there were too few.
func needed(spec *workv1alpha2.ResourceBindingSpec, chosen []Candidate, replicas []int32, i int) bool {
	for _, g := range boundsOf(spec.Placement).all() {
		count := func(without int) int {
			names := map[string]bool{}
			for j := range chosen {
				if j != without && replicas[j] > 0 {
					for name := range g.of(chosen[j].Cluster) {
						names[name] = true
					}
				}
			}
			return len(names)
		}
		all, rest := count(-1), count(i)
		if rest < all && rest < g.least(spec.Replicas) {
			return true
		}
	}
	return false
}
