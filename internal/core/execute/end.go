package execute

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
)

// OrderedFinalizer is on a Work whose deletion the hub itself has ordered. The API server adds it in the write that
// deletes, when that asks for a foreground deletion, so that a restart, or another hub, knows by whose order a Work
// goes. The garbage collector does not see Works, and admission lets nobody else ask for that or write it.
const OrderedFinalizer = metav1.FinalizerDeleteDependents

// Ordered says whether the hub itself has ordered the end of w.
func Ordered(w *workv1alpha1.Work) bool {
	return w.DeletionTimestamp != nil && slices.Contains(w.Finalizers, OrderedFinalizer)
}

// WaveWindow is how long Works that others delete count together.
const WaveWindow = time.Minute

// End is what is known of the end of a Work that is being deleted, beside the Work itself.
type End struct {
	// Broken are the hub's own definitions that are missing or being deleted.
	Broken []string
	// WorksGo says that the definition of Works is one of them, SpaceGoes that the Work's namespace is being deleted.
	WorksGo, SpaceGoes bool
	// OwnerWent is the definition of what the Work was made for, if that was missing or being deleted when the Work was:
	// the hub saw no user delete its owner.
	OwnerWent string
	// Leaving says that the Work's cluster is about to leave the fleet.
	Leaving bool
	// Unwanted says that the Work's binding stands, and wants no Work in that cluster.
	Unwanted bool
	// Unseen says that the Work was deleted before this hub process looked: how many there were with it is not known.
	Unseen bool
	// Others are the Works that others than the hub have deleted within WaveWindow, with this one; Bound is how many of
	// them may go.
	Others, Bound int
	// Known is for how long this deletion is known, Settle how long it takes until it is not one of many.
	Known, Settle time.Duration
}

// EndKind is what the deletion of a Work means.
type EndKind string

// The kinds of ends.
const (
	EndOrdered EndKind = "Ordered" // carry it out in the member, see Plan
	EndKept    EndKind = "Kept"    // the Work may go, and the member's object stays as it is
	EndWaits   EndKind = "Waits"   // ask again
)

// JudgeEnd decides what the deletion of w means. An object leaves a member because the hub has decided so, or by a
// user's word on that one Work: what goes with its namespace or definition, or as one of many that somebody deletes, is
// no such word. after is when to ask again, reason is for people.
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
	case e.Unseen:
		return EndKept, 0, "it was deleted while the hub was not watching"
	case e.Others > e.Bound:
		return EndKept, 0, fmt.Sprintf("it is one of %d Works that were deleted within a minute, but not by the hub; at most %d may be", e.Others, e.Bound)
	case e.Known < e.Settle:
		return EndWaits, e.Settle - e.Known, "a user deleted it; the hub waits to see whether more Works are deleted"
	}
	return EndOrdered, 0, "a user deleted this Work"
}
