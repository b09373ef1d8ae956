package deschedule

import (
	"encoding/json"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

// seen is what a member says of a workload's pods.
type seen struct {
	// Replicas are the pods that there are, surge and those that are on their way out included.
	Replicas int32
	// Ready are those that serve.
	Ready int32
}

// seenIn is what the cluster says of b's pods. ok is false where it has not answered, or the kind does not tell how
// many pods there are and are ready, as a Job does not: then nothing can be said about what may leave.
func seenIn(b workv1alpha2.Binding, cluster string) (s seen, ok bool) {
	for _, item := range b.BindingStatus().AggregatedStatus {
		if item.ClusterName != cluster || !item.Applied || item.Status == nil {
			continue
		}
		var said struct {
			Replicas      *int32 `json:"replicas"`
			ReadyReplicas *int32 `json:"readyReplicas"`
		}
		if json.Unmarshal(item.Status.Raw, &said) != nil || said.Replicas == nil && said.ReadyReplicas == nil {
			return seen{}, false
		}
		if said.ReadyReplicas != nil { // a zero is often left out
			s.Ready = *said.ReadyReplicas
		}
		s.Replicas = s.Ready
		if said.Replicas != nil {
			s.Replicas = *said.Replicas
		}
		return s, true
	}
	return seen{}, false
}

// ReadyIn is how many replicas of b are ready in a cluster; known is false where the cluster does not report that.
func ReadyIn(b workv1alpha2.Binding, cluster string) (ready int32, known bool) {
	s, known := seenIn(b, cluster)
	return s.Ready, known
}
