package history

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func minute(minutes int) *metav1.Time {
	return &metav1.Time{Time: noon.Add(time.Duration(minutes) * time.Minute)}
}

// release returns a release of the CloneSet web over two stages, begun at a minute.
func release(uid string, begin int, revision string, phase releasev1alpha1.ReleasePhase) *releasev1alpha1.Release {
	return &releasev1alpha1.Release{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-" + uid, UID: types.UID(uid),
			CreationTimestamp: *minute(begin), ResourceVersion: "10"},
		Spec: releasev1alpha1.ReleaseSpec{
			Targets: []releasev1alpha1.ReleaseTarget{{Name: "web", Ref: releasev1alpha1.ReleaseObjectReference{
				APIVersion: "apps.kruise.io/v1alpha1", Kind: "CloneSet", Name: "web"}}},
			StrategyRef: &releasev1alpha1.ReleaseStrategyReference{Name: "gray"},
			Change:      &releasev1alpha1.ReleaseChange{Commit: "abc", CommittedAt: minute(begin - 30)},
			CreatedBy:   &releasev1alpha1.ReleaseUser{User: "li"},
		},
		Status: releasev1alpha1.ReleaseStatus{
			Phase: phase, StartedAt: minute(begin + 1), EndedAt: minute(begin + 20),
			Targets: []releasev1alpha1.ReleaseTargetStatus{{Name: "web", From: "web-old", To: revision}},
			Strategy: &releasev1alpha1.ReleaseStrategySpec{Stages: []releasev1alpha1.ReleaseStage{
				{Name: "test", Environment: "test"}, {Name: "prod", Environment: "prod"}}},
			Stages: []releasev1alpha1.ReleaseStageStatus{
				{Name: "test", Phase: releasev1alpha1.StageDone, Attempt: 1, ClusterNames: []string{"m1"},
					StartedAt: minute(begin + 1), ReachedAt: minute(begin + 5), EndedAt: minute(begin + 6)},
				{Name: "prod", Phase: releasev1alpha1.StageDone, Attempt: 1, ClusterNames: []string{"m2", "m3"},
					Clusters: []releasev1alpha1.ReleaseClusterStatus{{Name: "m3", Workload: "web",
						Phase: releasev1alpha1.ClusterSkipped, Message: "not responding"}},
					Gates: []releasev1alpha1.ReleaseGateStatus{{Name: "owner", Position: releasev1alpha1.GateBefore,
						Phase: releasev1alpha1.GatePassed, By: []string{"wang"}, Since: minute(begin + 6)},
						{Name: "errors", Position: releasev1alpha1.GateAfter, Phase: releasev1alpha1.GateFailed,
							Since: minute(begin + 15), Check: &releasev1alpha1.ReleaseCheckStatus{Name: "error-rate", Attempt: 1,
								Verdict: releasev1alpha1.CheckFail, Passed: 2, Failed: 1, Value: "0.97", Control: "0.99",
								Message: "the condition is false"}}},
					StartedAt: minute(begin + 8), ReachedAt: minute(begin + 15), EndedAt: minute(begin + 16)},
			},
			Journal: []releasev1alpha1.ReleaseJournalEntry{
				{Seq: 1, At: *minute(begin + 1), Type: releasev1alpha1.JournalPhase, Reason: "Running"},
				{Seq: 2, At: *minute(begin + 7), Type: releasev1alpha1.JournalGate, Stage: "prod", Actor: "wang", Reason: "Passed",
					Message: "Robert'); DROP TABLE releases;--"},
			},
		},
	}
}

func revision(name, image string) *releasev1alpha1.ReleaseRevision {
	return &releasev1alpha1.ReleaseRevision{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, CreationTimestamp: *minute(0)},
		Spec: releasev1alpha1.ReleaseRevisionSpec{Hash: name, Images: []string{image},
			Target: releasev1alpha1.ReleaseObjectReference{APIVersion: "apps.kruise.io/v1alpha1", Kind: "CloneSet",
				Name: "web"}},
	}
}

func openSQLite(t *testing.T, dir string) *Store {
	t.Helper()
	s, err := OpenSQLite(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// eachDatabase runs a test on SQLite, and on PostgreSQL where it is installed.
func eachDatabase(t *testing.T, test func(*testing.T, *Store)) {
	t.Run("SQLite", func(t *testing.T) { test(t, openSQLite(t, t.TempDir())) })
	t.Run("PostgreSQL", func(t *testing.T) {
		_, dsn := newPostgres(t)
		test(t, openPostgres(t, dsn))
	})
}

// record writes releases and revisions.
func record(t *testing.T, s *Store, objects ...any) {
	t.Helper()
	for _, o := range objects {
		var err error
		switch o := o.(type) {
		case *releasev1alpha1.Release:
			err = s.RecordRelease(t.Context(), o)
		case *releasev1alpha1.ReleaseRevision:
			err = s.RecordRevision(t.Context(), o)
		case *releasev1alpha1.ReleaseApproval:
			err = s.RecordApproval(t.Context(), o)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// dump returns all rows of all tables.
func dump(t *testing.T, s *Store) string {
	t.Helper()
	var out strings.Builder
	for _, table := range []table{releasesTable, targetsTable, stagesTable, stageClustersTable, gatesTable, approvalsTable,
		eventsTable, revisionsTable, imagesTable, startsTable, endsTable} {
		keys := strings.Join(table.columns[:table.keys], ", ")
		err := s.query(t.Context(), "SELECT "+strings.Join(table.columns, ", ")+" FROM "+table.name+" ORDER BY "+keys, nil,
			func(rows *sql.Rows) error {
				values := make([]sql.NullString, len(table.columns))
				into := make([]any, len(values))
				for i := range values {
					into[i] = &values[i]
				}
				err := rows.Scan(into...)
				fmt.Fprintln(&out, table.name, values)
				return err
			})
		if err != nil {
			t.Fatal(err)
		}
	}
	return out.String()
}

func history() []any {
	approval := &releasev1alpha1.ReleaseApproval{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a", UID: "a1", CreationTimestamp: *minute(7)},
		Spec: releasev1alpha1.ReleaseApprovalSpec{ReleaseUID: "r1", Revision: "x", Stage: "prod", Gate: "owner", Attempt: 1,
			Position: releasev1alpha1.GateBefore, Verdict: releasev1alpha1.VerdictApprove, Comment: "'; --",
			By: &releasev1alpha1.ReleaseUser{User: "wang"}},
	}
	return []any{
		revision("web-one", "shop/web:1"), revision("web-two", "shop/web:2"), approval,
		release("r1", 0, "web-one", releasev1alpha1.ReleaseSucceeded),
		release("r2", 100, "web-two", releasev1alpha1.ReleaseSucceeded),
	}
}

func TestTheEvidenceOfAGateIsRecorded(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *Store) {
		record(t, s, history()...)
		want := "{error-rate true} {Fail true} {2 true} {1 true} {0.97, control 0.99: the condition is false true}"
		if !strings.Contains(dump(t, s), want) {
			t.Errorf("the rows lack %s:\n%s", want, dump(t, s))
		}
	})
}

func TestTheTriggerOfAReleaseIsRecorded(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *Store) {
		of := func(uid string, change func(s *releasev1alpha1.ReleaseSpec)) *releasev1alpha1.Release {
			r := release(uid, 0, "web-one", releasev1alpha1.ReleaseSucceeded)
			change(&r.Spec)
			return r
		}
		back := of("Rollback", func(s *releasev1alpha1.ReleaseSpec) { s.Targets[0].To.Revision = "web-one" })
		back.Status.Targets[0].TemplateRevision = "web-two"
		record(t, s, of("User", func(*releasev1alpha1.ReleaseSpec) {}), back,
			of("Template", func(s *releasev1alpha1.ReleaseSpec) {
				s.Trigger = &releasev1alpha1.ReleaseTrigger{Type: releasev1alpha1.TriggerTemplate}
			}),
			of("Direct", func(s *releasev1alpha1.ReleaseSpec) {
				s.Trigger = &releasev1alpha1.ReleaseTrigger{Type: releasev1alpha1.TriggerDirect}
			}))
		for _, want := range []string{"User", "Rollback", "Template", "Direct"} {
			found, err := s.Releases(t.Context(), Filter{Trigger: want})
			if err != nil || len(found) != 1 || found[0].UID != want || found[0].Trigger != want {
				t.Errorf("with the trigger %s, there are %+v, %v", want, found, err)
			}
		}
	})
}

func TestStoredRevisionIsARollbackUnlessTheTemplateHasIt(t *testing.T) {
	r := release("1", 0, "web-one", releasev1alpha1.ReleaseRunning)
	r.Spec.Targets[0].To.Revision = "web-one"
	if got := triggerOf(r); got != triggerUser {
		t.Errorf("the revision of the template, by its name, has the trigger %s", got)
	}
	r.Status.Targets[0].TemplateRevision = "web-two"
	if got := triggerOf(r); got != triggerRollback {
		t.Errorf("an earlier revision has the trigger %s", got)
	}
	r.Status.Targets = nil // refused, or not compared with the template yet
	if got := triggerOf(r); got != triggerRollback {
		t.Errorf("before it is accepted, a stored revision has the trigger %s", got)
	}
}

// An archive of a hub that did not know triggers can be imported.
func TestArchiveWithoutTriggersIsImported(t *testing.T) {
	from, to := openSQLite(t, t.TempDir()), openSQLite(t, t.TempDir())
	record(t, from, history()...)
	var archive strings.Builder
	if _, err := from.Export(t.Context(), &archive); err != nil {
		t.Fatal(err)
	}
	old := strings.ReplaceAll(archive.String(), `"trigger":"User",`, "")
	if strings.Contains(old, `"trigger":`) || old == archive.String() {
		t.Fatalf("the archive is %s", old)
	}
	if _, err := to.Import(t.Context(), strings.NewReader(old)); err != nil {
		t.Fatal(err)
	}
	if found, err := to.Releases(t.Context(), Filter{}); err != nil || len(found) != 2 || found[0].Trigger != "" {
		t.Errorf("there are %+v, %v", found, err)
	}
}

func TestRecordingTwiceChangesNothing(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *Store) {
		record(t, s, history()...)
		once := dump(t, s)
		record(t, s, history()...)
		if again := dump(t, s); again != once {
			t.Errorf("after the second time:\n%s\nafter the first:\n%s", again, once)
		}
		if !strings.Contains(once, "DROP TABLE releases;--") {
			t.Error("the message of an event is not stored as it is")
		}
	})
}

func TestReleasesAreFoundByEveryFilter(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *Store) {
		record(t, s, history()...)
		for name, test := range map[string]struct {
			filter Filter
			want   []string
		}{
			"all, newest first":       {Filter{}, []string{"r2", "r1"}},
			"workload":                {Filter{Kind: "cloneset", Name: "web"}, []string{"r2", "r1"}},
			"another workload":        {Filter{Name: "api"}, nil},
			"name":                    {Filter{Release: "web-r1"}, []string{"r1"}},
			"author":                  {Filter{Author: "li"}, []string{"r2", "r1"}},
			"another author":          {Filter{Author: "' OR 1=1 --"}, nil},
			"cluster":                 {Filter{Cluster: "m2"}, []string{"r2", "r1"}},
			"since":                   {Filter{Since: minute(50).Time}, []string{"r2"}},
			"until":                   {Filter{Until: minute(50).Time}, []string{"r1"}},
			"trigger":                 {Filter{Trigger: "User"}, []string{"r2", "r1"}},
			"another trigger":         {Filter{Trigger: "Rollback"}, nil},
			"outcome":                 {Filter{Outcome: "Succeeded"}, []string{"r2", "r1"}},
			"limit":                   {Filter{Limit: 1}, []string{"r2"}},
			"namespace":               {Filter{Namespaces: []string{"shop"}}, []string{"r2", "r1"}},
			"another namespace":       {Filter{Namespaces: []string{"bank"}}, nil},
			"no namespace is allowed": {Filter{Namespaces: []string{}}, nil},
		} {
			found, err := s.Releases(t.Context(), test.filter)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, r := range found {
				got = append(got, r.UID)
				if len(r.Targets) != 1 || r.Targets[0].From != "web-old" {
					t.Errorf("%s: the targets of %s are %v", name, r.UID, r.Targets)
				}
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("%s: found %v, want %v", name, got, test.want)
			}
		}
		events, err := s.Events(t.Context(), "r1")
		if err != nil || len(events) != 2 || events[1].Actor != "wang" {
			t.Errorf("the events of r1 are %v, %v", events, err)
		}
	})
}

func TestDeploymentsShowWhatRanAtATime(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *Store) {
		record(t, s, history()...)
		record(t, s, release("r3", 200, "web-three", releasev1alpha1.ReleaseRolledBack))
		for name, test := range map[string]struct {
			filter Filter
			at     time.Time
			want   string
		}{
			"before the first":      {Filter{}, minute(2).Time, ""},
			"in the first stage":    {Filter{}, minute(10).Time, "m1=web-one"},
			"after the first":       {Filter{}, minute(50).Time, "m1=web-one m2=web-one"},
			"an image at that time": {Filter{Image: "shop/web:2"}, minute(50).Time, ""},
			"between two":           {Filter{}, minute(108).Time, "m1=web-two m2=web-one"},
			"an image":              {Filter{Image: "shop/web:2"}, minute(150).Time, "m1=web-two m2=web-two"},
			"a cluster":             {Filter{Cluster: "m2"}, minute(150).Time, "m2=web-two"},
			"before the rollback":   {Filter{}, minute(216).Time, "m1=web-three m2=web-three"},
			"now, rolled back":      {Filter{}, time.Time{}, "m1=web-old m2=web-old"},
		} {
			found, err := s.Deployments(t.Context(), test.filter, test.at)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, d := range found {
				got = append(got, d.Cluster+"="+d.Revision)
			}
			if strings.Join(got, " ") != test.want {
				t.Errorf("%s: %v runs, want %s", name, got, test.want)
			}
		}
	})
}

func TestDeploymentsEndWhenTheirWorkloadIsDeleted(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *Store) {
		record(t, s, release("r1", 0, "web-one", releasev1alpha1.ReleaseSucceeded))
		web := Workload{Group: "apps.kruise.io", Kind: "CloneSet", Namespace: "shop", Name: "web"}
		runs := func(what, want string, at time.Time) {
			t.Helper()
			found, err := s.Deployments(t.Context(), Filter{}, at)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, d := range found {
				got = append(got, d.Cluster+"="+d.Revision)
			}
			if strings.Join(got, " ") != want {
				t.Errorf("%s: %v runs, want %s", what, got, want)
			}
		}
		deployed := func(want ...Workload) {
			t.Helper()
			if got, err := s.Deployed(t.Context()); err != nil || !slices.Equal(got, want) {
				t.Errorf("deployed are %v (%v), want %v", got, err, want)
			}
		}
		deployed(web)
		other := web
		other.Name = "other"
		if err := s.RecordEnds(t.Context(), []Workload{web, other}, minute(60).Time); err != nil {
			t.Fatal(err)
		}
		deployed()
		runs("before it was deleted", "m1=web-one m2=web-one", minute(59).Time)
		runs("after it was deleted", "", minute(61).Time)
		runs("now", "", time.Time{})
		// It is created again and released.
		record(t, s, release("r2", 100, "web-two", releasev1alpha1.ReleaseSucceeded))
		deployed(web)
		runs("between the two", "", minute(90).Time)
		runs("created again", "m1=web-two m2=web-two", time.Time{})
	})
}

func TestDORACountsStagesAndFailures(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *Store) {
		record(t, s, history()...)
		failed := release("r3", 200, "web-three", releasev1alpha1.ReleaseRolledBack)
		failed.Status.Rollback = &releasev1alpha1.ReleaseRollbackStatus{StartedAt: *minute(210)}
		failed.Status.Stages[1].Phase = releasev1alpha1.StageFailed
		record(t, s, failed)
		d, err := s.DORA(t.Context(), Filter{Environment: "prod", Since: noon, Until: noon.Add(24 * time.Hour)})
		if err != nil {
			t.Fatal(err)
		}
		if d.Deployments != 2 || d.Started != 3 || d.Failed != 1 || d.PerDay != 2 {
			t.Errorf("counts are %+v", d)
		}
		if d.LeadTimeMedian != 45*60 || d.RecoveryMedian != 10*60 {
			t.Errorf("durations are %+v", d)
		}
	})
}

func TestLeadTimeIsFromTheStartOfAReleaseWithoutACommitTime(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *Store) {
		all := history()
		for _, obj := range all {
			if r, ok := obj.(*releasev1alpha1.Release); ok {
				r.Spec.Change.CommittedAt = nil
			}
		}
		record(t, s, all...)
		d, err := s.DORA(t.Context(), Filter{Environment: "prod", Since: noon, Until: noon.Add(24 * time.Hour)})
		if err != nil {
			t.Fatal(err)
		}
		if d.LeadTimeMedian != 14*60 || d.LeadTimesFromStart != 2 {
			t.Errorf("the lead time is %d s, %d of them from the start", d.LeadTimeMedian, d.LeadTimesFromStart)
		}
	})
}

func TestOldRowsAreDeletedWhenTheirReleaseEnded(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *Store) {
		record(t, s, history()...)
		running := release("r3", 0, "web-three", releasev1alpha1.ReleaseRunning)
		running.Status.EndedAt = nil
		record(t, s, running)
		later := noon.Add(1000 * time.Hour)
		if err := s.Delete(t.Context(), Retention{Details: time.Hour, Releases: 10000 * time.Hour, Revisions: 1},
			later); err != nil {
			t.Fatal(err)
		}
		for uid, want := range map[string]int{"r1": 0, "r3": 2} {
			if events, err := s.Events(t.Context(), uid); err != nil || len(events) != want {
				t.Errorf("%s has %d events, want %d: %v", uid, len(events), want, err)
			}
		}
		if err := s.Delete(t.Context(), Retention{Releases: time.Hour}, later); err != nil {
			t.Fatal(err)
		}
		found, err := s.Releases(t.Context(), Filter{})
		var left []string
		for _, r := range found {
			left = append(left, r.UID)
		}
		slices.Sort(left)
		// r2 brought what runs in m1 and m2, and r3 has not ended.
		if err != nil || !slices.Equal(left, []string{"r2", "r3"}) {
			t.Errorf("%v is left: %v", left, err)
		}
		ran, err := s.Deployments(t.Context(), Filter{}, time.Time{})
		if err != nil || len(ran) != 2 {
			t.Errorf("%v runs: %v", ran, err)
		}
	})
}

func TestOldRevisionsOfNoReleaseAreDeleted(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *Store) {
		for i := range 5 {
			r := revision(fmt.Sprintf("web-%d", i), fmt.Sprintf("shop/web:%d", i))
			r.CreationTimestamp = *minute(i)
			record(t, s, r)
		}
		record(t, s, release("r1", 0, "web-1", releasev1alpha1.ReleaseSucceeded))
		if err := s.Delete(t.Context(), Retention{Details: time.Hour, Releases: time.Hour, Revisions: 2},
			noon); err != nil {
			t.Fatal(err)
		}
		for table, want := range map[string]string{"revisions": "web-1 web-3 web-4", "revision_images": "web-1 web-3 web-4"} {
			var got []string
			if err := s.query(t.Context(), "SELECT revision FROM "+table+" ORDER BY revision", nil,
				func(rows *sql.Rows) error {
					var name string
					err := rows.Scan(&name)
					got = append(got, name)
					return err
				}); err != nil {
				t.Fatal(err)
			}
			if strings.Join(got, " ") != want {
				t.Errorf("%s has %v, want %s", table, got, want)
			}
		}
	})
}

// Two hubs may write one release at a change of the leader.
func TestOlderStateAddsEventsAndChangesNothing(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *Store) {
		record(t, s, release("r1", 0, "web-one", releasev1alpha1.ReleaseSucceeded))
		older := release("r1", 0, "web-one", releasev1alpha1.ReleaseRunning)
		older.ResourceVersion = "9"
		older.Status.Stages[1].Phase = releasev1alpha1.StageUpdating
		older.Status.Journal = append(older.Status.Journal, releasev1alpha1.ReleaseJournalEntry{Seq: 3, At: *minute(9),
			Type: releasev1alpha1.JournalStage, Reason: "Late"})
		record(t, s, older)
		found, err := s.Releases(t.Context(), Filter{})
		if err != nil || len(found) != 1 || found[0].Phase != "Succeeded" {
			t.Errorf("the releases are %+v, %v", found, err)
		}
		if all := dump(t, s); strings.Contains(all, "Updating") || !strings.Contains(all, "Late") {
			t.Errorf("the rows are\n%s", all)
		}
	})
}

// A status write of a release over a thousand clusters changes a few rows.
func TestOnlyChangedRowsOfAReleaseAreWritten(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *Store) {
		r := release("a", 0, "web-1", releasev1alpha1.ReleaseRunning)
		next := r.DeepCopy()
		next.ResourceVersion = "11"
		next.Status.Stages[1].Phase = releasev1alpha1.StageChecking
		next.Status.Journal = append(next.Status.Journal, releasev1alpha1.ReleaseJournalEntry{Seq: 3, At: *minute(9),
			Type: releasev1alpha1.JournalStage, Stage: "prod", Reason: "Soaked"})
		tables := func(r *releasev1alpha1.Release) (names []string) {
			for _, row := range s.changed(t.Context(), r, releaseRows(r)) {
				names = append(names, row.table.name)
			}
			return names
		}
		if n := len(tables(r)); n != len(releaseRows(r)) {
			t.Errorf("%d rows of a new release are written, want all", n)
		}
		record(t, s, r)
		if got := fmt.Sprint(tables(r)); got != "[releases]" {
			t.Errorf("the same state writes rows of %s", got)
		}
		const want = "[releases stages stage_clusters events]"
		if got := fmt.Sprint(tables(next)); got != want {
			t.Errorf("the next state writes rows of %s, want %s", got, want)
		}
		// Another hub has written in between.
		other := next.DeepCopy()
		other.ResourceVersion = "12"
		if _, err := s.upsertState(t.Context(), releaseRows(other)); err != nil {
			t.Fatal(err)
		}
		if n := len(tables(next)); n != len(releaseRows(next)) {
			t.Errorf("after a write of another hub, %d rows are written, want all", n)
		}
		record(t, s, other)
		other.Status.Phase = releasev1alpha1.ReleaseSucceeded
		record(t, s, other)
		if len(s.written.states) > 0 {
			t.Error("the store remembers a release that has ended")
		}
		control := openSQLite(t, t.TempDir())
		record(t, control, other)

		// A release that is deleted before it ended is not written again.
		deleted := release("b", 0, "web-1", releasev1alpha1.ReleaseRunning)
		record(t, s, deleted)
		deleted.DeletionTimestamp = minute(10)
		record(t, s, deleted)
		record(t, control, deleted)
		if len(s.written.states) > 0 {
			t.Error("the store remembers a release that was deleted")
		}
		if got, want := dump(t, s), dump(t, control); got != want {
			t.Errorf("the database has\n%s\nwant\n%s", got, want)
		}
	})
}

// After the hub is restored from a backup, a release has the same numbers a second time.
func TestEventsOfARestoredReleaseAreKeptBesideThoseBefore(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *Store) {
		record(t, s, release("r1", 0, "web-one", releasev1alpha1.ReleaseSucceeded))
		restored := release("r1", 0, "web-one", releasev1alpha1.ReleaseRunning)
		restored.ResourceVersion = "1000000005"
		restored.Status.Journal[1].At, restored.Status.Journal[1].Reason = *minute(600), "Failed"
		record(t, s, restored)
		events, err := s.Events(t.Context(), "r1")
		if err != nil || len(events) != 3 || events[1].Seq != 2 || events[2].Seq != 2 || events[2].Reason != "Failed" {
			t.Errorf("the events are %+v, %v", events, err)
		}
	})
}

// Events are in the order of their numbers, also if the clock was set back.
func TestEventsAreInTheOrderOfTheirNumbers(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *Store) {
		r := release("r1", 0, "web-one", releasev1alpha1.ReleaseRunning)
		r.Status.Journal[1].At = *minute(-500)
		record(t, s, r)
		events, err := s.Events(t.Context(), "r1")
		if err != nil || len(events) != 2 || events[0].Seq != 1 || events[1].Seq != 2 {
			t.Errorf("the events are %+v, %v", events, err)
		}
	})
}

// A release over many clusters has more rows than one statement takes.
func TestReleaseOfAThousandClustersIsRecorded(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *Store) {
		r := release("r1", 0, "web-one", releasev1alpha1.ReleaseSucceeded)
		for i := range 1000 {
			r.Status.Stages[0].ClusterNames = append(r.Status.Stages[0].ClusterNames, fmt.Sprintf("c%d", i))
		}
		record(t, s, r)
		ran, err := s.Deployments(t.Context(), Filter{Limit: MaxLimit}, time.Time{})
		if err != nil || len(ran) != 1002 {
			t.Errorf("it runs in %d clusters, %v", len(ran), err)
		}
	})
}

func TestTextsAreStoredWhateverTheyContain(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *Store) {
		r := release("r1", 0, "x", releasev1alpha1.ReleaseRunning)
		r.Spec.Change.Reason = "\x00 $1 ? '; DROP TABLE events; --"
		record(t, s, r)
		found, err := s.Releases(t.Context(), Filter{})
		if err != nil || len(found) != 1 || found[0].Reason != "\uFFFD $1 ? '; DROP TABLE events; --" {
			t.Errorf("the releases are %+v, %v", found, err)
		}
	})
}

// The database is not encrypted, and pods and overrides can have secrets.
func TestPodsAndOverridesAreNotStored(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *Store) {
		plain, r := revision("web-one", "shop/web:1"), revision("web-one", "shop/web:1")
		record(t, s, plain)
		want := dump(t, s)
		secret := &runtime.RawExtension{Raw: []byte(`{"env":[{"name":"TOKEN","value":"hunter2"}]}`)}
		r.Spec.Pods = []releasev1alpha1.RevisionField{{Path: "spec.template", Value: secret}}
		r.Spec.Overrides = []releasev1alpha1.RevisionOverride{{Kind: "OverridePolicy", Name: "env", Spec: *secret}}
		record(t, s, r)
		var archive bytes.Buffer
		if _, err := s.Export(t.Context(), &archive); err != nil {
			t.Fatal(err)
		}
		if got := dump(t, s); got != want || strings.Contains(archive.String(), "hunter2") {
			t.Errorf("the rows are\n%s\nwant\n%s\nthe archive is\n%s", got, want, &archive)
		}
	})
}

// One object that the database refuses does not keep the recorder from others.
func TestRefusedObjectIsNoFailureOfTheDatabase(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *Store) {
		err := s.upsert(t.Context(), []row{{eventsTable, []any{"no-release", 1, "", "", "", "", "", "", ""}}})
		if !IsOfObject(err) {
			t.Errorf("an event of no release returns %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := s.RecordRelease(ctx, release("r1", 0, "x", releasev1alpha1.ReleaseRunning)); err == nil ||
			IsOfObject(err) {
			t.Errorf("a write that was canceled returns %v", err)
		}
	})
}

func TestErrorsOfPostgresAreOfTheObjectOrOfTheDatabase(t *testing.T) {
	for code, want := range map[string]bool{
		"22001": true, "23503": true, "21000": true, "54000": true, // a long index entry is 54000
		"08006": false, "53100": false, "57014": false, "57P01": false, "58030": false, "40001": false, "40P01": false,
		"25006": false, "42501": false, "42P01": false, "XX002": false,
	} {
		err := fmt.Errorf("write the release history: %w", &pgconn.PgError{Code: code})
		if got := IsOfObject(err); got != want {
			t.Errorf("%s is of the object: %t, want %t", code, got, want)
		}
		if IsOfObject(fmt.Errorf("%w: %w", ErrUnavailable, err)) {
			t.Errorf("%s is of the object although the database cannot be opened", code)
		}
	}
}

func TestVeryLongNamesOfImagesAreLeftOut(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *Store) {
		r := revision("web-one", strings.Repeat("x", longestImage+1))
		r.Spec.Images = append(r.Spec.Images, strings.Repeat("y", longestImage))
		record(t, s, r)
		if all := dump(t, s); strings.Contains(all, "xx") || !strings.Contains(all, strings.Repeat("y", longestImage)) {
			t.Errorf("the rows are\n%s", all)
		}
	})
}

func TestHistoryLeavesRoomOnTheDisk(t *testing.T) {
	s := openSQLite(t, t.TempDir())
	var room int64 = reserve - 1
	s.free = func() (int64, error) { return room, nil }
	if err := s.RecordRelease(t.Context(), release("r1", 0, "x", releasev1alpha1.ReleaseRunning)); !errors.Is(err,
		ErrDiskFull) {
		t.Errorf("recording returns %v", err)
	}
	if err := s.Backup(t.Context(), noon); !errors.Is(err, ErrDiskFull) {
		t.Errorf("the nightly copy returns %v", err)
	}
	if found, err := s.Releases(t.Context(), Filter{}); err != nil || len(found) != 0 {
		t.Errorf("the releases are %v, %v", found, err)
	}
	room = reserve
	record(t, s, release("r1", 0, "x", releasev1alpha1.ReleaseRunning))
}

func TestLockedDatabaseIsNotTakenForADamagedOne(t *testing.T) {
	dir := t.TempDir()
	s := openSQLite(t, dir)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if damaged, err := isDamaged(ctx, s.path); damaged || err == nil {
		t.Errorf("a check that did not end says damaged %t, %v", damaged, err)
	}
	if damaged, err := isDamaged(t.Context(), s.path); damaged || err != nil {
		t.Errorf("a check beside another connection says damaged %t, %v", damaged, err)
	}
}

// Another process holds the database for longer than a write waits. The same rows are taken when it is free.
func TestLockedDatabaseTakesTheRowsWhenItIsFree(t *testing.T) {
	s := openSQLite(t, t.TempDir())
	if _, err := s.write.ExecContext(t.Context(), "PRAGMA busy_timeout = 1"); err != nil {
		t.Fatal(err)
	}
	other, err := openFile(s.path, "rw")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	held, err := other.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	r := release("r1", 0, "x", releasev1alpha1.ReleaseRunning)
	if err := s.RecordRelease(t.Context(), r); err == nil || IsOfObject(err) {
		t.Errorf("a write to a locked database returns %v", err)
	}
	if err := held.Rollback(); err != nil {
		t.Fatal(err)
	}
	record(t, s, r)
	if found, err := s.Releases(t.Context(), Filter{}); err != nil || len(found) != 1 {
		t.Errorf("the releases are %v, %v", found, err)
	}
}

// A database that is slower than a write may be counts as one that does not answer.
func TestSlowDatabaseTakesTheRowsLater(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *Store) {
		r := release("r1", 0, "x", releasev1alpha1.ReleaseRunning)
		usual := statementTimeout
		statementTimeout = time.Nanosecond
		err := s.RecordRelease(t.Context(), r)
		statementTimeout = usual
		if !errors.Is(err, context.DeadlineExceeded) || IsOfObject(err) {
			t.Errorf("a write that takes too long returns %v", err)
		}
		record(t, s, r)
		if found, err := s.Releases(t.Context(), Filter{}); err != nil || len(found) != 1 {
			t.Errorf("the releases are %v, %v", found, err)
		}
	})
}

// The file is deleted while the hub runs: the next write opens a new one, and the recorder writes all objects again.
func TestDeletedFileIsOpenedAgainFromTheNewestCopy(t *testing.T) {
	dir := t.TempDir()
	source := NewSource(func(ctx context.Context) (*Store, error) { return OpenSQLite(ctx, dir) })
	t.Cleanup(func() { _ = source.Close() })
	s, opened, err := source.Store(t.Context())
	if err != nil || opened != 1 {
		t.Fatalf("opened %d times, %v", opened, err)
	}
	record(t, s, history()...)
	if err := s.Backup(t.Context(), noon); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(s.path); err != nil {
		t.Fatal(err)
	}
	s, opened, err = source.Store(t.Context())
	if err != nil || opened != 2 {
		t.Fatalf("opened %d times, %v", opened, err)
	}
	if found, err := s.Releases(t.Context(), Filter{}); err != nil || len(found) != 2 {
		t.Errorf("the releases are %v, %v", found, err)
	}
	gaps, err := s.Gaps(t.Context())
	if err != nil || len(gaps) != 1 || !strings.Contains(gaps[0], "after 2026-03-01T00:00:00Z") {
		t.Errorf("the gaps are %q, %v", gaps, err)
	}
}

// The rows of a history that was lost and written again are those of one that was not.
func TestHistoryThatIsWrittenAgainIsTheSame(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *Store) {
		control := openSQLite(t, t.TempDir())
		record(t, control, history()...)
		// Each object more than once, and in another order.
		objects := append(history(), history()...)
		slices.Reverse(objects)
		record(t, s, objects...)
		if want, got := dump(t, control), dump(t, s); got != want {
			t.Errorf("the rows are\n%s\nwant\n%s", got, want)
		}
	})
}

func TestDamagedFileIsReplacedByTheNewestCopy(t *testing.T) {
	dir := t.TempDir()
	s := openSQLite(t, dir)
	record(t, s, history()...)
	for day := range copies + 2 {
		if err := s.Backup(t.Context(), noon.Add(time.Duration(day)*24*time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	if kept := backups(s.path); len(kept) != copies || filepath.Base(kept[0]) != "history-2026-03-09.db" {
		t.Errorf("the copies are %v", kept)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	damage(t, filepath.Join(dir, File))
	damage(t, filepath.Join(dir, "history-2026-03-09.db"))

	s = openSQLite(t, dir)
	if r := s.Restored(); r.Moved == "" || filepath.Base(r.From) != "history-2026-03-08.db" {
		t.Errorf("restored %+v", r)
	}
	if found, err := s.Releases(t.Context(), Filter{}); err != nil || len(found) != 2 {
		t.Errorf("%d releases are there: %v", len(found), err)
	}
}

func TestDamagedFileWithoutCopyIsReplacedByAnEmptyOne(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, File), []byte("this is not a database, "+strings.Repeat("x", 5000)),
		0o600); err != nil {
		t.Fatal(err)
	}
	s := openSQLite(t, dir)
	if r := s.Restored(); r.Moved == "" || r.From != "" {
		t.Errorf("restored %+v", r)
	}
	if gaps, err := s.Gaps(t.Context()); err != nil || len(gaps) != 1 {
		t.Errorf("the gaps are %q, %v", gaps, err)
	}
	record(t, s, history()...)
}

// The disk is that of the hub's own store.
func TestCopyThatDoesNotFitIsNotRestored(t *testing.T) {
	dir := t.TempDir()
	s := openSQLite(t, dir)
	record(t, s, history()...)
	if err := errors.Join(s.Backup(t.Context(), noon), s.Close()); err != nil {
		t.Fatal(err)
	}
	damage(t, s.path)
	copied := backups(s.path)[0]
	info, err := os.Stat(copied)
	if err != nil {
		t.Fatal(err)
	}
	room := reserve + info.Size() - 1
	free := func() (int64, error) { return room, nil }
	s, err = openSQLiteIn(t.Context(), dir, free)
	if err != nil {
		t.Fatal(err)
	}
	if r := s.Restored(); r.Moved == "" || r.From != "" || r.NoRoom != copied {
		t.Errorf("restored %+v", r)
	}
	if gaps, err := s.Gaps(t.Context()); err != nil || len(gaps) != 1 {
		t.Errorf("the gaps are %q, %v", gaps, err)
	}
	record(t, s, history()...)
	if err := errors.Join(s.Close(), os.Remove(s.path)); err != nil {
		t.Fatal(err)
	}
	room++
	if s, err = openSQLiteIn(t.Context(), dir, free); err != nil {
		t.Fatal(err)
	}
	if r := s.Restored(); r.From != copied || r.NoRoom != "" {
		t.Errorf("with room, restored %+v", r)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestCopyThatFailsLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	to := filepath.Join(dir, File)
	if err := copyFile(dir, to); err == nil { // a folder cannot be read
		t.Error("a folder was copied")
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) > 0 {
		t.Errorf("%v is left, %v", files, err)
	}
	if err := os.WriteFile(to+".part", []byte("of an attempt before"), 0o600); err != nil {
		t.Fatal(err)
	}
	openSQLite(t, dir)
	if _, err := os.Stat(to + ".part"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the rest of an attempt before is there: %v", err)
	}
}

// damage overwrites the middle of a file.
func damage(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte(strings.Repeat("\xff", int(info.Size())/2)), info.Size()/4); err != nil {
		t.Fatal(err)
	}
}

func TestDatabaseOfANewerReleaseIsOnlyRead(t *testing.T) {
	dir := t.TempDir()
	s := openSQLite(t, dir)
	record(t, s, history()...)
	if _, err := s.write.ExecContext(t.Context(),
		"INSERT INTO goose_db_version (version_id, is_applied) VALUES (99, 1)"); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openSQLite(t, dir)
	if err := s.RecordRevision(t.Context(), revision("web-new", "x")); !errors.Is(err, ErrNewer) {
		t.Errorf("a write returns %v", err)
	}
	if found, err := s.Releases(t.Context(), Filter{}); err != nil || len(found) != 2 {
		t.Errorf("the releases are %v, %v", found, err)
	}
}

func TestFilesAreReadableByTheirOwnerOnly(t *testing.T) {
	dir := t.TempDir()
	s := openSQLite(t, dir)
	record(t, s, history()...)
	if err := s.Backup(t.Context(), noon); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if info, err := f.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v: %v", f.Name(), info.Mode(), err)
		}
	}
}

func TestSourceTriesAgainAfterAFailure(t *testing.T) {
	now, opened := noon, 0
	fail := errors.New("connection refused")
	dir := t.TempDir()
	source := NewSource(func(ctx context.Context) (*Store, error) {
		opened++
		if opened < 3 {
			return nil, fail
		}
		return OpenSQLite(ctx, dir)
	})
	source.now = func() time.Time { return now }
	t.Cleanup(func() { _ = source.Close() })
	for range 3 {
		if _, _, err := source.Store(t.Context()); !errors.Is(err, ErrUnavailable) || !errors.Is(err, fail) {
			t.Errorf("the error is %v", err)
		}
	}
	if opened != 1 {
		t.Errorf("it was opened %d times within %v", opened, openRetry)
	}
	for range 2 {
		now = now.Add(openRetry)
		_, _, _ = source.Store(t.Context())
	}
	if _, _, err := source.Store(t.Context()); err != nil || opened != 3 {
		t.Errorf("after %d attempts: %v", opened, err)
	}
	if err := source.Close(); err != nil {
		t.Error(err)
	}
	if _, _, err := source.Store(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close, it returns %v", err)
	}
}

func TestHandlerAnswersOnlyWhatTheUserMayList(t *testing.T) {
	s := openSQLite(t, t.TempDir())
	record(t, s, history()...)
	source := NewSource(func(context.Context) (*Store, error) { return s, nil })
	handler := Handler(source, func(_ *http.Request, namespace string) error {
		if namespace == "shop" {
			return nil
		}
		return apierrors.NewForbidden(Resource, "", errors.New("user li cannot list releases"))
	}, func() time.Time { return noon.Add(24 * time.Hour) })
	for _, test := range []struct {
		path string
		code int
		want string
	}{
		{ReleasesPath + "?namespace=shop", http.StatusOK, `"name":"web-r2"`},
		{ReleasesPath + "?namespace=bank", http.StatusForbidden, "cannot list releases"},
		{ReleasesPath + "?namespace=shop&namespace=bank", http.StatusForbidden, "cannot list releases"},
		{ReleasesPath + "?namespace=", http.StatusForbidden, "cannot list releases"},
		{DeploymentsPath + "?namespace=bank", http.StatusForbidden, "cannot list releases"},
		{DORAPath + "?namespace=bank", http.StatusForbidden, "cannot list releases"},
		{ReleasesPath, http.StatusForbidden, "cannot list releases"},
		{EventsPath + "?namespace=shop&uid=r1", http.StatusOK, `"actor":"wang"`},
		{EventsPath + "?namespace=bank&uid=r1", http.StatusForbidden, "cannot list releases"},
		{EventsPath + "?namespace=shop&uid=r9", http.StatusNotFound, "r9"},
		{EventsPath + "?namespace=shop", http.StatusNotFound, "not found"},
		{DeploymentsPath + "?namespace=shop&image=" + url.QueryEscape("shop/web:2"), http.StatusOK, `"revision":"web-two"`},
		{DORAPath + "?namespace=shop&environment=prod", http.StatusOK, `"deployments":2`},
		{ReleasesPath + "?namespace=shop&since=yesterday", http.StatusBadRequest, "2026-01-02T15:04:05Z"},
		{ReleasesPath + "?namespace=shop&limit=-1", http.StatusBadRequest, "from 1 to 5000"},
	} {
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, test.path, nil))
		if answer.Code != test.code || !strings.Contains(answer.Body.String(), test.want) {
			t.Errorf("%s: %d %s, want %d with %s", test.path, answer.Code, answer.Body, test.code, test.want)
		}
	}
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, httptest.NewRequest(http.MethodDelete, ReleasesPath+"?namespace=shop", nil))
	if answer.Code != http.StatusMethodNotAllowed {
		t.Errorf("DELETE answers %d", answer.Code)
	}
}

func TestHandlerSaysThatTheDatabaseIsNotAvailable(t *testing.T) {
	source := NewSource(func(context.Context) (*Store, error) { return nil, errors.New("connection refused") })
	answer := httptest.NewRecorder()
	Handler(source, func(*http.Request, string) error { return nil }, time.Now).ServeHTTP(answer,
		httptest.NewRequest(http.MethodGet, ReleasesPath, nil))
	if answer.Code != http.StatusServiceUnavailable || !strings.Contains(answer.Body.String(), "connection refused") {
		t.Errorf("%d %s", answer.Code, answer.Body)
	}
}

func TestHandlerNamesWhatTheHistoryMayLack(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, File), []byte(strings.Repeat("not a database ", 500)), 0o600); err != nil {
		t.Fatal(err)
	}
	source := NewSource(func(ctx context.Context) (*Store, error) { return OpenSQLite(ctx, dir) })
	t.Cleanup(func() { _ = source.Close() })
	source.Note = "another hub has the rest"
	answer := httptest.NewRecorder()
	Handler(source, func(*http.Request, string) error { return nil }, time.Now).ServeHTTP(answer,
		httptest.NewRequest(http.MethodGet, ReleasesPath, nil))
	warnings := strings.Join(answer.Header()["Warning"], "\n")
	if answer.Code != http.StatusOK || !strings.Contains(warnings, "the release history is incomplete before") ||
		!strings.Contains(warnings, "another hub has the rest") {
		t.Errorf("%d, warnings %q", answer.Code, warnings)
	}
}

func TestHandlerOfAHubWithoutHistoryRefuses(t *testing.T) {
	answer := httptest.NewRecorder()
	Handler(nil, func(*http.Request, string) error { return nil }, time.Now).ServeHTTP(answer,
		httptest.NewRequest(http.MethodGet, ReleasesPath, nil))
	if answer.Code != http.StatusServiceUnavailable || !strings.Contains(answer.Body.String(), "--history-dsn") {
		t.Errorf("%d %s", answer.Code, answer.Body)
	}
}
