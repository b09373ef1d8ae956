package schedule

import (
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/schedule"
)

const (
	// askAgain is how long a binding waits at least that waits for room, until estimators are asked about it again: they
	// tell nobody that their answers changed. askRate is how many of them are looked at a second at most, however many
	// wait.
	askAgain = 30 * time.Second
	askRate  = 20
	// refreshAfter is how long after a change of a cluster what is not scheduled is looked at again, so that its condition
	// is about the fleet as it is; refreshRate how many a second.
	refreshAfter = 5 * time.Second
	refreshRate  = 10
)

// again is when a binding is looked at again whose run failed: never, unless estimators may have room for it by then.
func (r *reconciler) again(b workv1alpha2.Binding, failure error) time.Duration {
	var unfit *schedule.FitError
	if failure == nil || errors.As(failure, &unfit) || !schedule.NeedsRoom(b) || !r.Fleet.Estimated() {
		return 0
	}
	return max(r.AskAgain, time.Duration(r.index.wanting())*time.Second/askRate)
}

// refresh queues what is not scheduled and is not concerned by a change of the fleet: the run will fail as before, but
// what its condition says of the fleet may have changed. What is queued by then is looked at once.
func (r *reconciler) refresh(q queue) {
	for i, b := range r.index.failed() {
		after := r.RefreshAfter + time.Duration(i)*time.Second/refreshRate
		request := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(b)}
		if ordered, ok := q.(priorityqueue.PriorityQueue[reconcile.Request]); ok {
			later := handler.LowPriority
			ordered.AddWithOpts(priorityqueue.AddOpts{Priority: &later, After: after}, request)
		} else {
			q.AddAfter(request, after)
		}
	}
}

// wanting is how many bindings wait that are placed by room.
func (x *index) wanting() (n int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for a := range x.waiting {
		for e := range a.all { // all of them alike
			if schedule.NeedsRoom(e.binding) {
				n += len(a.all)
			}
			break
		}
	}
	return n
}

// failed are the bindings whose last run failed.
func (x *index) failed() (found []workv1alpha2.Binding) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for a := range x.waiting {
		for e := range a.all {
			if meta.IsStatusConditionFalse(e.binding.BindingStatus().Conditions, workv1alpha2.Scheduled) {
				found = append(found, e.binding)
			}
		}
	}
	return found
}
