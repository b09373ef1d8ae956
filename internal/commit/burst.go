package commit

import (
	"sync"
	"time"
)

// Burst bounds what is told one by one while much of the same happens: Most at once, and Rate a second more from then
// on.
type Burst struct {
	Most, Rate int

	mu sync.Mutex
	// told is how many of Most are spent at at.
	told float64
	at   time.Time
}

// Tell reports whether one more is told at now, and counts it if so.
func (b *Burst) Tell(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if now.After(b.at) {
		b.told = max(0, b.told-now.Sub(b.at).Seconds()*float64(b.Rate))
		b.at = now
	}
	if b.told+1 > float64(b.Most) {
		return false
	}
	b.told++
	return true
}
