package execute

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/identity"
)

// superseded says whether work has a former name, and the hub has a Work of the present name for the same object. The
// member's object then is that Work's: whatever becomes of this one is no order.
func (r *reconciler) superseded(ctx context.Context, work *workv1alpha1.Work,
	manifest *unstructured.Unstructured) (bool, error) {
	present, former := execute.FormerName(work, manifest)
	if !former {
		return false, nil
	}
	// Past the cache: such Works are few, and an object would be deleted for one that is not seen yet.
	other, key := &workv1alpha1.Work{}, types.NamespacedName{Namespace: work.Namespace, Name: present}
	if err := r.live.Get(ctx, key, other); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return false, nil
		}
		return false, fmt.Errorf("get work %s: %w", key, err)
	}
	m, err := execute.Manifest(other)
	return err == nil && identity.Of(m) == identity.Of(manifest), nil
}
