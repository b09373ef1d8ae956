package commit

import "sync"

// Dedup suppresses repeated messages: it keeps the last message about each subject. An event that repeats is another
// write without new information. Callers forget a subject when its message no longer applies. The zero value is empty.
type Dedup[K comparable] struct {
	mu   sync.Mutex
	last map[K]string
}

// IsNew reports whether message differs from the last one about the subject, and keeps it as the last one.
func (d *Dedup[K]) IsNew(subject K, message string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if last, ok := d.last[subject]; ok && last == message {
		return false
	}
	if d.last == nil {
		d.last = map[K]string{}
	}
	d.last[subject] = message
	return true
}

// Forget forgets the message about a subject. It reports whether there was one.
func (d *Dedup[K]) Forget(subject K) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, known := d.last[subject]
	delete(d.last, subject)
	return known
}

// ForgetIf forgets the messages about the subjects for which match returns true.
func (d *Dedup[K]) ForgetIf(match func(K) bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for subject := range d.last {
		if match(subject) {
			delete(d.last, subject)
		}
	}
}
