package schedule

import (
	"cmp"
	"strings"
)

// maxScore is the score of a cluster that nothing is preferred to.
const maxScore = 100

// clusterLocality keeps templates where they are.
func clusterLocality(target bool) int32 {
	if target {
		return maxScore
	}
	return 0
}

// better orders candidates: the earlier affinity tier first, then the higher score, then the more room for what is there and what is to come, then by name.
func better(a, b Candidate) int {
	switch {
	case a.Tier != b.Tier:
		return cmp.Compare(a.Tier, b.Tier)
	case a.Score != b.Score:
		return cmp.Compare(b.Score, a.Score)
	case a.holds() != b.holds():
		return cmp.Compare(b.holds(), a.holds())
	}
	return strings.Compare(a.Cluster.Name, b.Cluster.Name)
}

// holds is how many replicas of the binding fit into the cluster altogether.
func (c *Candidate) holds() int64 { return c.Available + int64(c.Assigned) }
