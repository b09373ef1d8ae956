package history

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/history"
	"github.com/argosy-io/argosy/test/kit/controllertest"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

// world is a hub with a recorder, whose database can fail.
type world struct {
	*controllertest.Hub
	t    *testing.T
	dir  string
	down atomic.Bool
	stop func()
	*history.Source
}

func newWorld(t *testing.T) *world {
	w := &world{Hub: controllertest.New(t), t: t, dir: t.TempDir()}
	w.start()
	return w
}

// start runs a recorder, as a new process of the hub.
func (w *world) start() {
	w.Source = history.NewSource(func(ctx context.Context) (*history.Store, error) {
		if w.down.Load() {
			return nil, errors.New("connection refused")
		}
		return history.OpenSQLite(ctx, w.dir)
	})
	w.run(w.Source)
}

func (w *world) run(source *history.Source) {
	stop := w.Run(func(_ context.Context, mgr ctrl.Manager) error {
		return Setup(mgr, Options{Source: source, Progress: &Progress{}})
	})
	closed := false
	w.stop = func() {
		stop()
		if source != nil && !closed {
			closed = true
			if err := source.Close(); err != nil {
				w.t.Error(err)
			}
		}
	}
	w.t.Cleanup(w.stop)
}

// running makes a release with journal entries, as admission and the release controller leave it.
func (w *world) running(name string, entries int) *releasev1alpha1.Release {
	w.t.Helper()
	r := &releasev1alpha1.Release{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name,
		CreationTimestamp: metav1.Now(), Finalizers: []string{releasev1alpha1.RecordedFinalizer}},
		Spec: releasev1alpha1.ReleaseSpec{StrategyRef: &releasev1alpha1.ReleaseStrategyReference{Name: "any"},
			Targets: []releasev1alpha1.ReleaseTarget{{Name: "web",
				Ref: releasev1alpha1.ReleaseObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"},
				To:  releasev1alpha1.ReleaseRevisionSource{Revision: "web-2"}}}}}
	w.Make(r)
	w.journal(r, entries)
	return r
}

// journal lets a release have a number of journal entries.
func (w *world) journal(r *releasev1alpha1.Release, entries int) {
	w.t.Helper()
	w.read(r)
	r.Status.Phase = releasev1alpha1.ReleaseRunning
	for i := len(r.Status.Journal); i < entries; i++ {
		r.Status.Journal = append(r.Status.Journal, releasev1alpha1.ReleaseJournalEntry{Seq: int64(i + 1),
			At: metav1.Time{Time: time.Now().Truncate(time.Second)}, Type: releasev1alpha1.JournalStage, Reason: "Test"})
	}
	if err := w.Status().Update(w.t.Context(), r); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) read(r *releasev1alpha1.Release) {
	w.t.Helper()
	if err := w.Get(w.t.Context(), client.ObjectKeyFromObject(r), r); err != nil {
		w.t.Fatal(err)
	}
}

// recorded waits until the history has a number of events of a release.
func (w *world) recorded(r *releasev1alpha1.Release, events int) {
	w.t.Helper()
	w.Eventually("the release is recorded", func() string {
		s, _, err := w.Store(w.t.Context())
		if err != nil {
			return err.Error()
		}
		found, err := s.Events(w.t.Context(), string(r.UID))
		if err != nil || len(found) != events {
			w.read(r)
			return fmt.Sprintf("the events are %v, %v; the conditions %+v", found, err, r.Status.Conditions)
		}
		return ""
	})
}

// condition waits until a release has the condition Recorded with a reason.
func (w *world) condition(r *releasev1alpha1.Release, reason string) {
	w.t.Helper()
	w.Eventually("the condition Recorded has the reason "+reason, func() string {
		w.read(r)
		if c := meta.FindStatusCondition(r.Status.Conditions, releasev1alpha1.ReleaseRecorded); c == nil ||
			c.Reason != reason {
			return "it is not so"
		}
		return ""
	})
}

func TestRecordingCostsNoWrite(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		r := w.running("web-1", 2)
		w.recorded(r, 2)
		w.Quiet()
		w.journal(r, 5)
		w.recorded(r, 5)
		if writes := w.Quiet(); len(writes) != 1 { // that of the test
			t.Errorf("the writes are %v", writes)
		}
		w.stop()
		w.start()
		w.recorded(r, 5)
		w.Advance(2 * time.Hour) // old rows and the nightly copy
		if writes := w.Quiet(); len(writes) > 0 {
			t.Errorf("after a restart, the writes are %v", writes)
		}
		if copies, _ := filepath.Glob(filepath.Join(w.dir, "history-*.db")); len(copies) != 1 {
			t.Errorf("the copies are %v", copies)
		}
	})
}

func TestFullJournalIsMarkedAsRecorded(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		r := w.running("web-1", 47)
		w.recorded(r, 47)
		w.Quiet()
		w.journal(r, 50)
		w.recorded(r, 50)
		if writes := w.Quiet(); len(writes) != 2 {
			t.Errorf("the writes are %v", writes)
		}
		if w.read(r); r.Status.RecordedSeq != 50 {
			t.Errorf("recordedSeq is %d", r.Status.RecordedSeq)
		}
	})
}

func TestDatabaseFailureIsReportedOnceUntilItIsOver(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		w.down.Store(true)
		r := w.running("web-1", 2)
		w.condition(r, releasev1alpha1.ReasonDatabaseUnavailable)
		if c := meta.FindStatusCondition(r.Status.Conditions, releasev1alpha1.ReleaseRecorded); !strings.Contains(c.Message,
			"connection refused") {
			t.Errorf("the message is %q", c.Message)
		}
		w.Quiet()
		w.Advance(10 * time.Minute)
		if writes := w.Quiet(); len(writes) > 0 {
			t.Errorf("while the database does not answer, the writes are %v", writes)
		}
		w.down.Store(false)
		w.Advance(time.Minute)
		w.condition(r, releasev1alpha1.ReasonStored)
		w.recorded(r, 2)
		if writes := w.Quiet(); len(writes) != 1 || r.Status.RecordedSeq != 2 {
			t.Errorf("the writes are %v, and recordedSeq is %d", writes, r.Status.RecordedSeq)
		}
	})
}

func TestDeletedReleaseIsRemovedOnceRecorded(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		w.down.Store(true)
		r := w.running("web-1", 3)
		w.Make(&releasev1alpha1.ReleaseApproval{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a",
			CreationTimestamp: metav1.Now()},
			Spec: releasev1alpha1.ReleaseApprovalSpec{Release: r.Name, ReleaseUID: r.UID, Stage: "prod", Gate: "sign",
				Verdict: releasev1alpha1.VerdictApprove}})
		w.Gone(r)
		w.Advance(5 * time.Minute)
		if !w.HasObject(r) {
			t.Fatal("the release went before it was recorded")
		}
		w.down.Store(false)
		w.Advance(2 * time.Minute)
		w.goes(r)
		w.recorded(r, 3)
	})
}

func TestWithoutHistoryADeletedReleaseGoesAtOnce(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := &world{Hub: controllertest.New(t), t: t}
		w.run(nil)
		r := w.running("web-1", 3)
		w.Gone(r)
		w.goes(r)
	})
}

// A process that ends between the insert and the mark writes the same rows again.
func TestRestartWritesNoRowTwice(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		r := w.running("web-1", 4)
		for range 3 {
			w.recorded(r, 4)
			w.stop()
			w.start()
		}
		w.recorded(r, 4)
		if w.read(r); r.Status.RecordedSeq != 0 {
			t.Errorf("recordedSeq is %d, which costs a write", r.Status.RecordedSeq)
		}
	})
}

func TestLostFileIsWrittenAgainWithAllReleases(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		first, second := w.running("web-1", 4), w.running("web-2", 2)
		w.recorded(first, 4)
		w.recorded(second, 2)
		w.loseFile()
		w.journal(second, 3) // the next thing that happens in any release
		w.recorded(second, 3)
		w.recorded(first, 4)
	})
}

// refused makes a release that the database refuses: an entry of its journal has no time. A real API server would not
// store it.
func (w *world) refused(name string) *releasev1alpha1.Release {
	w.t.Helper()
	w.Permit("status.journal[0].at: Required value")
	r := w.running(name, 0)
	r.Status.Journal = []releasev1alpha1.ReleaseJournalEntry{{Seq: 1, Type: releasev1alpha1.JournalStage,
		Reason: "Test"}}
	if err := w.Status().Update(w.t.Context(), r); err != nil {
		w.t.Fatal(err)
	}
	store, _, err := w.Store(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	if err := store.RecordRelease(w.t.Context(), r); !history.IsOfObject(err) {
		w.t.Fatalf("the database does not refuse the release: %v", err)
	}
	return r
}

func TestDeletedReleaseIsRemovedIfTheDatabaseRefusesIt(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		r := w.refused("web-1")
		w.Advance(time.Minute)
		w.Gone(r)
		w.Advance(2 * lastRetry)
		w.goes(r)
	})
}

func TestRefusedReleaseDoesNotKeepOthersFromALostFile(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		w.refused("web-0")
		first, second := w.running("web-1", 4), w.running("web-2", 2)
		w.recorded(first, 4)
		w.recorded(second, 2)
		w.loseFile()
		w.journal(second, 3)
		w.recorded(second, 3)
		w.recorded(first, 4)
		w.journal(first, 50) // so many that what is recorded is noted in the release
		w.Eventually("the release is noted as recorded", func() string {
			if w.read(first); first.Status.RecordedSeq != 50 {
				return fmt.Sprintf("recordedSeq is %d", first.Status.RecordedSeq)
			}
			return ""
		})
	})
}

func TestLossIsLoggedOnceAndNotWithEachUpkeep(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, history.File), []byte(strings.Repeat("not a database ", 500)),
			0o600); err != nil {
			t.Fatal(err)
		}
		source := history.NewSource(func(ctx context.Context) (*history.Store, error) { return history.OpenSQLite(ctx, dir) })
		if _, _, err := source.Store(t.Context()); err != nil {
			t.Fatal(err)
		}
		var logged atomic.Int32
		log := funcr.New(func(_, args string) {
			if strings.Contains(args, "was damaged or gone") {
				logged.Add(1)
			}
		}, funcr.Options{})
		ctx, stop := context.WithCancel(ctrl.LoggerInto(t.Context(), log))
		r := &recorder{client: controllertest.New(t), Options: Options{Source: source, Progress: &Progress{},
			Clock: clock.RealClock{}}}
		ended := make(chan error, 1)
		go func() { ended <- r.upkeep(ctx) }()
		membertest.Advance(5 * upkeepPeriod)
		stop()
		if err := errors.Join(<-ended, source.Close()); err != nil {
			t.Error(err)
		}
		if n := logged.Load(); n != 1 {
			t.Errorf("the loss is logged %d times", n)
		}
	})
}

func TestDeploymentsEndWithTheirWorkload(t *testing.T) {
	controllertest.Run(t, func(t *testing.T) {
		w := newWorld(t)
		bindings := map[string]*workv1alpha2.ResourceBinding{}
		for _, name := range []string{"web", "api"} {
			b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name + "-deployment"}}
			b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop",
				Name: name}
			w.Make(b)
			bindings[name] = b
			r := w.running("of-"+name, 1)
			r.Spec.Targets[0].Ref.Name = name
			if err := w.Update(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			now := metav1.Now()
			r.Status.Targets = []releasev1alpha1.ReleaseTargetStatus{{Name: "web", To: name + "-2"}}
			r.Status.Stages = []releasev1alpha1.ReleaseStageStatus{{Name: "all", Phase: releasev1alpha1.StageDone,
				ClusterNames: []string{"m1"}, StartedAt: &now, ReachedAt: &now}}
			if err := w.Status().Update(t.Context(), r); err != nil {
				t.Fatal(err)
			}
		}
		deployed := func(want string) {
			t.Helper()
			w.Eventually(want+" is deployed", func() string {
				s, _, err := w.Store(t.Context())
				if err != nil {
					return err.Error()
				}
				var names []string
				found, err := s.Deployed(t.Context())
				for _, one := range found {
					names = append(names, one.Name)
				}
				if got := strings.Join(names, " "); err != nil || got != want {
					return fmt.Sprintf("deployed is %s (%v)", got, err)
				}
				return ""
			})
		}
		deployed("api web")
		if err := w.Delete(t.Context(), bindings["web"]); err != nil {
			t.Fatal(err)
		}
		deployed("api")
		// A deletion that no hub sees counts when one starts.
		w.stop()
		if err := w.Delete(t.Context(), bindings["api"]); err != nil {
			t.Fatal(err)
		}
		w.start()
		membertest.Advance(2 * upkeepPeriod)
		deployed("")
	})
}

func TestUnrecordedEntriesAreCounted(t *testing.T) {
	p := &Progress{}
	r := &releasev1alpha1.Release{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u1"}}
	for seq := range int64(4) {
		r.Status.Journal = append(r.Status.Journal, releasev1alpha1.ReleaseJournalEntry{Seq: seq + 1})
	}
	p.note(r, nil)
	r.Status.Journal = append(r.Status.Journal, releasev1alpha1.ReleaseJournalEntry{Seq: 5},
		releasev1alpha1.ReleaseJournalEntry{Seq: 6})
	if has := p.note(r, errors.New("refused")); has.Seq != 4 || has.Failure != "refused" || p.unrecorded() != 2 {
		t.Errorf("the history has %+v, and lacks %d", has, p.unrecorded())
	}
	other := r.DeepCopy()
	other.UID = "u2"
	if has := p.HistoryOf(other); has.Seq != 0 {
		t.Errorf("of a later release of the name, the history has %+v", has)
	}
	p.forget(client.ObjectKeyFromObject(r))
	if n := p.unrecorded(); n != 0 {
		t.Errorf("after the release is gone, the history lacks %d", n)
	}
}

// loseFile deletes the database while the hub has it open.
func (w *world) loseFile() {
	w.t.Helper()
	for _, file := range []string{history.File, history.File + "-wal", history.File + "-shm"} {
		if err := os.Remove(filepath.Join(w.dir, file)); err != nil && !errors.Is(err, os.ErrNotExist) {
			w.t.Fatal(err)
		}
	}
}

// goes waits until a release is gone.
func (w *world) goes(r *releasev1alpha1.Release) {
	w.t.Helper()
	w.Eventually("the release is gone", func() string {
		if w.HasObject(r) {
			return "it is not"
		}
		return ""
	})
}
