package capacity

import "time"

// UnschedulablePod is a pod that the member's scheduler marked Unschedulable.
type UnschedulablePod struct {
	Namespace, Name string
	Labels          map[string]string
	// OwnerKind and OwnerName identify the controller, such as ReplicaSet web-5d4f. They are empty for a pod without one.
	OwnerKind, OwnerName string
	// Since is when the pod first became unschedulable.
	Since time.Time
}
