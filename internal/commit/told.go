package commit

import "sync"

// Told remembers what was said last about each subject: an event that repeats is a write each time, and tells nobody
// anything. The zero value has said nothing. A subject is forgotten when what was said of it is over.
type Told[K comparable] struct {
	mu   sync.Mutex
	last map[K]string
}

// News reports whether message is other than what was said last about the subject, and takes it as said.
func (t *Told[K]) News(about K, message string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if last, ok := t.last[about]; ok && last == message {
		return false
	}
	if t.last == nil {
		t.last = map[K]string{}
	}
	t.last[about] = message
	return true
}

// Forget makes whatever is said next about the subject news; it reports whether anything was said before.
func (t *Told[K]) Forget(about K) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, said := t.last[about]
	delete(t.last, about)
	return said
}

// ForgetAll forgets the subjects that which says.
func (t *Told[K]) ForgetAll(which func(K) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for about := range t.last {
		if which(about) {
			delete(t.last, about)
		}
	}
}
