package execute

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/execute"
)

// newest returns the Work as the cache has it, or the pending write of its status. The event of the member may arrive
// before that of the write: by the older status, the hub would apply a new object again. The caller owns the result.
func (r *reconciler) newest(ctx context.Context, key types.NamespacedName) (*workv1alpha1.Work, error) {
	// In this order: the cache may show the write, and the write be forgotten, after the cache was read.
	pending, cached := r.memory.pending.Get(key), &workv1alpha1.Work{}
	if err := r.client.Get(ctx, key, cached); err != nil {
		return nil, err
	}
	if newest := commit.Newest(cached, pending); newest != cached {
		return newest.DeepCopy(), nil
	}
	return cached, nil
}

// forgetSeen forgets a pending write whose event arrived before the write was recorded.
func (r *reporter) forgetSeen(ctx context.Context, work *workv1alpha1.Work) {
	key, cached := client.ObjectKeyFromObject(work), &workv1alpha1.Work{}
	if err := r.client.Get(ctx, key, cached, client.UnsafeDisableDeepCopy); err == nil {
		r.memory.pending.Seen(key, cached)
	}
}

// withApplied returns the Work as if its status already showed that this generation was applied, if it was. Without,
// the hub would apply the object again. work is not changed.
func (m *memory) withApplied(work *workv1alpha1.Work) *workv1alpha1.Work {
	for _, was := range m.applied.Get(client.ObjectKeyFromObject(work)) {
		if was.UID == work.UID && was.Generation == work.Generation && !execute.Applied(work) {
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
