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
	return cmp.Or(
		cmp.Compare(a.Tier, b.Tier),
		cmp.Compare(b.Score, a.Score),
		cmp.Compare(b.holds(), a.holds()),
		strings.Compare(a.Cluster.Name, b.Cluster.Name),
	)
}

// holds is how many replicas of the binding fit into the cluster altogether.
func (c *Candidate) holds() int64 { return c.Available + int64(c.Assigned) }
