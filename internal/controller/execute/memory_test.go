package execute

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	ocmv1 "github.com/argosy-io/argosy/api/ocm/work/v1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/builtin"
	"github.com/argosy-io/argosy/internal/member"
	"github.com/argosy-io/argosy/test/kit/controllertest"
	"github.com/argosy-io/argosy/test/kit/membertest"
)

// behind returns a hub that is written to at once and read as it was: a cache whose watch is late.
func behind(t *testing.T, h *controllertest.Hub) client.Client {
	t.Helper()
	c, err := client.NewWithWatch(h.Config, client.Options{Scheme: h.Scheme(), Mapper: h.RESTMapper()})
	if err != nil {
		t.Fatal(err)
	}
	first := map[client.ObjectKey]*workv1alpha1.Work{}
	return interceptor.NewClient(c, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object,
			opts ...client.GetOption) error {
			work, ok := obj.(*workv1alpha1.Work)
			if !ok {
				return c.Get(ctx, key, obj, opts...)
			}
			if first[key] == nil {
				first[key] = &workv1alpha1.Work{}
				if err := c.Get(ctx, key, first[key], opts...); err != nil {
					return err
				}
			}
			first[key].DeepCopyInto(work)
			return nil
		},
	})
}

// quietWorld has one member, and a reconciler that gets no events.
type quietWorld struct {
	*world
	r *reconciler
}

// newQuietWorld returns a quietWorld whose member serves the kinds and has the namespace shop.
func newQuietWorld(t *testing.T, clock clock.PassiveClock, kinds ...membertest.Kind) quietWorld {
	t.Helper()
	w := &world{Hub: controllertest.New(t), t: t}
	w.m1 = w.Join("m1", kinds...)
	w.m1.Put(namespace("shop"))
	w.members = member.New(member.Options{Clusters: w, Secrets: w, Dial: membertest.Dial})
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = w.members.Start(ctx) }()
	t.Cleanup(func() { stop(); <-ended })
	return quietWorld{w, w.newReconciler(w, clock)}
}

// newReconciler returns a reconciler that reads from c and remembers nothing.
func (w *world) newReconciler(c client.Client, clock clock.PassiveClock) *reconciler {
	return newReconciler(c, w, commit.Events{EventRecorder: record.NewFakeRecorder(10)},
		Options{Members: w.members, Interpreter: interpret.New(builtin.Tier()), Clock: clock})
}

// look reconciles a Work of the member and reports the result.
func (w quietWorld) look(work *workv1alpha1.Work) outcome {
	w.t.Helper()
	out := w.r.reconcile(w.t.Context(), "m1", client.ObjectKeyFromObject(work))
	if out.report != nil {
		out = out.report()
	}
	if out.err != nil {
		w.t.Fatal(out.err)
	}
	return out
}

func TestFinishedObjectOfNoWorkIsForgotten(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newQuietWorld(t, clocktesting.NewFakePassiveClock(time.Unix(1_800_000_000, 0)))
		work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: names.ExecutionSpace("m1"), Name: "gone"}}
		run := job(controllertest.Job)
		execute.Mark(run, work)
		run.Object["status"] = map[string]any{"succeeded": int64(1),
			"conditions": []any{map[string]any{"type": "Complete", "status": "True"}}}
		// It stayed in the member as an orphan, and is cleaned up now.
		w.r.triggers.memberEvent("m1", controllertest.Job.GroupVersion().WithResource("jobs"), run, nil)
		if len(w.r.memory.records) != 1 {
			t.Fatalf("the last states of %d finished objects are remembered, want 1", len(w.r.memory.records))
		}
		w.look(work)
		if n := len(w.r.memory.records); n > 0 {
			t.Errorf("%d objects without a Work are remembered", n)
		}
	})
}

// Objects that are not ours have no events.
func TestCreateOnlyRetriesWhileAnotherObjectExists(t *testing.T) {
	t.Parallel()
	controllertest.Run(t, func(t *testing.T) {
		w := newQuietWorld(t, clocktesting.NewFakePassiveClock(time.Unix(1_800_000_000, 0)))
		u := manifest(membertest.ConfigMap, "shop", "ours")
		theirs := manifest(membertest.ConfigMap, "shop", "theirs")
		w.m1.Put(theirs)
		work := w.work(u, func(work *workv1alpha1.Work) {
			work.Annotations = map[string]string{wellknown.UpdateStrategyAnnotation: string(ocmv1.UpdateStrategyCreateOnly)}
		})
		if out := w.look(work); out.after != foreignCheck {
			t.Errorf("it is to be looked at again in %s", out.after)
		}
		w.expectContent(u, "theirs")
		w.m1.Remove(membertest.ConfigMap, "shop", "c")
		if out := w.look(work); out.after != 0 {
			t.Errorf("once it is ours it is to be looked at again in %s", out.after)
		}
		w.expectContent(u, "ours")
	})
}

func TestLateCacheDoesNotRepeatAnApply(t *testing.T) {
	t.Parallel()
	for name, s := range scopes {
		t.Run(name, func(t *testing.T) {
			controllertest.Run(t, func(t *testing.T) {
				clock := clocktesting.NewFakePassiveClock(time.Unix(1_800_000_000, 0))
				w := newQuietWorld(t, clock, controllertest.ClusterRole)
				w.r = w.newReconciler(behind(t, w.Hub), clock)
				work := w.work(manifest(s.kind, s.namespace, "1"))
				w.Quiet()
				for range 3 {
					if out := w.look(work); out.after != 0 {
						t.Fatalf("it is to be looked at again in %s", out.after)
					}
				}
				if got := w.m1.Writes(); len(got) != 1 {
					t.Errorf("the member was written to: %v, want one creation", got)
				}
				if got := w.Quiet(); len(got) != 1 {
					t.Errorf("the hub was written to: %v, want one status", got)
				}
				if w.HasObject(work); !work.Status.Conditions[0].LastTransitionTime.Time.Equal(clock.Now()) {
					t.Errorf("the condition is dated %s, want %s", work.Status.Conditions[0].LastTransitionTime, clock.Now())
				}

				// The cache catches up, and nothing is kept any more.
				w.r.triggers.workChanged(nil, work)
				if w.r.memory.pending.Len() != 0 {
					t.Errorf("%d writes are remembered that the cache shows", w.r.memory.pending.Len())
				}
			})
		})
	}
}

// The cache receives our write just after it was read, and the pending write is forgotten.
func TestNewestIncludesAWriteReceivedMeanwhile(t *testing.T) {
	key := types.NamespacedName{Namespace: "argosy-es-m1", Name: "w"}
	work := func(version string) *workv1alpha1.Work {
		w := &workv1alpha1.Work{}
		w.Namespace, w.Name, w.UID, w.ResourceVersion = key.Namespace, key.Name, "1", version
		return w
	}
	r := &reconciler{memory: newMemory()}
	r.client = interceptor.NewClient(nil, interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, _ client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
			work("7").DeepCopyInto(obj.(*workv1alpha1.Work))
			r.memory.pending.Seen(key, work("8"))
			return nil
		},
	})
	r.memory.pending.Add(key, work("8"))
	if got, err := r.newest(t.Context(), key); err != nil || got.ResourceVersion != "8" {
		t.Errorf("got version %q, error %v, want what was written", got.ResourceVersion, err)
	}
	if r.memory.pending.Len() != 0 {
		t.Error("it is remembered though the cache shows it")
	}
}

func TestRemovedClusterHasNoWorkers(t *testing.T) {
	t.Parallel()
	done := make(chan string, 10)
	l := &lanes{
		workers: 2,
		clock:   clock.RealClock{},
		reconcile: func(_ context.Context, cluster string, _ types.NamespacedName) outcome {
			done <- cluster
			return outcome{}
		},
		stray: func(_ context.Context, cluster string, _ types.NamespacedName) outcome {
			done <- "stray of " + cluster
			return outcome{}
		},
	}
	key := types.NamespacedName{Namespace: names.ExecutionSpace("m1"), Name: "w"}
	l.add("m1", key) // before the start: not taken
	ctx, stop := context.WithCancel(context.Background())
	l.start(ctx)
	for _, step := range []struct {
		do   func()
		want string
	}{
		{func() { l.add("m1", key) }, "stray of m1"},
		{func() { l.register("m1", true); l.add("m1", key) }, "m1"},
		{func() { l.close("m1"); l.retry("m1", key) }, "stray of m1"},
		{func() { l.register("m1", true); l.add("m1", key) }, "m1"},
		// The cluster moves to Pull mode and back. In between, this process does nothing there.
		{func() {
			l.register("m1", false)
			l.retry("m1", key)
			l.retryFailed("m1", key)
			if len(l.open) != 0 {
				t.Errorf("%d lanes are open for a cluster in which this process does not act", len(l.open))
			}
			l.register("m1", true)
			l.add("m1", types.NamespacedName{Namespace: key.Namespace, Name: "after"})
		}, "m1"},
		{func() { l.close("m1"); l.retry("m1", key) }, "stray of m1"},
	} {
		step.do()
		select {
		case got := <-done:
			if got != step.want {
				t.Errorf("worked on as %q, want %q", got, step.want)
			}
		case <-time.After(controllertest.Timeout):
			t.Fatalf("nobody worked on it, want %q", step.want)
		}
	}
	if len(l.open) != 0 {
		t.Errorf("%d lanes are open, want none", len(l.open))
	}
	stop()
	l.stop() // returns when all workers have ended
}

// A cluster may move to Pull mode and back while a worker waits for its member. No second worker begins the same Work.
func TestNewLaneWaitsForWorkersOfTheFormer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var busy, most, passes atomic.Int32
		l := &lanes{workers: 2, clock: clock.RealClock{}, firstRetry: time.Second,
			reconcile: func(context.Context, string, types.NamespacedName) outcome {
				most.Store(max(most.Load(), busy.Add(1)))
				<-time.After(time.Minute) // the member hangs
				busy.Add(-1)
				passes.Add(1)
				return outcome{}
			}}
		ctx, stop := context.WithCancel(t.Context())
		l.start(ctx)
		key := types.NamespacedName{Namespace: names.ExecutionSpace("m1"), Name: "w"}
		for range 3 {
			l.register("m1", true)
			l.add("m1", key)
			synctest.Wait()
			l.register("m1", false)
		}
		<-time.After(time.Hour)
		synctest.Wait()
		if most.Load() != 1 || passes.Load() != 3 {
			t.Errorf("%d passes, up to %d at once, want 3 and 1", passes.Load(), most.Load())
		}
		if len(l.workersOf) != 0 {
			t.Errorf("the workers of %d lanes are remembered", len(l.workersOf))
		}
		stop()
		l.stop()
	})
}

func TestPanicIsAnErrorOfItsWork(t *testing.T) {
	t.Parallel()
	if out := recovered(func() outcome { panic("nil map") }); out.err == nil {
		t.Error("the panic is lost")
	}
}

func TestReportsWaitForIdleLaneWithBound(t *testing.T) {
	t.Parallel()
	start := time.Unix(1_800_000_000, 0)
	r := newReports()
	for i := range 3 {
		r.put(report{work: types.NamespacedName{Name: fmt.Sprint(i)}, since: start})
	}
	for _, step := range []struct {
		idle bool
		at   time.Duration
		want string
	}{
		{false, 0, ""},
		{false, reportDelay - 1, ""},
		{false, reportDelay, "0"},
		{true, 0, "1"},
		{true, 0, "2"},
		{true, reportDelay, ""},
	} {
		rep, ok, more := r.next(step.idle, start.Add(step.at))
		if rep.work.Name != step.want || ok != (step.want != "") {
			t.Errorf("idle %t after %s: report %q, want %q", step.idle, step.at, rep.work.Name, step.want)
		}
		if !ok && more != (len(r.waiting) > 0) {
			t.Errorf("idle %t after %s: more %t, with %d waiting", step.idle, step.at, more, len(r.waiting))
		}
	}
}

func TestBusyLaneReportsAllWorksOnce(t *testing.T) {
	t.Parallel()
	const n = 200
	reported := make(chan string, n)
	l := &lanes{workers: 2, clock: clock.RealClock{}, firstRetry: time.Second,
		reconcile: func(_ context.Context, _ string, key types.NamespacedName) outcome {
			return outcome{report: func() outcome { reported <- key.Name; return outcome{} }}
		}}
	ctx, stop := context.WithCancel(context.Background())
	l.start(ctx)
	l.register("m1", true)
	for i := range n {
		l.touch()
		l.add("m1", types.NamespacedName{Namespace: names.ExecutionSpace("m1"), Name: fmt.Sprint(i)})
	}
	seen := map[string]bool{}
	for range n {
		select {
		case name := <-reported:
			seen[name] = true
		case <-time.After(controllertest.Timeout):
			t.Fatalf("%d of %d works were reported", len(seen), n)
		}
	}
	if len(seen) != n {
		t.Errorf("%d of %d works were reported, some twice", len(seen), n)
	}
	stop()
	l.stop()
}
