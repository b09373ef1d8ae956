package commit

import (
	"time"

	"k8s.io/client-go/util/workqueue"
)

const (
	firstRetry = 5 * time.Millisecond
	lastRetry  = 2 * time.Minute
)

// Patience is how long a controller waits before it tries again what failed: twice as long each time, and no more than two
// minutes. The queues' own limit is a quarter of an hour, which somebody waits who has just mended a webhook or a member.
func Patience[T comparable]() workqueue.TypedRateLimiter[T] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[T](firstRetry, lastRetry)
}
