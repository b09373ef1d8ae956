package execute

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
)

// OrderedFinalizer is on a Work that the hub itself deletes. The API server adds it to an object that is deleted in the
// foreground, in the same write, so it survives a restart. The garbage collector does not watch Works, and admission
// refuses the finalizer and foreground deletions of others.
const OrderedFinalizer = metav1.FinalizerDeleteDependents

// Ordered reports whether the hub itself deletes w.
func Ordered(w *workv1alpha1.Work) bool {
	return w.DeletionTimestamp != nil && slices.Contains(w.Finalizers, OrderedFinalizer)
}

// WaveWindow is the time within which deletions by others are counted together.
const WaveWindow = time.Minute

// End is the known state of the deletion of a Work, besides the Work itself.
type End struct {
	// Broken are the hub's own definitions that are missing or being deleted.
	Broken []string
	// WorksGo means that the definition of Works is one of them, SpaceGoes that the Work's namespace is being deleted.
	WorksGo, SpaceGoes bool
	// OwnerWent is the definition of the Work's owner, if it was missing or being deleted when the Work was deleted: no
	// user may have deleted the owner.
	OwnerWent string
	// Leaving is true if the Work's cluster is being removed.
	Leaving bool
	// Unwanted is true if the Work's binding exists and needs no Work in that cluster.
	Unwanted bool
	// AtStart means that the Work was deleted before this process started: the number of such deletions is unknown.
	AtStart bool
	// Others is the number of Works that others deleted within WaveWindow, this one included. Bound is the limit.
	Others, Bound int
	// Known is the time since this deletion was observed, Settle the time to wait for more deletions.
	Known, Settle time.Duration
}

// EndKind is the meaning of a Work's deletion.
type EndKind string

// The kinds of ends.
const (
	EndOrdered EndKind = "Ordered" // carry it out in the member, see Plan
	EndKept    EndKind = "Kept"    // the Work may go, and the member's object stays as it is
	EndWaits   EndKind = "Waits"   // ask again
)

// JudgeEnd decides what the deletion of w means. Objects are deleted in members only if the hub decided so, or if a
// user deleted that single Work: not if the Work was deleted with its namespace or definition, or as one of many. A
// Work with wellknown.LeavingAnnotation that preserves its object is always released. after is the delay after which to
// decide again; reason is for users.
func JudgeEnd(w *workv1alpha1.Work, e End) (kind EndKind, after time.Duration, reason string) {
	switch {
	case e.WorksGo:
		return EndKept, 0, "the CustomResourceDefinition of Works is being deleted, or was deleted"
	case e.SpaceGoes && !e.Leaving:
		return EndKept, 0, "its execution space is being deleted, but its cluster is not being removed"
	case e.OwnerWent != "" && !e.Leaving:
		return EndKept, 0, fmt.Sprintf("its template was deleted together with its definition, %s", e.OwnerWent)
	case len(e.Broken) > 0:
		return EndWaits, time.Second, fmt.Sprintf(
			"nothing is deleted in members while definitions of the hub are missing: %s", strings.Join(e.Broken, ", "))
	case Ordered(w):
		return EndOrdered, 0, "the hub requested it"
	case e.Leaving:
		return EndOrdered, 0, "its cluster is being removed"
	case e.Unwanted:
		return EndOrdered, 0, "its binding no longer needs it"
	case Leaves(w):
		return EndOrdered, 0, "a user ends the management of its object, which is preserved"
	case e.AtStart:
		return EndKept, 0, "it was deleted while the hub was not watching"
	case e.Others > e.Bound:
		return EndKept, 0, fmt.Sprintf("it is one of %d Works that were deleted within a minute, but not by the hub; at most %d may be", e.Others, e.Bound)
	case e.Known < e.Settle:
		return EndWaits, e.Settle - e.Known, "a user deleted it; the hub waits to see whether more Works are deleted"
	}
	return EndOrdered, 0, "a user deleted this Work"
}

// Leaves reports whether a user ends the management of the object of a Work, which is preserved. Such a deletion does
// not count as one of many.
func Leaves(w *workv1alpha1.Work) bool {
	return w.Annotations[wellknown.LeavingAnnotation] == "true" && Preserved(w)
}
