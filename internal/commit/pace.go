package commit

import (
	"cmp"
	"sync"
	"time"
)

// Pace delays writes that are not urgent, so that each write can cover several changes. The more objects wait, the
// longer each waits, so that a burst of progress costs a bounded rate of writes. The zero value has no waiting objects.
type Pace[K comparable] struct {
	// Rate is the number of writes per second while many objects wait; 0 means paceRate.
	Rate int

	mu    sync.Mutex
	since map[K]time.Time
}

const (
	paceRate = 60
	// maxPaceDelay is the longest time that an object waits.
	maxPaceDelay = 10 * time.Second
)

// Wait returns how long the write of an object still waits at now. The first call starts the waiting time. least is the
// waiting time of an object that waits alone. A result of 0 or less means that the write is due.
func (p *Pace[K]) Wait(object K, least time.Duration, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	since, ok := p.since[object]
	if !ok {
		since = now
		if p.since == nil {
			p.since = map[K]time.Time{}
		}
		p.since[object] = now
	}
	rate := cmp.Or(p.Rate, paceRate)
	window := max(least, min(time.Duration(len(p.since))*time.Second/time.Duration(rate), maxPaceDelay))
	return window - now.Sub(since)
}

// Done ends the waiting time of an object. It reports whether the object was waiting.
func (p *Pace[K]) Done(object K) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, waited := p.since[object]
	delete(p.since, object)
	return waited
}
