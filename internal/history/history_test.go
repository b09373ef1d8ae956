package history

import (
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

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func at(minutes int) *metav1.Time {
	return &metav1.Time{Time: noon.Add(time.Duration(minutes) * time.Minute)}
}

// release returns a release of the CloneSet web over two stages, begun at a minute.
func release(uid string, begin int, revision string, phase releasev1alpha1.ReleasePhase) *releasev1alpha1.Release {
	return &releasev1alpha1.Release{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-" + uid, UID: types.UID(uid),
			CreationTimestamp: *at(begin)},
		Spec: releasev1alpha1.ReleaseSpec{
			Targets: []releasev1alpha1.ReleaseTarget{{Name: "web", Ref: releasev1alpha1.ReleaseObjectReference{
				APIVersion: "apps.kruise.io/v1alpha1", Kind: "CloneSet", Name: "web"}}},
			StrategyRef: &releasev1alpha1.ReleaseStrategyReference{Name: "gray"},
			Change:      &releasev1alpha1.ReleaseChange{Commit: "abc", CommittedAt: at(begin - 30)},
			CreatedBy:   &releasev1alpha1.ReleaseUser{User: "li"},
		},
		Status: releasev1alpha1.ReleaseStatus{
			Phase: phase, StartedAt: at(begin + 1), EndedAt: at(begin + 20),
			Targets: []releasev1alpha1.ReleaseTargetStatus{{Name: "web", From: "web-old", To: revision}},
			Strategy: &releasev1alpha1.ReleaseStrategySpec{Stages: []releasev1alpha1.ReleaseStage{
				{Name: "test", Environment: "test"}, {Name: "prod", Environment: "prod"}}},
			Stages: []releasev1alpha1.ReleaseStageStatus{
				{Name: "test", Phase: releasev1alpha1.StageDone, Attempt: 1, ClusterNames: []string{"m1"},
					StartedAt: at(begin + 1), ReachedAt: at(begin + 5), EndedAt: at(begin + 6)},
				{Name: "prod", Phase: releasev1alpha1.StageDone, Attempt: 1, ClusterNames: []string{"m2", "m3"},
					Clusters: []releasev1alpha1.ReleaseClusterStatus{{Name: "m3", Workload: "web",
						Phase: releasev1alpha1.ClusterSkipped, Message: "not responding"}},
					Gates: []releasev1alpha1.ReleaseGateStatus{{Name: "owner", Position: releasev1alpha1.GateBefore,
						Phase: releasev1alpha1.GatePassed, By: []string{"wang"}, Since: at(begin + 6)}},
					StartedAt: at(begin + 8), ReachedAt: at(begin + 15), EndedAt: at(begin + 16)},
			},
			Journal: []releasev1alpha1.ReleaseJournalEntry{
				{Seq: 1, At: *at(begin + 1), Type: releasev1alpha1.JournalPhase, Reason: "Running"},
				{Seq: 2, At: *at(begin + 7), Type: releasev1alpha1.JournalGate, Stage: "prod", Actor: "wang", Reason: "Passed",
					Message: "Robert'); DROP TABLE releases;--"},
			},
		},
	}
}

func revision(name, image string) *releasev1alpha1.ReleaseRevision {
	return &releasev1alpha1.ReleaseRevision{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, CreationTimestamp: *at(0)},
		Spec: releasev1alpha1.ReleaseRevisionSpec{Hash: name, Images: []string{image},
			Target: releasev1alpha1.ReleaseObjectReference{APIVersion: "apps.kruise.io/v1alpha1", Kind: "CloneSet", Name: "web"}},
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
		s, err := OpenPostgres(t.Context(), startPostgres(t))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		test(t, s)
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
		eventsTable, revisionsTable, imagesTable, startsTable} {
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
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a", UID: "a1", CreationTimestamp: *at(7)},
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
			"author":                  {Filter{Author: "li"}, []string{"r2", "r1"}},
			"another author":          {Filter{Author: "' OR 1=1 --"}, nil},
			"cluster":                 {Filter{Cluster: "m2"}, []string{"r2", "r1"}},
			"since":                   {Filter{Since: at(50).Time}, []string{"r2"}},
			"until":                   {Filter{Until: at(50).Time}, []string{"r1"}},
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
			"before the first":      {Filter{}, at(2).Time, ""},
			"in the first stage":    {Filter{}, at(10).Time, "m1=web-one"},
			"after the first":       {Filter{}, at(50).Time, "m1=web-one m2=web-one"},
			"an image at that time": {Filter{Image: "shop/web:2"}, at(50).Time, ""},
			"between two":           {Filter{}, at(108).Time, "m1=web-two m2=web-one"},
			"an image":              {Filter{Image: "shop/web:2"}, at(150).Time, "m1=web-two m2=web-two"},
			"a cluster":             {Filter{Cluster: "m2"}, at(150).Time, "m2=web-two"},
			"before the rollback":   {Filter{}, at(216).Time, "m1=web-three m2=web-three"},
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

func TestDORACountsStagesAndFailures(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *Store) {
		record(t, s, history()...)
		failed := release("r3", 200, "web-three", releasev1alpha1.ReleaseRolledBack)
		failed.Status.Rollback = &releasev1alpha1.ReleaseRollbackStatus{StartedAt: *at(210)}
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

func TestOldRowsAreDeletedWhenTheirReleaseEnded(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *Store) {
		record(t, s, history()...)
		running := release("r3", 0, "web-three", releasev1alpha1.ReleaseRunning)
		running.Status.EndedAt = nil
		record(t, s, running)
		later := noon.Add(1000 * time.Hour)
		if err := s.Delete(t.Context(), Retention{Details: time.Hour, Releases: 10000 * time.Hour}, later); err != nil {
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
		if err != nil || len(found) != 1 || found[0].UID != "r3" {
			t.Errorf("%v is left: %v", found, err)
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
	record(t, s, history()...)
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

func TestDatabaseOfANewerReleaseIsRefused(t *testing.T) {
	dir := t.TempDir()
	s := openSQLite(t, dir)
	if _, err := s.write.ExecContext(t.Context(),
		"INSERT INTO goose_db_version (version_id, is_applied) VALUES (99, 1)"); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenSQLite(t.Context(), dir); !errors.Is(err, ErrNewer) {
		t.Errorf("opening it returns %v", err)
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
		if _, err := source.Store(t.Context()); !errors.Is(err, ErrUnavailable) || !errors.Is(err, fail) {
			t.Errorf("the error is %v", err)
		}
	}
	if opened != 1 {
		t.Errorf("it was opened %d times within %v", opened, openRetry)
	}
	for range 2 {
		now = now.Add(openRetry)
		_, _ = source.Store(t.Context())
	}
	if _, err := source.Store(t.Context()); err != nil || opened != 3 {
		t.Errorf("after %d attempts: %v", opened, err)
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
