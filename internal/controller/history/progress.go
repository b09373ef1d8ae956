package history

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/release"
)

// Progress counts the recorded journal entries of each release.
type Progress struct {
	// off is true if the hub keeps no history.
	off bool

	mu      sync.Mutex
	entries map[types.NamespacedName]entry
}

// entry is the progress of one release.
type entry struct {
	uid types.UID
	has release.History
	// last is the last entry of the journal.
	last int64
}

func (p *Progress) HistoryOf(r *releasev1alpha1.Release) release.History {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.off {
		return release.History{Off: true}
	}
	e := p.entries[client.ObjectKeyFromObject(r)]
	if e.uid != r.UID {
		return release.History{}
	}
	return e.has
}

// note adds the result of an attempt to record a release, and returns the progress.
func (p *Progress) note(r *releasev1alpha1.Release, failure error) release.History {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := client.ObjectKeyFromObject(r)
	e := p.entries[key]
	if e.uid != r.UID {
		e = entry{uid: r.UID, has: release.History{Seq: r.Status.RecordedSeq}}
	}
	e.last = release.LastSeq(&r.Status)
	if failure == nil {
		e.has.Seq, e.has.Failure = e.last, ""
	} else {
		e.has.Failure = failure.Error()
	}
	if p.entries == nil {
		p.entries = map[types.NamespacedName]entry{}
	}
	p.entries[key] = e
	behind.Set(float64(p.unrecorded()))
	return e.has
}

func (p *Progress) forget(key types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.entries, key)
	behind.Set(float64(p.unrecorded()))
}

// unrecorded counts the journal entries of all releases that are not recorded.
func (p *Progress) unrecorded() (n int64) {
	for _, e := range p.entries {
		n += max(e.last-e.has.Seq, 0)
	}
	return n
}

// failing is the last failure of the database.
type failing struct {
	mu  sync.Mutex
	err error
	at  time.Time
}

// note takes in a failure, and reports whether it is the first one.
func (f *failing) note(err error, now time.Time) (first bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	first = f.err == nil
	f.err, f.at = err, now
	return first
}

// end takes in a success, and reports whether a failure was before it.
func (f *failing) end() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	failed := f.err != nil
	f.err = nil
	return failed
}

// recent returns a failure that still counts.
func (f *failing) recent(now time.Time) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil || now.Sub(f.at) >= pause {
		return nil
	}
	return f.err
}
