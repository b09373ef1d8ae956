package execute

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
)

// lanes gives each member cluster a queue and workers of its own, so that one that hangs holds up no other.
// A lane opens with its first Work and closes with its cluster.
type lanes struct {
	// workers is the number of goroutines of a lane.
	workers int
	// reconcile works on one Work; an error is tried again with growing delay, a positive duration after that time.
	reconcile func(ctx context.Context, cluster string, work types.NamespacedName) (time.Duration, error)

	mu      sync.Mutex
	ctx     context.Context
	open    map[string]lane
	running sync.WaitGroup
}

type lane = workqueue.TypedRateLimitingInterface[types.NamespacedName]

// The delays between attempts of one Work: a failure is seen soon, and a lasting one does not keep the member busy.
const (
	firstRetry = 100 * time.Millisecond
	lastRetry  = 2 * time.Minute
)

// start lets lanes open; they run until ctx ends.
func (l *lanes) start(ctx context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ctx, l.open = ctx, map[string]lane{}
}

// of is the cluster's lane, opened if need be; nil before start and after the end.
func (l *lanes) of(cluster string) lane {
	l.mu.Lock()
	defer l.mu.Unlock()
	if q, ok := l.open[cluster]; ok {
		return q
	}
	if l.ctx == nil || l.ctx.Err() != nil {
		return nil
	}
	q := workqueue.NewTypedRateLimitingQueueWithConfig(
		workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](firstRetry, lastRetry),
		workqueue.TypedRateLimitingQueueConfig[types.NamespacedName]{Name: "execute-" + cluster})
	l.open[cluster] = q
	for range l.workers {
		l.running.Go(func() { l.work(cluster, q) })
	}
	return q
}

// add has a Work looked at.
func (l *lanes) add(cluster string, work types.NamespacedName) {
	if q := l.of(cluster); q != nil {
		q.Add(work)
	}
}

// retry has a Work that failed looked at again at once, as after a change that may have mended it.
func (l *lanes) retry(cluster string, work types.NamespacedName) {
	if q := l.of(cluster); q != nil {
		q.Forget(work)
		q.Add(work)
	}
}

// close ends the lane of a cluster that has left.
func (l *lanes) close(cluster string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if q, ok := l.open[cluster]; ok {
		q.ShutDown()
		delete(l.open, cluster)
	}
}

// stop closes all lanes and waits for what is under way.
func (l *lanes) stop() {
	l.mu.Lock()
	for _, q := range l.open {
		q.ShutDown()
	}
	l.mu.Unlock()
	l.running.Wait()
}

func (l *lanes) work(cluster string, q lane) {
	for {
		key, done := q.Get()
		if done {
			return
		}
		after, err := l.reconcile(l.ctx, cluster, key)
		switch {
		case err != nil:
			q.AddRateLimited(key)
		case after > 0:
			q.Forget(key)
			q.AddAfter(key, after)
		default:
			q.Forget(key)
		}
		q.Done(key)
	}
}
