// Package capacity answers how many replicas a member cluster has room for: node by node, as its own scheduler would
// place their pods, within its quotas. Who follows nodes and pods, and who asks, is internal/member and
// internal/capacity.
package capacity
