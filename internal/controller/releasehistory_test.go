package controller

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	releasehistory "github.com/argosy-io/argosy/internal/history"
	"github.com/argosy-io/argosy/test/kit/controllertest"
)

// recordedRun is the result of a release with a history.
type recordedRun struct {
	// members have the images and partitions of each member in order.
	members []string
	// rows are the release, its journal and what runs where, without UIDs and times.
	rows string
	// reasons are those of the condition Recorded in order.
	reasons []string
	writes  int
}

// disturbance does something to the database or the hub.
type disturbance func(w *releaseWorld, step int, dir string, down *atomic.Bool)

// runRecorded runs a release for a minute. Each 2 seconds, disturb may do something to the database or the hub.
func runRecorded(t *testing.T, disturb disturbance) (run recordedRun) {
	controllertest.Run(t, func(t *testing.T) {
		dir, down := t.TempDir(), &atomic.Bool{}
		w := newRecordedWorld(t, func() *releasehistory.Source {
			return releasehistory.NewSource(func(ctx context.Context) (*releasehistory.Store, error) {
				if down.Load() {
					return nil, errors.New("connection refused")
				}
				return releasehistory.OpenSQLite(ctx, dir)
			})
		})
		r := w.release("r1", oneTwoSeven)
		for step := range 30 {
			w.pass(2 * time.Second)
			if disturb != nil {
				disturb(w, step, dir, down)
			}
			if !w.HasObject(r) {
				t.Fatal("the release does not exist")
			}
			if c := meta.FindStatusCondition(r.Status.Conditions, releasev1alpha1.ReleaseRecorded); c != nil &&
				(len(run.reasons) == 0 || run.reasons[len(run.reasons)-1] != c.Reason) {
				run.reasons = append(run.reasons, c.Reason)
			}
		}
		w.pass(2 * time.Minute) // the longest time between two attempts
		w.expect("in the end", r, releasev1alpha1.ReleaseSucceeded, releasev1alpha1.ReasonCompleted)
		if c := meta.FindStatusCondition(r.Status.Conditions, releasev1alpha1.ReleaseRecorded); c != nil &&
			run.reasons[len(run.reasons)-1] != c.Reason {
			run.reasons = append(run.reasons, c.Reason)
		}
		for _, m := range w.members {
			run.members = append(run.members, m.name+": "+strings.Join(m.seen, ", "))
		}
		run.writes = count(w.Quiet())["update releases/status"]
		w.stop()
		run.rows = rowsOf(t, dir, string(r.UID))
	})
	return run
}

// rowsOf returns what a database has of a release.
func rowsOf(t *testing.T, dir, uid string) string {
	t.Helper()
	s, err := releasehistory.OpenSQLite(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	releases, err := s.Releases(t.Context(), releasehistory.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	events, err := s.Events(t.Context(), uid)
	if err != nil {
		t.Fatal(err)
	}
	ran, err := s.Deployments(t.Context(), releasehistory.Filter{}, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.MarshalIndent([]any{releases, events, ran}, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return times.ReplaceAllString(strings.ReplaceAll(string(raw), uid, "UID"), "TIME")
}

// times are the times that a restart of the hub delays.
var times = regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:]+Z`)

// Whatever happens to the database or to the hub, the release takes the same steps, and the history has the same rows
// in the end.
func TestReleaseIsTheSameWhateverHappensToItsHistory(t *testing.T) {
	if testing.Short() {
		t.Skip("in the long suite: make test-long")
	}
	control := runRecorded(t, nil)
	if !slices.Equal(control.reasons, []string{releasev1alpha1.ReasonStored}) {
		t.Errorf("the reasons of Recorded are %v", control.reasons)
	}
	if control.writes > 2+3*3 {
		t.Errorf("with a history, the status was written %d times, want at most 11", control.writes)
	}
	if strings.Count(control.rows, `"seq"`) < 10 || strings.Count(control.rows, `"cluster": "m`) != 3 {
		t.Errorf("the history has\n%s", control.rows)
	}
	for name, test := range map[string]struct {
		disturb disturbance
		reasons []string
		// writes are those beside two, and three for each stage.
		writes int
	}{
		"the file is deleted": {func(w *releaseWorld, step int, dir string, _ *atomic.Bool) {
			if step == 8 {
				for _, file := range []string{releasehistory.File, releasehistory.File + "-wal", releasehistory.File + "-shm"} {
					if err := os.Remove(filepath.Join(dir, file)); err != nil && !errors.Is(err, os.ErrNotExist) {
						w.t.Fatal(err)
					}
				}
			}
		}, []string{releasev1alpha1.ReasonStored}, 0},
		"the hub is restarted often": {func(w *releaseWorld, step int, _ string, _ *atomic.Bool) {
			if step%4 == 1 {
				w.stop()
				w.start()
			}
		}, []string{releasev1alpha1.ReasonStored}, 0},
		"the database does not answer after a restart": {func(w *releaseWorld, step int, _ string, down *atomic.Bool) {
			switch step {
			case 2:
				w.stop()
				down.Store(true)
				w.start()
			case 25:
				down.Store(false)
			}
		}, []string{releasev1alpha1.ReasonStored, releasev1alpha1.ReasonDatabaseUnavailable,
			releasev1alpha1.ReasonStored}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			got := runRecorded(t, test.disturb)
			if !slices.Equal(got.members, control.members) {
				t.Errorf("members got\n%q, want\n%q", got.members, control.members)
			}
			if got.rows != control.rows {
				t.Errorf("the history has\n%s\nwant\n%s", got.rows, control.rows)
			}
			if !slices.Equal(got.reasons, test.reasons) {
				t.Errorf("the reasons of Recorded are %v, want %v", got.reasons, test.reasons)
			}
			if want := 2 + 3*3 + test.writes; got.writes > want {
				t.Errorf("the status was written %d times, want at most %d", got.writes, want)
			}
		})
	}
}
