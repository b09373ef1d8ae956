package schedule

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/schedule"
	"github.com/argosy-io/argosy/internal/scope"
)

// peers lets one binding with affinity groups at a time be placed, so that none is placed without having seen the others:
// the lock is held from the look at the others until the placement is written and assumed.
type peers struct {
	sync.Mutex
	// assumed are placements written that the cache may not show yet.
	assumed map[client.ObjectKey]workv1alpha2.Binding
}

// of are where the others of b's groups are, by the cache and what was written since.
func (p *peers) of(ctx context.Context, c client.Client, b workv1alpha2.Binding) (schedule.Peers, error) {
	all, err := scope.Bindings.List(ctx, c, client.UnsafeDisableDeepCopy)
	if err != nil {
		return schedule.Peers{}, fmt.Errorf("list the bindings of its affinity groups: %w", err)
	}
	still := map[client.ObjectKey]workv1alpha2.Binding{}
	for i, listed := range all {
		key := client.ObjectKeyFromObject(listed)
		if newer, ok := p.assumed[key]; ok && newer.GetUID() == listed.GetUID() && newer.GetGeneration() > listed.GetGeneration() {
			all[i], still[key] = newer, newer
		}
	}
	p.assumed = still
	return schedule.PeersOf(b, all), nil
}

// assume takes b's placement for written. The caller holds the lock.
func (p *peers) assume(b workv1alpha2.Binding) {
	p.assumed[client.ObjectKeyFromObject(b)] = b.DeepCopyObject().(workv1alpha2.Binding)
}

// waitingPeers are the bindings of obj's groups that are not scheduled: where obj is now, or no longer is, may let them in.
func (r *reconciler) waitingPeers(ctx context.Context, obj client.Object) []reconcile.Request {
	b, ok := obj.(workv1alpha2.Binding)
	if !ok || !schedule.Grouped(b) {
		return nil
	}
	all, err := scope.Bindings.List(ctx, r.client, client.UnsafeDisableDeepCopy)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "list the bindings that wait for another of their affinity group")
		return nil
	}
	var waiting []reconcile.Request
	for _, other := range all {
		together, apart := schedule.ArePeers(b, other)
		if (together || apart) && !meta.IsStatusConditionTrue(other.BindingStatus().Conditions, workv1alpha2.Scheduled) {
			waiting = append(waiting, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(other)})
		}
	}
	return waiting
}
