package schedule

import (
	"context"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/schedule"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// byPriority queues bindings by schedulePriority, the highest first, and then in the order of events. The initial list
// of a start comes after later events.
var byPriority = handler.Funcs{
	CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) {
		later := 0
		if e.IsInInitialList {
			later = handler.LowPriority
		}
		enqueue(q, e.Object, later)
	},
	UpdateFunc:  func(_ context.Context, e event.UpdateEvent, q queue) { enqueue(q, e.ObjectNew, 0) },
	DeleteFunc:  func(_ context.Context, e event.DeleteEvent, q queue) { enqueue(q, e.Object, 0) },
	GenericFunc: func(_ context.Context, e event.GenericEvent, q queue) { enqueue(q, e.Object, 0) },
}

// enqueue adds a binding with its priority, and more to it.
func enqueue(q queue, obj client.Object, more int) {
	request := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(obj)}
	ordered, ok := q.(priorityqueue.PriorityQueue[reconcile.Request])
	b, isBinding := obj.(workv1alpha2.Binding)
	if !ok || !isBinding {
		q.Add(request)
		return
	}
	priority := int(schedule.Priority(b)) + more
	ordered.AddWithOpts(priorityqueue.AddOpts{Priority: &priority}, request)
}
