package release

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
)

// journalOf returns a journal in which the types of entries repeat.
func journalOf(n int, types ...releasev1alpha1.JournalType) []releasev1alpha1.ReleaseJournalEntry {
	var out []releasev1alpha1.ReleaseJournalEntry
	for i := range n {
		out = append(out, releasev1alpha1.ReleaseJournalEntry{Seq: int64(i + 1), Type: types[i%len(types)], Reason: "Test"})
	}
	return out
}

func TestFullJournalDropsRecordedEntriesFirst(t *testing.T) {
	j := trimJournal(journalOf(journalSize+1, releasev1alpha1.JournalStage), 1)
	if len(j) != journalSize || j[0].Seq != 2 || j[0].Reason != "Test" {
		t.Errorf("%d entries are left, the first is %+v", len(j), j[0])
	}
}

func TestFullJournalFoldsMinorEntriesThatAreNotRecorded(t *testing.T) {
	all := journalOf(3*journalSize, releasev1alpha1.JournalPhase, releasev1alpha1.JournalStage,
		releasev1alpha1.JournalCluster, releasev1alpha1.JournalStage)
	var j []releasev1alpha1.ReleaseJournalEntry
	for _, e := range all {
		j = trimJournal(append(j, e), 0)
	}
	if len(j) != journalSize || j[len(j)-1].Seq != all[len(all)-1].Seq {
		t.Fatalf("%d entries are left, the last is %+v", len(j), j[len(j)-1])
	}
	phases, folded := 0, 0
	for _, e := range j {
		if e.Type == releasev1alpha1.JournalPhase {
			phases++
		}
		if e.Reason == foldedReason {
			folded++
		}
	}
	if phases != 3*journalSize/4 || folded != 1 {
		t.Errorf("%d phases of %d and %d folded entries are left", phases, 3*journalSize/4, folded)
	}
	if !slices.IsSortedFunc(j, func(a, b releasev1alpha1.ReleaseJournalEntry) int { return int(a.Seq - b.Seq) }) {
		t.Error("the numbers are not in order")
	}
}

func TestFullJournalOfImportantEntriesDropsTheOldest(t *testing.T) {
	if j := trimJournal(journalOf(journalSize+1, releasev1alpha1.JournalGate), 0); len(j) != journalSize ||
		j[0].Seq != 2 {
		t.Errorf("%d entries are left, the first is %+v", len(j), j[0])
	}
}

func TestRecordedConditionFollowsTheHistory(t *testing.T) {
	for name, c := range map[string]struct {
		history History
		status  metav1.ConditionStatus
		reason  string
		seq     int64
	}{
		"no database":     {History{Off: true}, metav1.ConditionFalse, releasev1alpha1.ReasonNoDatabase, 0},
		"not written yet": {History{}, "", "", 0},
		"the database fails": {History{Seq: 60, Failure: "refused"}, metav1.ConditionFalse,
			releasev1alpha1.ReasonDatabaseUnavailable, 60},
		"far behind":   {History{Seq: 3}, metav1.ConditionFalse, releasev1alpha1.ReasonBehind, 3},
		"a bit behind": {History{Seq: 50}, metav1.ConditionTrue, releasev1alpha1.ReasonStored, 50},
	} {
		status := releasev1alpha1.ReleaseStatus{Journal: journalOf(60, releasev1alpha1.JournalStage)}
		c.history.Record(&status, 7)
		got := meta.FindStatusCondition(status.Conditions, releasev1alpha1.ReleaseRecorded)
		if got == nil {
			got = &metav1.Condition{}
		}
		if got.Status != c.status || got.Reason != c.reason || status.RecordedSeq != c.seq {
			t.Errorf("%s: the condition is %q %q and recordedSeq %d", name, got.Status, got.Reason, status.RecordedSeq)
		}
	}
}

// A release that is recorded in time costs no write beside those of its own steps.
func TestRecordingIsWrittenAloneOnlyIfItFailsOrIsLate(t *testing.T) {
	running := func(entries int, recorded int64, condition metav1.ConditionStatus) *releasev1alpha1.Release {
		r := &releasev1alpha1.Release{Status: releasev1alpha1.ReleaseStatus{Phase: releasev1alpha1.ReleaseRunning,
			Journal: journalOf(entries, releasev1alpha1.JournalStage), RecordedSeq: recorded}}
		if condition != "" {
			meta.SetStatusCondition(&r.Status.Conditions, metav1.Condition{Type: releasev1alpha1.ReleaseRecorded,
				Status: condition, Reason: "Test"})
		}
		return r
	}
	ended := running(3, 0, "")
	ended.Status.Phase = releasev1alpha1.ReleaseSucceeded
	for name, c := range map[string]struct {
		history History
		release *releasev1alpha1.Release
		want    bool
	}{
		"in time":                 {History{Seq: 5}, running(5, 2, metav1.ConditionTrue), false},
		"the first time":          {History{Seq: 1}, running(1, 0, ""), false},
		"ended":                   {History{Seq: 3}, ended, false},
		"fails":                   {History{Failure: "x"}, running(5, 2, metav1.ConditionTrue), true},
		"still fails":             {History{Failure: "x"}, running(5, 2, metav1.ConditionFalse), false},
		"fails after the end":     {History{Failure: "x"}, ended, false},
		"succeeds again":          {History{Seq: 5}, running(5, 2, metav1.ConditionFalse), true},
		"the journal has no room": {History{Seq: 50}, running(50, 2, metav1.ConditionTrue), true},
		"no database":             {History{Off: true}, running(50, 2, ""), false},
	} {
		if got := c.history.MustRecord(c.release); got != c.want {
			t.Errorf("%s: a write of its own is %t, want %t", name, got, c.want)
		}
	}
}
