// Package deschedule decides which replicas leave a member cluster, and where they go instead: those that find no node
// there for long (unschedulable.go), and those of a cluster that is used too much (rebalance.go). A move is a whole
// placement, found by core/schedule with the clusters that are left counted as full, so that nothing comes straight
// back; where nobody else has room nothing moves. When to look, and the writing, are left to controller/deschedule.
package deschedule
