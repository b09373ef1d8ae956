package capacity

import "time"

// Pending is a pod that its member's scheduler has found no node for.
type Pending struct {
	Namespace, Name string
	Labels          map[string]string
	// OwnerKind and OwnerName are the controller's, such as ReplicaSet and web-5d4f; empty for a pod without one.
	OwnerKind, OwnerName string
	// Since is when the scheduler said so first.
	Since time.Time
}
