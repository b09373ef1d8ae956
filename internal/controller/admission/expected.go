package admission

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/match"
)

// seenWithin limits the lag of the index behind a policy that was let through. What is not seen by then was refused
// later on.
const seenWithin = 500 * time.Millisecond

// expected has admitted policies that are not in the index yet, because its watch lags by milliseconds. Without them, a
// template could get a claim of the second-best policy, and claims stay.
type expected struct {
	mu       sync.Mutex
	policies map[types.NamespacedName]expectation
	// seen is closed, and another made, when one of them is seen.
	seen chan struct{}
}

type expectation struct {
	policy policyv1alpha1.Propagation
	until  time.Time
}

// expect notes that a policy is about to be stored.
func (e *expected) expect(p policyv1alpha1.Propagation) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	for key, x := range e.policies {
		if now.After(x.until) {
			delete(e.policies, key)
		}
	}
	if e.policies == nil {
		e.policies, e.seen = map[types.NamespacedName]expectation{}, make(chan struct{})
	}
	e.policies[types.NamespacedName{Namespace: p.GetNamespace(), Name: p.GetName()}] = expectation{p, now.Add(seenWithin)}
}

// saw ends the expectation of p. Older states of it on their way do not.
func (e *expected) saw(p policyv1alpha1.Propagation) {
	e.mu.Lock()
	defer e.mu.Unlock()
	key := types.NamespacedName{Namespace: p.GetNamespace(), Name: p.GetName()}
	x, ok := e.policies[key]
	if !ok || !equality.Semantic.DeepEqual(x.policy.PropagationSpec(), p.PropagationSpec()) {
		return
	}
	delete(e.policies, key)
	close(e.seen)
	e.seen = make(chan struct{})
}

// settle returns when no policy is expected any more that selects templates of the kind.
func (e *expected) settle(ctx context.Context, gk schema.GroupKind) {
	for {
		until, seen := e.next(gk)
		remaining := time.Until(until)
		if remaining <= 0 {
			return
		}
		timer := time.NewTimer(remaining)
		select {
		case <-seen:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
		if ctx.Err() != nil {
			return
		}
	}
}

// next returns until when one of the policies that select the kind may still be expected, zero if none is, and a
// channel that is closed when one was seen.
func (e *expected) next(gk schema.GroupKind) (until time.Time, seen <-chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, x := range e.policies {
		for _, s := range x.policy.PropagationSpec().ResourceSelectors {
			if match.GroupKind(s.APIVersion, s.Kind) == gk && x.until.After(until) {
				until = x.until
			}
		}
	}
	return until, e.seen
}
