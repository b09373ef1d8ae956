package check

import (
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/release"
)

// Results are the states of checks as of their last samples. They are in memory: a sample that decides nothing is not
// worth a write. The release controller reads them, decides, and stores the verdicts. Its methods are safe for
// concurrent use.
type Results struct {
	mu sync.Mutex
	// states by release and key.
	states map[types.NamespacedName]map[string]releasev1alpha1.ReleaseCheckStatus
	notify []func(release types.NamespacedName)
	// budgets are the error budgets of guards by the samples of this process, by the name of the guard.
	budgets       map[string]sampledBudget
	notifyBudgets []func(guard string)
}

// sampledBudget is the error budget of the guard with a UID.
type sampledBudget struct {
	uid types.UID
	release.Budget
}

// Budget returns the error budget of a guard after the last sample of this process; nil if there was none.
func (r *Results) Budget(g *releasev1alpha1.ReleaseGuard) *releasev1alpha1.ReleaseGuardBudget {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	b, ok := r.budgets[g.Name]
	if !ok || b.uid != g.UID {
		return nil
	}
	return &b.ReleaseGuardBudget
}

// SubscribeBudgets adds a function that is called after the first sample of the error budget of a guard, and when the
// budget has changed.
func (r *Results) SubscribeBudgets(f func(guard string)) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.notifyBudgets = append(r.notifyBudgets, f)
}

// lastBudget returns the error budget of a guard before the next sample: the stored one if this process took none.
func (r *Results) lastBudget(g *releasev1alpha1.ReleaseGuard) release.Budget {
	r.mu.Lock()
	defer r.mu.Unlock()
	if b, ok := r.budgets[g.Name]; ok && b.uid == g.UID {
		return b.Budget
	}
	return release.StoredBudget(g)
}

// setBudget stores the error budget of a guard after a sample.
func (r *Results) setBudget(g *releasev1alpha1.ReleaseGuard, is release.Budget) {
	r.mu.Lock()
	was := r.budgets[g.Name]
	if r.budgets == nil {
		r.budgets = map[string]sampledBudget{}
	}
	r.budgets[g.Name] = sampledBudget{g.UID, is}
	notify := r.notifyBudgets
	r.mu.Unlock()
	if was.uid == g.UID && was.ReleaseGuardBudget == is.ReleaseGuardBudget {
		return
	}
	for _, f := range notify {
		f(g.Name)
	}
}

// forgetBudget forgets the error budget of a guard.
func (r *Results) forgetBudget(guard string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.budgets, guard)
}

// States returns the states of the checks of a release, by key.
func (r *Results) States(release types.NamespacedName) map[string]releasev1alpha1.ReleaseCheckStatus {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.states[release])
}

// Subscribe adds a function that is called when a check of a release has another verdict, or another sample failed.
func (r *Results) Subscribe(f func(release types.NamespacedName)) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.notify = append(r.notify, f)
}

// latest returns the state of a check: the stored one if no sample has followed.
func (r *Results) latest(release types.NamespacedName,
	stored releasev1alpha1.ReleaseCheckStatus) releasev1alpha1.ReleaseCheckStatus {
	r.mu.Lock()
	defer r.mu.Unlock()
	if is, ok := r.states[release][stored.Key]; ok && is.Name == stored.Name {
		return is
	}
	return stored
}

// set stores the state of a check after a sample.
func (r *Results) set(release types.NamespacedName, was, is releasev1alpha1.ReleaseCheckStatus) {
	r.mu.Lock()
	if r.states == nil {
		r.states = map[types.NamespacedName]map[string]releasev1alpha1.ReleaseCheckStatus{}
	}
	if r.states[release] == nil {
		r.states[release] = map[string]releasev1alpha1.ReleaseCheckStatus{}
	}
	r.states[release][is.Key] = is
	notify := r.notify
	r.mu.Unlock()
	if was.Verdict == is.Verdict && was.Failed == is.Failed {
		return
	}
	for _, f := range notify {
		f(release)
	}
}

// keep forgets the states of a release but those with the keys.
func (r *Results) keep(release types.NamespacedName, keys map[string]bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.states[release], func(key string, _ releasev1alpha1.ReleaseCheckStatus) bool { return !keys[key] })
	if len(r.states[release]) == 0 {
		delete(r.states, release)
	}
}
