package schedule

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/schedule"
)

// peers lets one binding with affinity groups at a time be placed, so that none is placed without having seen the
// others: the lock is held from the look at the others until the placement is written and assumed.
type peers struct {
	sync.Mutex
	// assumed are placements written that the cache may not show yet.
	assumed map[client.ObjectKey]workv1alpha2.Binding
}

// of are where the others of b's groups are, by what is known of them and what was written since.
func (p *peers) of(b workv1alpha2.Binding, known []workv1alpha2.Binding) schedule.Peers {
	for i, other := range known {
		key := client.ObjectKeyFromObject(other)
		newer, ok := p.assumed[key]
		switch {
		case ok && newer.GetUID() == other.GetUID() && newer.GetGeneration() > other.GetGeneration():
			known[i] = newer
		case ok:
			delete(p.assumed, key)
		}
	}
	return schedule.PeersOf(b, known)
}

// assume takes b's placement for written. The caller holds the lock.
func (p *peers) assume(b workv1alpha2.Binding) {
	if p.assumed == nil {
		p.assumed = map[client.ObjectKey]workv1alpha2.Binding{}
	}
	p.assumed[client.ObjectKeyFromObject(b)] = b.DeepCopyObject().(workv1alpha2.Binding)
}

// forget lets go of a binding that is gone.
func (p *peers) forget(key client.ObjectKey) {
	p.Lock()
	defer p.Unlock()
	delete(p.assumed, key)
}

// waitingPeers are the bindings of obj's groups that are not scheduled: where obj is now, or no longer is, may let them
// in.
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
