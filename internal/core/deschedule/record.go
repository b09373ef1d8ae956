package deschedule

import (
	"encoding/json"
	"maps"
	"time"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

// RecordAnnotation on a binding is a Record, as JSON. It is written together with the replicas that move.
const RecordAnnotation = "argosy.io/descheduled"

// CoolDown is how long replicas stay where they were moved to.
const CoolDown = 10 * time.Minute

// memory is how long a cluster that gave replicas gets none of the same binding from us. It is longer than CoolDown:
// what found no node in either of two clusters would go to and fro else.
const memory = 6 * CoolDown

// Record is when clusters last gave and took replicas of a binding. A hub that starts anew reads it.
type Record struct {
	Gave map[string]time.Time `json:"gave,omitempty"`
	Took map[string]time.Time `json:"took,omitempty"`
}

// RecordOf is what b says; nothing where somebody else wrote what cannot be read.
func RecordOf(b workv1alpha2.Binding) Record {
	var r Record
	if text, ok := b.GetAnnotations()[RecordAnnotation]; ok && json.Unmarshal([]byte(text), &r) != nil {
		return Record{}
	}
	return r
}

// settling says whether a cluster took replicas a short while ago, and so gives none.
func (r Record) settling(cluster string, now time.Time) bool {
	at, ok := r.Took[cluster]
	return ok && now.Sub(at) < CoolDown
}

// shut says whether a cluster gave replicas, and so takes none.
func (r Record) shut(cluster string, now time.Time) bool {
	at, ok := r.Gave[cluster]
	return ok && now.Sub(at) < memory
}

// Apply moves replicas of b, and records when. What no longer counts of earlier moves is forgotten.
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
	text, err := json.Marshal(r)
	if err != nil {
		panic(err) // names and times
	}
	annotations := maps.Clone(b.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[RecordAnnotation] = string(text)
	b.SetAnnotations(annotations)
	b.BindingSpec().Clusters = m.Clusters
}
