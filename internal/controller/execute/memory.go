package execute

import (
	"context"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/execute"
)

// written are the Works whose status we wrote, until the cache shows them so. The member's event comes before our own
// write is back: by the Work as it was, an object that was just created would be applied again.
type written struct {
	mu    sync.Mutex
	works map[types.NamespacedName]*workv1alpha1.Work
}

// put takes a Work as the hub answered it.
func (w *written) put(work *workv1alpha1.Work) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.works == nil {
		w.works = map[types.NamespacedName]*workv1alpha1.Work{}
	}
	w.works[client.ObjectKeyFromObject(work)] = work
}

// of is the Work as we wrote it; nil if the cache has shown it since.
func (w *written) of(key types.NamespacedName) *workv1alpha1.Work {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.works[key]
}

// seen forgets a Work that the cache shows as we wrote it, or later.
func (w *written) seen(cached *workv1alpha1.Work) {
	key := client.ObjectKeyFromObject(cached)
	w.mu.Lock()
	defer w.mu.Unlock()
	if ours := w.works[key]; ours != nil && shows(cached, ours) {
		delete(w.works, key)
	}
}

// shows says whether the cache has a Work as we wrote it, or later.
func shows(cached, ours *workv1alpha1.Work) bool {
	newer, err := resourceversion.CompareResourceVersion(ours.ResourceVersion, cached.ResourceVersion)
	return err != nil || newer <= 0 || ours.UID != cached.UID
}

// newest is the Work as the cache has it, or as we wrote it since. It is the caller's.
func (r *reconciler) newest(ctx context.Context, key types.NamespacedName) (*workv1alpha1.Work, error) {
	// In this order: once the cache shows what we wrote, it is not remembered, and a look at the cache before that knows
	// neither.
	ours, cached := r.memory.written.of(key), &workv1alpha1.Work{}
	if err := r.client.Get(ctx, key, cached); err != nil {
		return nil, err
	}
	if ours != nil && !shows(cached, ours) {
		return ours.DeepCopy(), nil
	}
	return cached, nil
}

func (w *written) forget(key types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.works, key)
}

// forgetSeen forgets a write whose event came before it was taken down.
func (r *reporter) forgetSeen(ctx context.Context, work *workv1alpha1.Work) {
	cached := &workv1alpha1.Work{}
	if err := r.client.Get(ctx, client.ObjectKeyFromObject(work), cached, client.UnsafeDisableDeepCopy); err == nil {
		r.memory.written.seen(cached)
	}
}

// applied are the Works that were applied in a generation of which their status does not tell yet. A look at one
// meanwhile would apply it again.
type applied struct {
	mu    sync.Mutex
	works map[types.NamespacedName]version
}

// version is a Work as its users wrote it.
type version struct {
	uid        types.UID
	generation int64
}

func (a *applied) put(work *workv1alpha1.Work) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.works == nil {
		a.works = map[types.NamespacedName]version{}
	}
	a.works[client.ObjectKeyFromObject(work)] = version{work.UID, work.Generation}
}

func (a *applied) forget(key types.NamespacedName) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.works, key)
}

// told is the Work with what its status does not tell yet. work is not changed.
func (a *applied) told(work *workv1alpha1.Work) *workv1alpha1.Work {
	a.mu.Lock()
	was, ok := a.works[client.ObjectKeyFromObject(work)]
	a.mu.Unlock()
	if !ok || was != (version{work.UID, work.Generation}) || execute.Applied(work) {
		return work
	}
	told := *work
	told.Status.Conditions = slices.Clone(work.Status.Conditions)
	meta.SetStatusCondition(&told.Status.Conditions,
		metav1.Condition{Type: workv1alpha1.WorkApplied, Status: metav1.ConditionTrue,
			ObservedGeneration: was.generation})
	return &told
}
