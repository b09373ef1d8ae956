// Package execute decides what to do to one object in one member cluster: create, apply, adopt, leave, release or
// delete it. Reading and writing the member, and reporting, are left to its callers.
package execute

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	ocmv1 "github.com/argosy-io/argosy/api/ocm/work/v1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// Kind is the kind of an Action.
type Kind string

// The kinds of action.
const (
	Create   Kind = "Create"   // the object is absent
	Apply    Kind = "Apply"    // apply Action.Object, and remove fields that were applied before and are not in it
	Delete   Kind = "Delete"   // delete the object with the observed UID
	Release  Kind = "Release"  // replace the object by Action.Object, which has no marks of the hub
	Conflict Kind = "Conflict" // somebody else owns the object: change nothing, report Reason
	Wait     Kind = "Wait"     // the object is being deleted; plan again when it is gone
	Nothing  Kind = "Nothing"
	Leave    Kind = "Leave" // leave the object and its Work as they are; see HandsOff
	// Only Decide returns these. The object stays as it is.
	Finish   Kind = "Finish"   // report Action.Object, the last state of the object
	Recheck  Kind = "Recheck"  // decide again soon
	Pause    Kind = "Pause"    // a user has to accept the restore of the hub first, see PauseReason
	Postpone Kind = "Postpone" // decide again when the next repair is due
)

// Action is a step in the member, and its reason.
type Action struct {
	Kind Kind
	// Reason is for people. For a Conflict, it is Karmada's message.
	Reason string
	// Unmanaged means, for a Conflict, that no Work manages the object.
	Unmanaged bool
	// Object is sent with Create, Apply and Release, and reported with Finish.
	Object *unstructured.Unstructured
	// Adopts is true if an Apply takes over an object that was not this Work's.
	Adopts bool
	// Repairs is true if somebody in the member changed the applied object at Path, or deleted it. Then Path is empty.
	Repairs bool
	Path    string
	// Yields is true if an Apply fails rather than change a field that others set.
	Yields bool
}

// Preserved reports whether the object of w stays in the member when w is deleted.
func Preserved(w *workv1alpha1.Work) bool {
	return w.Spec.PreserveResourcesOnDeletion != nil && *w.Spec.PreserveResourcesOnDeletion
}

// Plan decides what to do for w. desired is the result of Desired, and may be nil if w is being deleted. observed is
// the member's object; nil for none. Plan changes none of them, and the action shares memory with desired.
//
// After a successful Apply, with the condition Applied for w's generation, Plan returns Nothing until w or a field that
// desired sets is changed. Other fields belong to the member. An object with wellknown.HandsOffAnnotation stays as it
// is. An object that runs once and has finished is not created again after it was deleted.
func Plan(w *workv1alpha1.Work, desired, observed *unstructured.Unstructured) Action {
	switch {
	case w.DeletionTimestamp != nil:
		return remove(w, observed)
	case HandsOff(w, observed) != "":
		return Action{Kind: Leave, Reason: HandsOff(w, observed)}
	case Suspended(w):
		return Action{Kind: Nothing, Reason: workv1alpha1.MessageSuspended}
	case observed == nil && Over(w):
		return Action{Kind: Nothing, Reason: "the object has finished and was deleted; it is not run again"}
	case observed == nil:
		return Action{Kind: Create, Reason: "the object does not exist", Object: desired,
			Repairs: appliedGeneration(w) >= w.Generation && appliedGeneration(w) > 0}
	}

	if CreateOnly(w) {
		if observed.GetDeletionTimestamp() != nil {
			return Action{Kind: Wait, Reason: leaving}
		}
		return Action{Kind: Nothing, Reason: "the object exists, and its update strategy is CreateOnly"}
	}
	adopts := false
	switch owner := ownerOf(observed, w); owner {
	case neighbour:
		return Action{Kind: Conflict, Reason: otherWork(w, desired, observed)}
	case unmarked, stranger:
		if strategy(w, desired) != workv1alpha2.ConflictResolutionOverwrite {
			if owner == stranger {
				return Action{Kind: Conflict, Reason: otherWork(w, desired, observed)}
			}
			return Action{Kind: Conflict, Reason: unmanaged(w, desired), Unmanaged: true}
		}
		adopts = true
	}
	if observed.GetDeletionTimestamp() != nil {
		return Action{Kind: Wait, Reason: leaving}
	}

	apply := Action{Kind: Apply, Object: desired, Adopts: adopts,
		Yields: w.Annotations[wellknown.UpdateStrategyAnnotation] == string(ocmv1.UpdateStrategyServerSideApply)}
	if adopts {
		apply.Reason = "the object is adopted, as conflict resolution is " + workv1alpha2.ConflictResolutionOverwrite
		return apply
	}
	if path, differs := difference(desired, observed); differs {
		apply.Reason, apply.Path = path+" differs", path
		apply.Repairs = appliedGeneration(w) >= w.Generation
		return apply
	}
	if applied := appliedGeneration(w); applied < w.Generation {
		// A field that the manifest no longer sets is no difference.
		apply.Reason = fmt.Sprintf("generation %d of the work is not applied yet", w.Generation)
		return apply
	}
	return Action{Kind: Nothing, Reason: asDesired}
}

const asDesired = "the object is up to date"

const leaving = "the object is being deleted in the member; it is recreated afterwards"

// CreateOnly reports whether w only creates its object, and never changes an existing one.
func CreateOnly(w *workv1alpha1.Work) bool {
	return w.Annotations[wellknown.UpdateStrategyAnnotation] == string(ocmv1.UpdateStrategyCreateOnly)
}

// remove plans for a Work that is being deleted. After Nothing and Release, the Work may be released. With Delete and
// Wait, the object must be gone first, so that a new Work of the same name does not find it.
func remove(w *workv1alpha1.Work, observed *unstructured.Unstructured) Action {
	switch {
	case observed == nil:
		return Action{Kind: Nothing, Reason: "the object does not exist"}
	case ownerOf(observed, w) != ours:
		return Action{Kind: Nothing, Reason: "the object is not marked as managed by this work, so it is kept"}
	case Anothers(w, observed):
		return Action{Kind: Nothing, Reason: "the object belongs to an earlier work of the same name, so it is kept"}
	case HandsOff(w, observed) != "":
		return Action{Kind: Leave, Reason: HandsOff(w, observed)}
	case Preserved(w):
		return Action{Kind: Release, Reason: "resources are preserved on deletion", Object: Released(observed)}
	case observed.GetDeletionTimestamp() != nil:
		return Action{Kind: Wait, Reason: "the object is already being deleted"}
	}
	return Action{Kind: Delete, Reason: "the work is being deleted"}
}

// Over reports whether a missing object of w is as it should be: by its last report, it runs once and has finished, or
// the member deletes it when it has finished.
func Over(w *workv1alpha1.Work) bool {
	kind, status := lastReport(w)
	return interpret.Finished(kind, status) || status[interpret.CleansUpField] == true
}

// Ended reports whether the object of w runs once and has finished, by its last report.
func Ended(w *workv1alpha1.Work) bool { return interpret.Finished(lastReport(w)) }

// lastReport returns the status that w reports of its object; nil for none, or if it is of an earlier template.
func lastReport(w *workv1alpha1.Work) (kind schema.GroupKind, status map[string]any) {
	if len(w.Status.ManifestStatuses) == 0 || w.Status.ManifestStatuses[0].Status == nil {
		return kind, nil
	}
	last := w.Status.ManifestStatuses[0]
	if err := json.Unmarshal(last.Status.Raw, &status); err != nil {
		return kind, nil
	}
	if status[interpret.RunOfField] != nil {
		m, err := Manifest(w)
		if err != nil || !interpret.OfRun(status, field(m, "annotations", workv1alpha2.TemplateUIDAnnotation)) {
			return kind, nil
		}
	}
	return schema.GroupKind{Group: last.Identifier.Group, Kind: last.Identifier.Kind}, status
}

// appliedGeneration returns the observed generation of the condition Applied; 0 if w was never applied.
func appliedGeneration(w *workv1alpha1.Work) int64 {
	if c := meta.FindStatusCondition(w.Status.Conditions, workv1alpha1.WorkApplied); c != nil {
		return c.ObservedGeneration
	}
	return 0
}

// strategy returns the conflict resolution: that of the manifest, or else of the Work.
func strategy(w *workv1alpha1.Work, desired *unstructured.Unstructured) string {
	if s := field(desired, "annotations", workv1alpha2.ConflictResolutionAnnotation); s != "" {
		return s
	}
	return w.Annotations[workv1alpha2.ConflictResolutionAnnotation]
}

// unmanaged returns Karmada's message, which names the value empty although it may be set.
func unmanaged(w *workv1alpha1.Work, desired *unstructured.Unstructured) string {
	return fmt.Sprintf("resource(kind=%s, %s/%s) already exists in the cluster %s and the %s strategy value is empty, Karmada will not manage this resource",
		desired.GetKind(), desired.GetNamespace(), desired.GetName(), cluster(w), workv1alpha2.ConflictResolutionAnnotation)
}

func otherWork(w *workv1alpha1.Work, desired, observed *unstructured.Unstructured) string {
	return fmt.Sprintf("resource(kind=%s, %s/%s) in the cluster %s belongs to the work %s/%s; delete that work, or remove its %s and %s annotations from the resource",
		desired.GetKind(), desired.GetNamespace(), desired.GetName(), cluster(w),
		field(observed, "annotations", workv1alpha2.WorkNamespaceAnnotation),
		field(observed, "annotations", workv1alpha2.WorkNameAnnotation),
		workv1alpha2.WorkNamespaceAnnotation, workv1alpha2.WorkNameAnnotation)
}

// cluster returns the cluster of w, or its namespace if that is no execution space.
func cluster(w *workv1alpha1.Work) string {
	c, err := names.ClusterOf(w.Namespace)
	if err != nil {
		return w.Namespace
	}
	return c
}
