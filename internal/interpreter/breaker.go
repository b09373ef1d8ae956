package interpreter

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/core/workload/interpret/script"
)

// breaker is a circuit breaker for slow calls that fail. After threshold failures in a row it lets one call through at
// a time, with growing backoff. All other callers get the last error at once.
type breaker struct {
	// threshold is the number of consecutive failures that opens the breaker.
	threshold int

	mu      sync.Mutex
	failed  int
	last    error
	pause   time.Duration
	until   time.Time
	probing bool
}

const (
	firstPause = 5 * time.Second
	lastPause  = time.Minute
)

// call runs fn unless the breaker is open. slow reports whether an error counts as a failure.
func (b *breaker) call(now func() time.Time, slow func(error) bool, question func() error) error {
	b.mu.Lock()
	open := b.failed >= b.threshold
	if open && (b.probing || now().Before(b.until)) {
		defer b.mu.Unlock()
		return b.last
	}
	b.probing = open
	b.mu.Unlock()

	var err error
	answered := false
	defer func() {
		if !answered { // fn panicked; the caller reports it
			b.mu.Lock()
			defer b.mu.Unlock()
			b.probing = false
		}
	}()
	err = question()
	answered = true

	b.mu.Lock()
	defer b.mu.Unlock()
	b.probing = false
	if err == nil || !slow(err) {
		b.failed, b.pause = 0, 0
		return err
	}
	b.failed++
	b.last = err
	if b.failed >= b.threshold {
		b.pause = min(max(2*b.pause, firstPause), lastPause)
		b.until = now().Add(b.pause)
	}
	return err
}

// scriptThreshold tolerates single objects that exhaust a script's limits, so that they do not stop the script for all
// others.
const scriptThreshold = 3

type scriptKey struct {
	schema.GroupKind
	operation configv1alpha1.InterpreterOperation
}

// breakers has one breaker per kind and operation, for scripts.
type breakers struct {
	mu  sync.Mutex
	all map[scriptKey]*breaker
}

func (b *breakers) get(q scriptKey) *breaker {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.all == nil {
		b.all = map[scriptKey]*breaker{}
	}
	if b.all[q] == nil {
		b.all[q] = &breaker{threshold: scriptThreshold}
	}
	return b.all[q]
}

// reset closes the breakers of the kinds.
func (b *breakers) reset(concerns Concerns) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for q := range b.all {
		if concerns(q.GroupKind) {
			delete(b.all, q)
		}
	}
}

// exhausting reports whether a script exceeded its time or memory limit.
func exhausting(err error) bool {
	for _, e := range script.Errors(err) {
		if e.Reason == script.DeadlineExceeded || e.Reason == script.MemoryExceeded {
			return true
		}
	}
	return false
}

// guarded wraps the tier of customizations with a breaker per script.
type guarded struct {
	interpret.Tier
	breakers *breakers
}

// Find implements interpret.Tier.
func (g guarded) Find(kind schema.GroupVersionKind,
	operation configv1alpha1.InterpreterOperation) interpret.Implementation {
	found := g.Tier.Find(kind, operation)
	if evaluate := found.Evaluate; evaluate != nil {
		found.Evaluate = func(ctx context.Context, in interpret.Inputs) (out interpret.Outputs, err error) {
			err = g.breakers.get(scriptKey{kind.GroupKind(), operation}).call(time.Now, exhausting, func() (err error) {
				out, err = evaluate(ctx, in)
				return err
			})
			return out, err
		}
	}
	return found
}
