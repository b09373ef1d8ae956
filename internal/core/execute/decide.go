package execute

import (
	"cmp"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// Situation has the facts about a Work's object that a decision depends on, besides the object.
type Situation struct {
	// Finished is the last state of an object that ran once, has finished and is gone; nil if it is reported already.
	Finished *unstructured.Unstructured
	// Missed means that the object was already missing at the last attempt.
	Missed bool
	Brake  Brake
	// Unsettled means that the hub was restored, and has not settled the state of the object since.
	Unsettled bool
	// RepairAfter is the time until the object may be repaired again; 0 if it may be now.
	RepairAfter time.Duration
}

// Decide is Plan, and decides whether the hub carries the plan out now. The rules, in order:
//
//   - The last state of an object that ran once is reported, not created again.
//   - An object that runs once and is missing for the first time is looked at again: its last state may follow.
//   - An object with wellknown.HandsOffAnnotation, or with a Brake, stays as it is.
//   - An object that differs since a restore of the hub stays until a user accepts it, see PauseReason.
//   - An object that others change again and again is repaired later, see Contest.
func (h HubID) Decide(w *workv1alpha1.Work, desired, observed *unstructured.Unstructured, s Situation) Action {
	deleted := w.DeletionTimestamp != nil
	switch {
	case deleted && observed != nil && Owns(w, observed) && !Anothers(w, observed):
		if why := cmp.Or(HandsOff(w, observed), s.Brake.Reason()); why != "" {
			return Action{Kind: Leave, Reason: why}
		}
	case deleted || observed != nil || Suspended(w):
	case s.Finished != nil:
		return Action{Kind: Finish, Reason: "the object has finished and is gone", Object: s.Finished}
	case !s.Missed && appliedGeneration(w) > 0 && !Over(w) && interpret.RunsOnce(desired.GroupVersionKind().GroupKind()):
		return Action{Kind: Recheck, Reason: "the object is missing; its last state may not be known yet"}
	}
	action := s.Brake.Stop(h.Plan(w, desired, observed))
	if why := PauseReason(w, action, desired, observed, s.Unsettled); why != "" {
		return Action{Kind: Pause, Reason: why}
	}
	if action.Repairs && s.RepairAfter > 0 {
		return Action{Kind: Postpone, Reason: "others change the object repeatedly: " + action.Reason}
	}
	return action
}
