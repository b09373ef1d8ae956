// Package deschedule decides which replicas leave a member cluster and where they go: unschedulable replicas
// (unschedulable.go) and replicas of overutilized clusters (rebalance.go). core/schedule finds the new placement, with
// the clusters that lose replicas counted as full so that nothing moves back. Nothing moves without room elsewhere.
package deschedule
