package execute

import (
	"context"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/interpret"
)

// newest returns the Work as the cache has it, or the pending write of its status. The event of the member may arrive
// before that of the write: by the older status, the hub would apply a new object again. The caller owns the result.
func (r *reconciler) newest(ctx context.Context, key types.NamespacedName) (*workv1alpha1.Work, error) {
	// In this order: the cache may show the write, and the write be forgotten, after the cache was read.
	pending, cached := r.pending.Of(key), &workv1alpha1.Work{}
	if err := r.client.Get(ctx, key, cached); err != nil {
		return nil, err
	}
	if newest := commit.Newest(cached, pending); newest != cached {
		return newest.DeepCopy(), nil
	}
	return cached, nil
}

// forgetSeen forgets a pending write whose event arrived before the write was recorded.
func (r *reconciler) forgetSeen(ctx context.Context, work *workv1alpha1.Work) {
	key, cached := client.ObjectKeyFromObject(work), &workv1alpha1.Work{}
	if err := r.client.Get(ctx, key, cached, client.UnsafeDisableDeepCopy); err == nil {
		r.pending.Seen(key, cached)
	}
}

// ended are the last states of objects that ran once, had finished, and are gone: a member may clean up sooner than we
// look.
type ended struct {
	mu      sync.Mutex
	objects map[types.NamespacedName]*unstructured.Unstructured
}

// put takes the last state of an object of the Work, if it had finished.
func (e *ended) put(work types.NamespacedName, last *unstructured.Unstructured) {
	status, _ := last.Object["status"].(map[string]any)
	if !interpret.Finished(last.GroupVersionKind().GroupKind(), status) {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.objects == nil {
		e.objects = map[types.NamespacedName]*unstructured.Unstructured{}
	}
	e.objects[work] = last
}

// of is the last state of the Work's object; nil if it is not needed, because it was never seen, is reported, or was
// the object of an earlier Work of that name.
func (e *ended) of(work *workv1alpha1.Work, manifest *unstructured.Unstructured) *unstructured.Unstructured {
	key := client.ObjectKeyFromObject(work)
	e.mu.Lock()
	defer e.mu.Unlock()
	last := e.objects[key]
	if last == nil {
		return nil
	}
	const id, template = workv1alpha2.WorkPermanentIDLabel, workv1alpha2.TemplateUIDAnnotation
	if last.GetAnnotations()[template] != manifest.GetAnnotations()[template] || execute.Ended(work) ||
		last.GetLabels()[id] != work.Labels[id] || !execute.Owns(work, last) {
		delete(e.objects, key)
		return nil
	}
	return last
}

// justMissed says whether the object of a Work, which runs once and was applied, is looked for in vain for the first
// time. It may be gone from memory a moment before the event is there that tells how it ended; made anew then, it would
// run again.
func (r *reconciler) justMissed(work *workv1alpha1.Work, manifest *unstructured.Unstructured) bool {
	applied := meta.FindStatusCondition(r.withApplied(work).Status.Conditions, workv1alpha1.WorkApplied)
	if applied == nil || applied.ObservedGeneration == 0 || suspended(work) || execute.Over(work) ||
		!interpret.RunsOnce(manifest.GroupVersionKind().GroupKind()) {
		return false
	}
	_, again := r.missed.LoadOrStore(client.ObjectKeyFromObject(work), struct{}{})
	return !again
}

func (e *ended) forget(work types.NamespacedName) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.objects, work)
}

// withApplied returns the Work as if its status already showed that this generation was applied, if it was. Without, the
// hub would apply the object again. work is not changed.
func (r *reconciler) withApplied(work *workv1alpha1.Work) *workv1alpha1.Work {
	for _, was := range r.applied.Of(client.ObjectKeyFromObject(work)) {
		if was.UID == work.UID && was.Generation == work.Generation && !appliedNow(work) {
			shown := *work
			shown.Status.Conditions = slices.Clone(work.Status.Conditions)
			meta.SetStatusCondition(&shown.Status.Conditions,
				metav1.Condition{Type: workv1alpha1.WorkApplied, Status: metav1.ConditionTrue,
					ObservedGeneration: was.Generation})
			return &shown
		}
	}
	return work
}

// space is a namespace of a member.
type space struct{ cluster, namespace string }

// waiting are the Works whose namespace is not in the member.
type waiting struct {
	mu    sync.Mutex
	works map[space]map[types.NamespacedName]bool
}

func (w *waiting) add(s space, work types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.works == nil {
		w.works = map[space]map[types.NamespacedName]bool{}
	}
	if w.works[s] == nil {
		w.works[s] = map[types.NamespacedName]bool{}
	}
	w.works[s][work] = true
}

func (w *waiting) remove(s space, work types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.works[s], work)
	if len(w.works[s]) == 0 {
		delete(w.works, s)
	}
}

func (w *waiting) forget(work types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for s, works := range w.works {
		delete(works, work)
		if len(works) == 0 {
			delete(w.works, s)
		}
	}
}

// take are the Works that wait for the namespace; they wait no more.
func (w *waiting) take(s space) []types.NamespacedName {
	w.mu.Lock()
	defer w.mu.Unlock()
	keys := slices.Collect(maps.Keys(w.works[s]))
	delete(w.works, s)
	return keys
}
