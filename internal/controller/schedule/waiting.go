package schedule

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/schedule"
	"github.com/argosy-io/argosy/internal/filter"
)

const (
	// askAgain is the minimal delay before estimators are asked again about a binding that waits for capacity. Estimators
	// do not report that their answers changed. askRate bounds these bindings per second.
	askAgain = 30 * time.Second
	askRate  = 20
	// refreshAfter is the delay after a change of a cluster before unscheduled bindings run again, so that their
	// conditions describe the current fleet. refreshRate bounds these bindings per second.
	refreshAfter = 5 * time.Second
	refreshRate  = 10
	// quotaRetry is the delay before a binding that a quota refused runs again without an event of a quota.
	quotaRetry = 5 * time.Minute
)

// retryAfter returns the delay before a binding runs again after a failure: 0 for never, unless estimators may report
// capacity by then.
func (r *reconciler) retryAfter(b workv1alpha2.Binding, failure error) time.Duration {
	var unfit *schedule.FitError
	if failure == nil || errors.As(failure, &unfit) || schedule.RunEnded(failure) || !schedule.NeedsRoom(b) ||
		!r.Fleet.Estimated() {
		return 0
	}
	return max(r.AskAgain, time.Duration(r.index.wanting())*time.Second/askRate)
}

// refused returns the bindings that the quotas of a namespace refused. A quota of it permits more now, or is gone.
func (r *reconciler) refused(ctx context.Context, q client.Object) []reconcile.Request {
	return filter.Listed(ctx, r.client, &workv1alpha2.ResourceBindingList{}, func(b client.Object) bool {
		return overQuota(b.(workv1alpha2.Binding))
	}, client.InNamespace(q.GetNamespace()))
}

// overQuota reports whether a quota refused the last placement of a binding.
func overQuota(b workv1alpha2.Binding) bool {
	c := meta.FindStatusCondition(b.BindingStatus().Conditions, workv1alpha2.Scheduled)
	return c != nil && c.Reason == workv1alpha2.ReasonQuotaExceeded
}

// refresh queues the unscheduled bindings that a change of the fleet does not concern: the run fails as before, but the
// message of the condition may change. A binding that is queued already runs once.
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

// wanting returns the number of waiting bindings that are placed by capacity.
func (x *index) wanting() (n int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for a := range x.waiting {
		for e := range a.all { // all bindings of this kind
			if schedule.NeedsRoom(e.binding) {
				n += len(a.all)
			}
			break
		}
	}
	return n
}

// failed returns the bindings whose last run failed.
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
