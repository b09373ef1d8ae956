package check

import (
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
)

// Results are the states of checks as of their last samples. They are in memory: a sample that decides nothing is not
// worth a write. The release controller reads them, decides, and stores the verdicts. Its methods are safe for
// concurrent use.
type Results struct {
	mu sync.Mutex
	// states by release and key.
	states map[types.NamespacedName]map[string]releasev1alpha1.ReleaseCheckStatus
	notify []func(release types.NamespacedName)
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
