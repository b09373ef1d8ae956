package failover

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/internal/core/object/text"
)

// Record has the clusters that a binding left or is leaving.
type Record map[string]Departure

// Departure is the record of one cluster that a binding left.
type Departure struct {
	// Since is when the cause began.
	Since time.Time `json:"since"`
	// Lost is true if the cluster did not respond.
	Lost bool `json:"lost,omitempty"`
	// Reason of the eviction, such as TaintUntolerated.
	Reason string `json:"reason,omitempty"`
	// To are the replacement clusters, with the replicas that each gained.
	To []workv1alpha2.TargetCluster `json:"to,omitempty"`
	// NewCopies are the clusters of To that had no copy during a rollback, with the revision that they got.
	NewCopies map[string]string `json:"newCopies,omitempty"`
	// Ended is the end of the failover, without an expected return. The record keeps it for display.
	Ended *time.Time `json:"ended,omitempty"`
}

// shownFor is the time for which a failover is shown after its end.
const shownFor = time.Hour

// Current returns the departures of b that have not ended: the binding is leaving these clusters, or may return to
// them.
func Current(b workv1alpha2.Binding) Record {
	r := RecordOf(b)
	maps.DeleteFunc(r, func(_ string, d Departure) bool { return d.Ended != nil })
	return r
}

// InProgress reports whether a binding is leaving a cluster, or may return to one.
func InProgress(b workv1alpha2.Binding) bool {
	return len(b.BindingSpec().GracefulEvictionTasks) > 0 || len(Current(b)) > 0
}

// shown returns the ended departures of b that are recent, or after which replicas still run another revision.
func shown(b workv1alpha2.Binding, now time.Time) Record {
	r := RecordOf(b)
	maps.DeleteFunc(r, func(from string, d Departure) bool {
		return d.Ended == nil || now.Sub(*d.Ended) > shownFor && r.revisionChange(b, from) == ""
	})
	return r
}

// RecordOf returns the record of b; empty if it is invalid.
func RecordOf(b workv1alpha2.Binding) Record {
	var r Record
	if text := b.GetAnnotations()[wellknown.FailoverAnnotation]; text != "" && json.Unmarshal([]byte(text), &r) != nil {
		return nil
	}
	return r
}

// write stores the record in b. An empty record removes the annotation.
func (r Record) write(b workv1alpha2.Binding) {
	value := ""
	if len(r) > 0 {
		value = text.JSON(r)
	}
	fields.PutAnnotation(b, wellknown.FailoverAnnotation, value)
}

// Apply moves b. It adds to an existing task of the same cluster.
func (e *Eviction) Apply(b workv1alpha2.Binding) {
	spec := b.BindingSpec()
	copies := newCopies(b, e.To)
	spec.Clusters = e.Placement
	record := Record{}
	maps.Copy(record, shown(b, e.Tasks[0].CreationTimestamp.Time))
	if e.Reason() != ReasonFailback {
		maps.Copy(record, Current(b))
	}
	for _, task := range e.Tasks {
		at := slices.IndexFunc(spec.GracefulEvictionTasks, func(t workv1alpha2.GracefulEvictionTask) bool {
			return t.FromCluster == task.FromCluster
		})
		if at < 0 {
			spec.GracefulEvictionTasks = append(spec.GracefulEvictionTasks, task)
			continue
		}
		if has := &spec.GracefulEvictionTasks[at]; has.Replicas != nil && task.Replicas != nil {
			has.Replicas = new(*has.Replicas + *task.Replicas)
		}
	}
	for _, task := range e.Tasks {
		record[task.FromCluster] = Departure{
			Since: e.Since.UTC().Truncate(time.Second), Lost: e.Lost, Reason: e.Reason(), To: e.To, NewCopies: copies}
	}
	record.write(b)
	if e.Reschedule != nil {
		spec.RescheduleTriggeredAt = e.Reschedule
	}
}

// Apply removes the ended tasks from b.
func (f *Finish) Apply(b workv1alpha2.Binding) {
	spec := b.BindingSpec()
	ended := func(t workv1alpha2.GracefulEvictionTask) bool {
		return slices.ContainsFunc(f.Tasks, func(e Ended) bool { return e.Task.FromCluster == t.FromCluster })
	}
	spec.GracefulEvictionTasks = slices.DeleteFunc(slices.Clone(spec.GracefulEvictionTasks), ended)
	if len(spec.GracefulEvictionTasks) == 0 {
		spec.GracefulEvictionTasks = nil
	}
	record := Record{}
	maps.Copy(record, shown(b, f.At))
	maps.Copy(record, Current(b))
	for _, cluster := range f.Forget {
		if d, known := record[cluster]; known {
			d.Ended = new(f.At.UTC().Truncate(time.Second))
			record[cluster] = d
		}
	}
	record.write(b)
}

// gains returns the clusters with more replicas after a move, with the difference.
func gains(before, after []workv1alpha2.TargetCluster) (to []workv1alpha2.TargetCluster) {
	for _, t := range after {
		if more := t.Replicas - workv1alpha2.ReplicasIn(before, t.Name); more > 0 || !workv1alpha2.HasTarget(before, t.Name) {
			to = append(to, workv1alpha2.TargetCluster{Name: t.Name, Replicas: more})
		}
	}
	return to
}
