package release

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
)

// foldedReason is the reason of a journal entry that stands for several that were dropped.
const foldedReason = "Folded"

// behindAfter is the number of entries of the journal that the release history may lack before that is reported.
const behindAfter = 48

// History is the state of a release in the release history. No decision depends on it.
type History struct {
	// Off is true if the hub keeps no history.
	Off bool
	// Seq is the last journal entry that is known to be stored.
	Seq int64
	// Failure is why the last attempt to write failed; empty if it did not.
	Failure string
}

// Record sets what the history has in a status. A history that has never written the release changes nothing.
func (h History) Record(status *releasev1alpha1.ReleaseStatus, generation int64) {
	status.RecordedSeq = max(status.RecordedSeq, h.Seq)
	c := metav1.Condition{Type: releasev1alpha1.ReleaseRecorded, Status: metav1.ConditionFalse,
		ObservedGeneration: generation}
	switch {
	case h.Off:
		c.Reason, c.Message = releasev1alpha1.ReasonNoDatabase, "The hub keeps no release history."
	case h.Failure != "":
		c.Reason = releasev1alpha1.ReasonDatabaseUnavailable
		c.Message = "The release continues, and is recorded when the database answers: " + h.Failure
	case h.Seq == 0:
		return
	case unrecorded(status) > behindAfter:
		c.Reason = releasev1alpha1.ReasonBehind
		c.Message = fmt.Sprintf("The release history lacks %d entries of the journal.", unrecorded(status))
	default:
		c.Status, c.Reason = metav1.ConditionTrue, releasev1alpha1.ReasonStored
	}
	meta.SetStatusCondition(&status.Conditions, c)
}

// MustRecord reports whether what the history has is worth a write of its own: recording has begun to fail or succeeds
// again, or the journal has little room for entries that are not recorded.
func (h History) MustRecord(r *releasev1alpha1.Release) bool {
	if h.Off {
		return false
	}
	failed := meta.IsStatusConditionFalse(r.Status.Conditions, releasev1alpha1.ReleaseRecorded)
	if h.Failure != "" {
		// Those that have ended are recorded with the next start of the hub at the latest.
		return !failed && (!r.Status.Phase.Ended() || r.DeletionTimestamp != nil)
	}
	return failed || h.Seq > r.Status.RecordedSeq && unrecorded(&r.Status) >= behindAfter
}

// LastSeq is the number of the last entry of the journal of a release, 0 if there is none.
func LastSeq(status *releasev1alpha1.ReleaseStatus) int64 {
	if n := len(status.Journal); n > 0 {
		return status.Journal[n-1].Seq
	}
	return 0
}

// unrecorded counts the entries of the journal after recordedSeq.
func unrecorded(status *releasev1alpha1.ReleaseStatus) int {
	n := 0
	for _, e := range status.Journal {
		if e.Seq > status.RecordedSeq {
			n++
		}
	}
	return n
}

// trimJournal returns a journal of at most journalSize entries, without its oldest one if that is recorded. Otherwise
// the two oldest entries of less importance become one, which has the number of the first; the numbers that are missing
// show how many entries it stands for. If all are important, the oldest goes.
func trimJournal(journal []releasev1alpha1.ReleaseJournalEntry,
	recorded int64) []releasev1alpha1.ReleaseJournalEntry {
	if len(journal) <= journalSize {
		return journal
	}
	journal = slices.Clone(journal)
	older := journal[:len(journal)-1] // the newest entry stays as it is
	first := slices.IndexFunc(older, isMinor)
	if journal[0].Seq <= recorded || first < 0 {
		return journal[1:]
	}
	second := first + 1 + slices.IndexFunc(older[first+1:], isMinor)
	if second == first {
		return journal[1:]
	}
	journal[first] = releasev1alpha1.ReleaseJournalEntry{Seq: journal[first].Seq, At: journal[first].At,
		Type: releasev1alpha1.JournalStage, Reason: foldedReason,
		Message: "Entries of less importance were dropped before they were recorded."}
	return slices.Delete(journal, second, second+1)
}

// isMinor reports whether a journal entry is neither a phase, a verdict, a verb nor a failure.
func isMinor(e releasev1alpha1.ReleaseJournalEntry) bool {
	switch e.Type {
	case releasev1alpha1.JournalPhase, releasev1alpha1.JournalGate, releasev1alpha1.JournalVerb:
		return false
	}
	return !IsFailure(e)
}
