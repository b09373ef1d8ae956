// Package capacity computes how many replicas fit in a member cluster: per node, as the member's scheduler would place
// the pods, and within the quotas. It does no I/O: internal/member watches nodes and pods, internal/capacity serves the
// callers.
package capacity
