package execute

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	"github.com/argosy-io/argosy/internal/commit"
)

// lanes gives each member cluster a queue and workers of its own, so that one that hangs holds up no other.
// A lane opens with the first Work of a registered cluster and closes with it. Works of other clusters are strays.
type lanes struct {
	// workers is the number of goroutines of a lane.
	workers int
	// reconcile works on one Work. No two of one cluster run for the same Work at once. stray is the same for strays,
	// which have one worker.
	reconcile, stray func(ctx context.Context, cluster string, work types.NamespacedName) outcome
	// clock dates what waits.
	clock clock.PassiveClock
	// firstRetry is the delay of the first attempt after a failure; it doubles as commit.Backoff says.
	firstRetry time.Duration
	// touched is when the last Work came that was not applied yet, in nanoseconds.
	touched atomic.Int64

	mu         sync.Mutex
	ctx        context.Context
	registered map[string]bool
	open       map[string]lane
	later      map[string]*reports
	answers    map[string]uint64
	strays     workqueue.TypedRateLimitingInterface[strayWork]
	all        sync.WaitGroup
}

type lane = workqueue.TypedRateLimitingInterface[types.NamespacedName]

// outcome is what became of a look at a Work: an error is tried again with growing delay, a positive duration after
// that time. report, if there is one, still has to be called, and gives the outcome: it may wait for others that are
// due.
type outcome struct {
	after  time.Duration
	err    error
	report func() outcome
}

// reports are what a lane has to report when it has nothing better to do: objects first, what became of them second.
// The Works stay under way until then.
type reports struct {
	mu      sync.Mutex
	waiting []report
	// added holds a token when there may be another; stop ends the reporting.
	added, stop chan struct{}
}

type report struct {
	work  types.NamespacedName
	since time.Time
	make  func() outcome
}

const (
	// reportDelay bounds how long a report waits behind objects.
	reportDelay = 5 * time.Second
	// reportsWaiting bounds how many do.
	reportsWaiting = 2000
	// calm is how long no new Work has come when there is nothing better to do: in a burst they come one by one.
	calm = 40 * time.Millisecond
)

func newReports() *reports {
	return &reports{added: make(chan struct{}, 1), stop: make(chan struct{})}
}

// put has a report wait; it says no when too many do.
func (r *reports) put(rep report) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.waiting) >= reportsWaiting {
		return false
	}
	r.waiting = append(r.waiting, rep)
	select {
	case r.added <- struct{}{}:
	default:
	}
	return true
}

// next is the oldest report, if it is time: when nothing else is to be done, or it has waited long enough. Without one,
// more says that some wait.
func (r *reports) next(idle bool, now time.Time) (rep report, ok, more bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.waiting) == 0 || !idle && now.Sub(r.waiting[0].since) < reportDelay {
		return rep, false, len(r.waiting) > 0
	}
	rep = r.waiting[0]
	r.waiting[0] = report{}
	r.waiting = r.waiting[1:]
	return rep, true, false
}

// run makes reports when it is their time, until stop.
func (r *reports) run(q lane, c clock.PassiveClock, idle func() bool) {
	for {
		rep, ok, more := r.next(idle(), c.Now())
		if ok {
			settle(q, rep.work, recovered(rep.make))
			continue
		}
		var again <-chan time.Time
		if more {
			again = time.After(calm / 4)
		}
		select {
		case <-r.added:
		case <-again:
		case <-r.stop:
			return
		}
	}
}

// strayWork is a Work and the cluster that it names.
type strayWork struct {
	cluster string
	work    types.NamespacedName
}

// start lets lanes open; they run until ctx ends. What is added before is not taken.
func (l *lanes) start(ctx context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ctx, l.open, l.later = ctx, map[string]lane{}, map[string]*reports{}
	l.strays = newQueue[strayWork]("execute-strays", l.firstRetry)
	l.all.Go(func() {
		work(l.strays, func(s strayWork) {
			settle(l.strays, s, recovered(func() outcome { return l.stray(ctx, s.cluster, s.work) }))
		})
	})
}

// running is between start and the end.
func (l *lanes) running() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ctx != nil && l.ctx.Err() == nil
}

// register lets the lane of a cluster open.
func (l *lanes) register(cluster string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.registered == nil {
		l.registered = map[string]bool{}
	}
	l.registered[cluster] = true
}

// of is the cluster's lane, opened if need be; nil if it is not registered.
func (l *lanes) of(cluster string) (q lane, running bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx == nil || l.ctx.Err() != nil {
		return nil, false
	}
	if q, ok := l.open[cluster]; ok || !l.registered[cluster] {
		return q, true
	}
	q = newQueue[types.NamespacedName]("execute-"+cluster, l.firstRetry)
	l.open[cluster] = q
	ctx, later := l.ctx, newReports()
	l.later[cluster] = later
	for range l.workers {
		l.all.Go(func() {
			work(q, func(key types.NamespacedName) {
				answers := l.answersOf(cluster)
				out := recovered(func() outcome {
					out := l.reconcile(ctx, cluster, key)
					if out.report != nil && !later.put(report{key, l.clock.Now(), out.report}) {
						return out.report()
					}
					return out
				})
				if out.report != nil {
					return // settled by who reports it
				}
				settle(q, key, out)
				// Whoever retries what failed in silence may have looked before it was known here that this did.
				if out.err != nil && l.answersOf(cluster) != answers {
					q.Forget(key)
					q.Add(key)
				}
			})
		})
	}
	for range (l.workers + 1) / 2 {
		l.all.Go(func() {
			later.run(q, l.clock, func() bool {
				return q.Len() == 0 && l.clock.Now().UnixNano()-l.touched.Load() >= int64(calm)
			})
		})
	}
	return q, true
}

// touch says that a Work came that was not applied yet: reports wait for more of them.
func (l *lanes) touch() { l.touched.Store(l.clock.Now().UnixNano()) }

// add has a Work looked at.
func (l *lanes) add(cluster string, key types.NamespacedName) {
	if q, running := l.of(cluster); q != nil {
		q.Add(key)
	} else if running {
		l.strays.Add(strayWork{cluster, key})
	}
}

// retry has Works looked at at once, however often they failed, as after a change that may have mended them.
func (l *lanes) retry(cluster string, keys ...types.NamespacedName) {
	for _, key := range keys {
		if q, _ := l.of(cluster); q != nil {
			q.Forget(key)
		}
		l.add(cluster, key)
	}
}

// answersOf counts how often a cluster answered after it did not.
func (l *lanes) answersOf(cluster string) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.answers[cluster]
}

// retryFailed has those of the Works looked at whose last attempt failed, after the cluster answered.
func (l *lanes) retryFailed(cluster string, keys ...types.NamespacedName) {
	l.mu.Lock()
	if l.answers == nil {
		l.answers = map[string]uint64{}
	}
	l.answers[cluster]++
	l.mu.Unlock()
	q, _ := l.of(cluster)
	if q == nil {
		return
	}
	for _, key := range keys {
		if q.NumRequeues(key) > 0 {
			q.Forget(key)
			q.Add(key)
		}
	}
}

// close ends the lane of a cluster that has left.
func (l *lanes) close(cluster string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.registered, cluster)
	if q, ok := l.open[cluster]; ok {
		l.shut(cluster, q)
	}
}

// shut is called with the lock held.
func (l *lanes) shut(cluster string, q lane) {
	q.ShutDown()
	close(l.later[cluster].stop)
	delete(l.open, cluster)
	delete(l.later, cluster)
}

// stop closes all lanes and waits for what is under way.
func (l *lanes) stop() {
	l.mu.Lock()
	for cluster, q := range l.open {
		l.shut(cluster, q)
	}
	l.strays.ShutDown()
	l.mu.Unlock()
	l.all.Wait()
}

func newQueue[K comparable](name string, firstRetry time.Duration) workqueue.TypedRateLimitingInterface[K] {
	return workqueue.NewTypedRateLimitingQueueWithConfig(
		commit.Backoff[K](firstRetry),
		workqueue.TypedRateLimitingQueueConfig[K]{Name: name})
}

// work takes from a queue until it is closed. Whoever does the work settles it.
func work[K comparable](q workqueue.TypedRateLimitingInterface[K], do func(K)) {
	for {
		key, done := q.Get()
		if done {
			return
		}
		do(key)
	}
}

// settle ends a look at a Work.
func settle[K comparable](q workqueue.TypedRateLimitingInterface[K], key K, out outcome) {
	switch {
	case out.err != nil:
		q.AddRateLimited(key)
	case out.after > 0:
		q.Forget(key)
		q.AddAfter(key, out.after)
	default:
		q.Forget(key)
	}
	q.Done(key)
}

// recovered makes a panic over one Work an error: the hub and its other Works go on.
func recovered(do func() outcome) (out outcome) {
	defer func() {
		if p := recover(); p != nil {
			out = outcome{err: fmt.Errorf("panic: %v", p)}
			log.Error(out.err, "execute a work", "stack", string(debug.Stack()))
		}
	}()
	return do()
}
