package commit

import (
	"cmp"
	"sync"
	"time"
)

// Pace is how long news that is not urgent waits for more of the same. The more objects have some, the longer each
// waits, so that all the progress of a burst costs a bounded rate of writes. The zero value has nothing waiting.
type Pace[K comparable] struct {
	// Rate is how much news a second is told while there is more; 0 is paceRate.
	Rate int

	mu    sync.Mutex
	since map[K]time.Time
}

const (
	paceRate = 60
	// paceMost bounds how long news waits, however much there is.
	paceMost = 10 * time.Second
)

// Wait is how long the news about an object still waits at now; least is how long it does when there is no other. It is
// time when the result is not positive.
func (p *Pace[K]) Wait(about K, least time.Duration, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	since, ok := p.since[about]
	if !ok {
		since = now
		if p.since == nil {
			p.since = map[K]time.Time{}
		}
		p.since[about] = now
	}
	window := max(least, min(time.Duration(len(p.since))*time.Second/time.Duration(cmp.Or(p.Rate, paceRate)), paceMost))
	return window - now.Sub(since)
}

// Told says that there is no news about the object any more; it reports whether any was waiting.
func (p *Pace[K]) Told(about K) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, waited := p.since[about]
	delete(p.since, about)
	return waited
}
