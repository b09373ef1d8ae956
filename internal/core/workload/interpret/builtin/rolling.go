package builtin

import (
	"fmt"

	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// rolling is the state of a rolling update, in numbers of pods.
type rolling struct {
	wanted           int64 // desired pods
	keptOld          int64 // desired pods that a partition keeps on the old revision
	spare            int64 // desired pods that may be unavailable
	there, available int64
	// updated are pods of the new revision. updatedAvailable are the available ones among them.
	updated, updatedAvailable int64

	paused   bool // paused by the user
	onDelete bool // pods are replaced only after their deletion
	overdue  bool // its own progress deadline has expired
}

// health returns the health of a workload by its numbers. interpret.Overdue handles a failure that the controller
// reports, if it lasts.
func (r rolling) health() interpret.Health {
	short := r.there != r.wanted || r.available < r.wanted-r.spare
	if !r.paused && !r.onDelete {
		short = short || r.updatedAvailable < r.wanted-r.keptOld
	}
	canary := !r.onDelete && r.keptOld > 0 && r.updated < r.wanted
	switch {
	case r.overdue && !r.paused:
		return interpret.Degraded
	case short:
		return interpret.Progressing
	case r.paused, canary:
		return interpret.Suspended
	}
	return interpret.Healthy
}

// strategy returns a field of the update strategy in either version; nil if it is not set.
func strategy(spec map[string]any, name string) any {
	s := object(spec, "updateStrategy")
	if v := field(s, "rollingUpdate", name); v != nil {
		return v
	}
	return s[name]
}

// paused and onDelete read the update strategy of a workload's spec.
func paused(spec map[string]any) bool { return strategy(spec, "paused") == true }

func onDelete(spec map[string]any) bool { return text(spec, "updateStrategy", "type") == "OnDelete" }

// partitionOf returns how many of total pods a CloneSet or SidecarSet keeps on the old revision. A percentage rounds
// up, but only 100% keeps all.
func partitionOf(v any, total int64) (int64, error) {
	n, err := share(v, total, true, int64(0))
	if err != nil {
		return 0, fmt.Errorf("partition: %w", err)
	}
	if s, percent := v.(string); percent && s != "100%" && total > 1 && n == total {
		n--
	}
	return min(max(n, 0), total), nil
}

// updatedAvailable returns the available pods of the new revision. OpenKruise omits zero, and older versions do not
// have the field. Then it is at most the ready pods of the new revision and the available pods of any.
func updatedAvailable(status map[string]any) int64 {
	if n, ok := whole(status["updatedAvailableReplicas"]); ok {
		return n
	}
	return min(number(status, "updatedReadyReplicas"), number(status, "availableReplicas"))
}
