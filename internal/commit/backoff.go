package commit

import (
	"time"

	"k8s.io/client-go/util/workqueue"
)

// maxBackoff is the longest delay between attempts.
const maxBackoff = 2 * time.Minute

// Backoff returns the rate limiter of a controller's queue. The delay before a retry starts at first and doubles up to
// two minutes, or stays at first if that is longer. The default limit of queues, 15 minutes, is too long for a user who
// has just repaired a webhook or a member cluster.
func Backoff[T comparable](first time.Duration) workqueue.TypedRateLimiter[T] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[T](first, max(first, maxBackoff))
}

// ShorterDelay returns the shorter of two delays, where 0 means never.
func ShorterDelay(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}
