package deschedule

import (
	"encoding/json"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

// seen has the pods of a workload that a member reports.
type seen struct {
	// Replicas is the number of pods, including surge and terminating pods.
	Replicas int32
	// Ready is the number of ready pods.
	Ready int32
}

// seenIn returns what the cluster reports about b's pods. ok is false without a report, or for kinds like Job that do
// not report total and ready pods. Then nothing may leave.
func seenIn(b workv1alpha2.Binding, cluster string) (s seen, ok bool) {
	for _, item := range b.BindingStatus().AggregatedStatus {
		if item.ClusterName != cluster || !item.Applied || item.Status == nil {
			continue
		}
		var status struct {
			Replicas      *int32 `json:"replicas"`
			ReadyReplicas *int32 `json:"readyReplicas"`
		}
		if json.Unmarshal(item.Status.Raw, &status) != nil || status.Replicas == nil && status.ReadyReplicas == nil {
			return seen{}, false
		}
		if status.ReadyReplicas != nil { // zero is often omitted
			s.Ready = *status.ReadyReplicas
		}
		s.Replicas = s.Ready
		if status.Replicas != nil {
			s.Replicas = *status.Replicas
		}
		return s, true
	}
	return seen{}, false
}

// ReadyIn returns the ready replicas of b in a cluster. known is false if the cluster does not report them.
func ReadyIn(b workv1alpha2.Binding, cluster string) (ready int32, known bool) {
	s, known := seenIn(b, cluster)
	return s.Ready, known
}
