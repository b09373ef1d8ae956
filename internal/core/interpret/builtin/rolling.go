package builtin

import (
	"fmt"

	"github.com/argosy-io/argosy/internal/core/interpret"
)

// rolling is how far a workload has come that replaces its pods bit by bit, counted in pods.
type rolling struct {
	wanted           int64 // that there shall be
	held             int64 // of wanted, those that a partition keeps on the old revision
	spare            int64 // of wanted, those that may be unavailable
	there, available int64
	// updated are those of the new revision; updatedAvailable those of them that are available.
	updated, updatedAvailable int64

	paused   bool // by its owner
	onDelete bool // pods are replaced when somebody deletes them
	overdue  bool // its own deadline is over
}

// health of a workload, by its numbers. That its controller says that it fails counts once that stays, by
// interpret.Overdue.
func (r rolling) health() interpret.Health {
	short := r.there != r.wanted || r.available < r.wanted-r.spare
	if !r.paused && !r.onDelete {
		short = short || r.updatedAvailable < r.wanted-r.held
	}
	canary := !r.onDelete && r.held > 0 && r.updated < r.wanted
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

// strategy is a field of the update strategy in a workload's spec, of either version; nil when neither has it.
func strategy(spec map[string]any, name string) any {
	s := object(spec, "updateStrategy")
	if v := field(s, "rollingUpdate", name); v != nil {
		return v
	}
	return s[name]
}

// paused and onDelete read the update strategy in a workload's spec.
func paused(spec map[string]any) bool { return strategy(spec, "paused") == true }

func onDelete(spec map[string]any) bool { return text(spec, "updateStrategy", "type") == "OnDelete" }

// partitionOf is how many of total pods a CloneSet or a SidecarSet keeps on the old revision. A percentage rounds up,
// but only 100% keeps all.
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

// updatedAvailable are the pods of the new revision that are available. OpenKruise leaves the field out at zero, and
// its older versions do not have it: then at most as many as are ready of the new revision, and available of any.
func updatedAvailable(status map[string]any) int64 {
	if n, ok := whole(status["updatedAvailableReplicas"]); ok {
		return n
	}
	return min(number(status, "updatedReadyReplicas"), number(status, "availableReplicas"))
}
