package builtin

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argosy-io/argosy/internal/core/kind"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
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

func onDelete(spec map[string]any) bool { return text(spec, "updateStrategy", "type") == "OnDelete" }

// rollingHealth returns the health of a kind with an update strategy, by the facts about it.
func rollingHealth(_ context.Context, observed *unstructured.Unstructured) (interpret.Health, error) {
	k := kind.Facts(observed)
	spec, status, c := object(observed.Object, "spec"), object(observed.Object, "status"), k.Counters
	wanted := number(status, c.Desired)
	if k.Replicas != nil {
		n, err := wantedReplicas(observed)
		if err != nil {
			return interpret.Unknown, err
		}
		wanted = n
	}
	keptOld, spare, err := fleet.Limits(observed, wanted)
	if err != nil {
		return interpret.Unknown, err
	}
	if !fresh(observed) {
		return interpret.Progressing, nil
	}
	// OpenKruise versions round percentages differently, so prefer the member's number.
	if expected := number(status, "expectedUpdatedReplicas"); expected > 0 {
		keptOld = max(keptOld, wanted-expected)
	}
	r := rolling{wanted: wanted, keptOld: keptOld, spare: spare, there: wanted,
		available: number(status, c.Available), updated: number(status, c.Updated),
		updatedAvailable: number(status, c.Updated),
		paused:           k.Pause != nil && yes(observed.Object, k.Pause(observed.GroupVersionKind().Version)...),
		onDelete:         onDelete(spec), overdue: overdue(status)}
	if c.Desired == "" {
		r.there = number(status, c.Present()[0])
	}
	if c.UpdatedAvailable != "" {
		r.updatedAvailable = updatedAvailable(status)
	}
	if k.Pods.Ordinals { // each of them counts
		r.spare = 0
	}
	health := r.health()
	if health == interpret.Healthy && c.Desired != "" && r.available < wanted {
		return interpret.Progressing, nil
	}
	return health, nil
}

// updatedAvailable returns the available pods of the new revision. OpenKruise omits zero, and older versions do not
// have the field. Then it is at most the ready pods of the new revision and the available pods of any.
func updatedAvailable(status map[string]any) int64 {
	if n, ok := whole(status["updatedAvailableReplicas"]); ok {
		return n
	}
	return min(number(status, "updatedReadyReplicas"), number(status, "availableReplicas"))
}
