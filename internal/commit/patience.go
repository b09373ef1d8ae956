package commit

import (
	"time"

	"k8s.io/client-go/util/workqueue"
)

// lastRetry is the longest delay between attempts.
const lastRetry = 2 * time.Minute

// Patience is how long a controller waits before it tries again what failed: first, then twice as long each time, and
// no more than two minutes unless first is longer. The queues' own limit is a quarter of an hour, which somebody waits
// who has just mended a webhook or a member.
func Patience[T comparable](first time.Duration) workqueue.TypedRateLimiter[T] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[T](first, max(first, lastRetry))
}

// Sooner is the shorter of two delays, of which 0 is never.
func Sooner(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}
