package dispatch

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/commit"
)

// behind reports whether the cache lacks a pending write of a Work of the binding. The controller then decides nothing
// for the binding: it would create the Work again, leave it behind when its cluster or its binding goes, or grant to
// another Work what this one was granted.
func (r *reconciler) behind(ctx context.Context, binding types.NamespacedName) (bool, error) {
	for _, written := range r.pending.Get(binding) {
		work := &workv1alpha1.Work{}
		err := r.client.Get(ctx, client.ObjectKeyFromObject(written), work, client.UnsafeDisableDeepCopy)
		if apierrors.IsNotFound(err) || err == nil && !commit.Shows(work, written) {
			return true, nil
		}
		if err != nil {
			return false, fmt.Errorf("get work %s/%s: %w", written.Namespace, written.Name, err)
		}
	}
	r.pending.Forget(binding)
	return false, nil
}
