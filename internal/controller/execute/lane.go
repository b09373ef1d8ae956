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

// lanes gives each member cluster its own queue and workers, so that a member that hangs delays no other cluster. The
// lane of a cluster in which this process acts opens with its first Work. Other registered clusters have no lane: a hub
// may have many in Pull mode. Works of clusters that are not registered are strays.
type lanes struct {
	// workers is the number of goroutines of a lane.
	workers int
	// reconcile handles a Work. It does not run twice at once for the same Work. stray does the same for strays, which
	// have one worker.
	reconcile, stray func(ctx context.Context, cluster string, work types.NamespacedName) outcome
	clock            clock.PassiveClock
	// firstRetry is the delay before the first retry of a failure.
	firstRetry time.Duration
	// touched is when a Work that is not applied was queued last, in nanoseconds.
	touched atomic.Int64

	mu  sync.Mutex
	ctx context.Context
	// acts has the registered clusters: true for those in which this process acts.
	acts  map[string]bool
	open  map[string]lane
	later map[string]*reports
	// workersOf has the workers of the last lane of a cluster, until they end.
	workersOf map[string]*sync.WaitGroup
	answers   map[string]uint64
	strays    workqueue.TypedRateLimitingInterface[strayWork]
	all       sync.WaitGroup
}

type lane = workqueue.TypedRateLimitingInterface[types.NamespacedName]

// outcome is the result of a pass over a Work: an error is retried with a backoff, and a positive after requeues the
// Work. If report is set, the lane calls it later and uses its result instead.
type outcome struct {
	after  time.Duration
	err    error
	report func() outcome
}

// reports are the reports of a lane that wait until the lane is idle: objects are written before statuses. A Work is
// not reconciled again before its report.
type reports struct {
	mu      sync.Mutex
	waiting []report
	// added has a token if a report was added; stop ends the reporting.
	added, stop chan struct{}
}

type report struct {
	work  types.NamespacedName
	since time.Time
	make  func() outcome
}

const (
	// reportDelay bounds the wait of a report.
	reportDelay = 5 * time.Second
	// reportsWaiting bounds the number of reports that wait in a lane.
	reportsWaiting = 2000
	// calm is the time without a new Work after which a lane is idle. In a burst, Works arrive one by one.
	calm = 40 * time.Millisecond
)

func newReports() *reports {
	return &reports{added: make(chan struct{}, 1), stop: make(chan struct{})}
}

// put adds a report, unless too many wait.
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

// next removes and returns the oldest report if the lane is idle or the report has waited long enough. Otherwise, more
// means that reports wait.
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

// run calls the reports until stop.
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

// strayWork is a Work and its cluster, which is not registered.
type strayWork struct {
	cluster string
	work    types.NamespacedName
}

// start allows lanes to open, until ctx ends. Works that were added before are dropped.
func (l *lanes) start(ctx context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ctx, l.open, l.later, l.workersOf = ctx, map[string]lane{}, map[string]*reports{}, map[string]*sync.WaitGroup{}
	l.strays = newQueue[strayWork]("execute-strays", l.firstRetry)
	l.all.Go(func() {
		work(l.strays, func(s strayWork) {
			settle(l.strays, s, recovered(func() outcome { return l.stray(ctx, s.cluster, s.work) }))
		})
	})
}

func (l *lanes) running() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ctx != nil && l.ctx.Err() == nil
}

// register records that a cluster is registered, and whether this process acts in it. If not, its lane is closed.
func (l *lanes) register(cluster string, acts bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.acts == nil {
		l.acts = map[string]bool{}
	}
	l.acts[cluster] = acts
	if q, ok := l.open[cluster]; ok && !acts {
		l.shut(cluster, q)
	}
}

// openLane returns the lane of a cluster, and opens it if necessary; nil if this process does not act in the cluster.
// stray is true if the cluster is not registered.
func (l *lanes) openLane(cluster string) (q lane, stray bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx == nil || l.ctx.Err() != nil {
		return nil, false
	}
	if q, ok := l.open[cluster]; ok {
		return q, false
	}
	if acts, registered := l.acts[cluster]; !acts {
		return nil, !registered
	}
	q = newQueue[types.NamespacedName]("execute-"+cluster, l.firstRetry)
	l.open[cluster] = q
	ctx, later := l.ctx, newReports()
	l.later[cluster] = later
	// A worker may still be busy with a Work of a lane that was shut. The new lane waits for it.
	former, workers := l.workersOf[cluster], &sync.WaitGroup{}
	l.workersOf[cluster] = workers
	run := func(worker func()) {
		workers.Add(1)
		l.all.Go(func() {
			defer workers.Done()
			if former != nil {
				former.Wait()
			}
			worker()
		})
	}
	for range l.workers {
		run(func() {
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
					return // reports.run settles it.
				}
				settle(q, key, out)
				// retryFailed may have run before this failure was counted.
				if out.err != nil && l.answersOf(cluster) != answers {
					q.Forget(key)
					q.Add(key)
				}
			})
		})
	}
	for range (l.workers + 1) / 2 {
		run(func() {
			later.run(q, l.clock, func() bool {
				return q.Len() == 0 && l.clock.Now().UnixNano()-l.touched.Load() >= int64(calm)
			})
		})
	}
	return q, false
}

// touch records that a Work is queued that is not applied: reports wait for more of them.
func (l *lanes) touch() { l.touched.Store(l.clock.Now().UnixNano()) }

// add queues a Work.
func (l *lanes) add(cluster string, key types.NamespacedName) {
	if q, stray := l.openLane(cluster); q != nil {
		q.Add(key)
	} else if stray {
		l.strays.Add(strayWork{cluster, key})
	}
}

// retry queues Works without a backoff, after a change that may end their failures.
func (l *lanes) retry(cluster string, keys ...types.NamespacedName) {
	for _, key := range keys {
		if q, _ := l.openLane(cluster); q != nil {
			q.Forget(key)
		}
		l.add(cluster, key)
	}
}

// answersOf returns how often a cluster answered again after silence.
func (l *lanes) answersOf(cluster string) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.answers[cluster]
}

// retryFailed queues those Works whose last attempt failed, after the cluster answered again.
func (l *lanes) retryFailed(cluster string, keys ...types.NamespacedName) {
	l.mu.Lock()
	if l.answers == nil {
		l.answers = map[string]uint64{}
	}
	l.answers[cluster]++
	l.mu.Unlock()
	q, _ := l.openLane(cluster)
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

// close removes the lane of a cluster that has left.
func (l *lanes) close(cluster string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.acts, cluster)
	if q, ok := l.open[cluster]; ok {
		l.shut(cluster, q)
	}
}

// shut must be called with mu locked.
func (l *lanes) shut(cluster string, q lane) {
	q.ShutDown()
	close(l.later[cluster].stop)
	delete(l.open, cluster)
	delete(l.later, cluster)
	workers := l.workersOf[cluster]
	l.all.Go(func() {
		workers.Wait()
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.workersOf[cluster] == workers {
			delete(l.workersOf, cluster)
		}
	})
}

// stop closes all lanes and waits for their workers.
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

// work calls do with each key of a queue until the queue is closed. do must settle the key.
func work[K comparable](q workqueue.TypedRateLimitingInterface[K], do func(K)) {
	for {
		key, done := q.Get()
		if done {
			return
		}
		do(key)
	}
}

// settle ends a pass over a Work.
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

// recovered turns a panic over one Work into an error, so that the hub continues with other Works.
func recovered(do func() outcome) (out outcome) {
	defer func() {
		if p := recover(); p != nil {
			out = outcome{err: fmt.Errorf("panic: %v", p)}
			log.Error(out.err, "execute a work", "stack", string(debug.Stack()))
		}
	}()
	return do()
}
