package deschedule

import (
	"encoding/json"
	"time"

	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/internal/core/object/text"
)

// CoolDown is the time for which replicas stay in a cluster before they may move again.
const CoolDown = 10 * time.Minute

// memory is the time for which a cluster that lost replicas gets none of the same binding. It exceeds CoolDown:
// otherwise replicas that are unschedulable in two clusters would move back and forth.
const memory = 6 * CoolDown

// Record is when clusters last lost and gained replicas of a binding. It survives restarts of the hub.
type Record struct {
	Gave map[string]time.Time `json:"gave,omitempty"`
	Took map[string]time.Time `json:"took,omitempty"`
}

// RecordOf reads the record of b. An invalid one counts as empty.
func RecordOf(b workv1alpha2.Binding) Record {
	var r Record
	if text, ok := b.GetAnnotations()[wellknown.DescheduledAnnotation]; ok && json.Unmarshal([]byte(text), &r) != nil {
		return Record{}
	}
	return r
}

// settling reports whether a cluster gained replicas within CoolDown, so that none leave.
func (r Record) settling(cluster string, now time.Time) bool {
	at, ok := r.Took[cluster]
	return ok && now.Sub(at) < CoolDown
}

// shut reports whether a cluster lost replicas within memory, so that it takes none.
func (r Record) shut(cluster string, now time.Time) bool {
	at, ok := r.Gave[cluster]
	return ok && now.Sub(at) < memory
}

// Apply moves replicas of b and updates the record. Expired entries are removed.
func (m Move) Apply(b workv1alpha2.Binding, now time.Time) {
	r := RecordOf(b)
	for _, of := range []struct {
		at   *map[string]time.Time
		keep time.Duration
		more map[string]int32
	}{{&r.Gave, memory, m.Left}, {&r.Took, CoolDown, m.Took}} {
		kept := map[string]time.Time{}
		for cluster, at := range *of.at {
			if now.Sub(at) < of.keep {
				kept[cluster] = at
			}
		}
		for cluster := range of.more {
			kept[cluster] = now.UTC().Truncate(time.Second)
		}
		*of.at = kept
	}
	fields.SetAnnotation(b, wellknown.DescheduledAnnotation, text.JSON(r))
	b.BindingSpec().Clusters = m.Clusters
}

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
