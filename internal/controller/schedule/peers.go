package schedule

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/schedule"
)

// peers serializes the scheduling of bindings with affinity groups, so that each takes the placements of the others
// into account. The lock is locked from reading the others until the placement is recorded in pending.
type peers struct {
	sync.Mutex
	// pending are placements that the index may not show yet.
	pending commit.PendingWrites[workv1alpha2.Binding]
}

// placements returns the clusters of the other bindings in b's groups, with pending writes. It reuses the memory of
// indexed.
func (p *peers) placements(b workv1alpha2.Binding, indexed []workv1alpha2.Binding) schedule.Peers {
	for i, other := range indexed {
		key := client.ObjectKeyFromObject(other)
		indexed[i] = commit.Newest(other, p.pending.Get(key))
		p.pending.Seen(key, other)
	}
	return schedule.PeersOf(b, indexed)
}

// waitingPeers returns the bindings of obj's groups that are not scheduled: where obj is now, or no longer is, may let
// them in.
func (r *reconciler) waitingPeers(_ context.Context, obj client.Object) []reconcile.Request {
	b, ok := obj.(workv1alpha2.Binding)
	if !ok || !schedule.Grouped(b) {
		return nil
	}
	var waiting []reconcile.Request
	for _, other := range r.index.peers(b) {
		if !meta.IsStatusConditionTrue(other.BindingStatus().Conditions, workv1alpha2.Scheduled) {
			waiting = append(waiting, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(other)})
		}
	}
	return waiting
}
