// Package filter has the event filters that several controllers use, and lists what an event concerns. A watch of
// objects emits no generic events, so no filter is about them.
package filter

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	placementv1beta1 "github.com/argosy-io/argosy/api/ocm/cluster/v1beta1"
)

// AfterStart passes all events except those for the objects that exist when the hub starts.
var AfterStart = predicate.Funcs{CreateFunc: func(e event.CreateEvent) bool { return !e.IsInInitialList }}

// Deletions passes deletions only.
var Deletions = predicate.Funcs{CreateFunc: func(event.CreateEvent) bool { return false }, UpdateFunc: noUpdates}

// Creations passes creations only.
var Creations = predicate.Funcs{DeleteFunc: func(event.DeleteEvent) bool { return false }, UpdateFunc: noUpdates}

// CreationsAndDeletions passes no updates.
var CreationsAndDeletions = predicate.Funcs{UpdateFunc: noUpdates}

func noUpdates(event.UpdateEvent) bool { return false }

// LastState returns the object of a deletion event, in its last known state if the event was missed.
func LastState(obj any) any {
	if gone, missed := obj.(cache.DeletedFinalStateUnknown); missed {
		return gone.Obj
	}
	return obj
}

// Changes passes creations, deletions, and the updates for which changed returns true.
func Changes[T client.Object](changed func(before, now T) bool) predicate.Funcs {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool { return changed(e.ObjectOld.(T), e.ObjectNew.(T)) },
	}
}

// Updates passes the updates for which changed returns true, and no creations and deletions.
func Updates[T client.Object](changed func(before, now T) bool) predicate.Funcs {
	p := Changes(changed)
	p.CreateFunc, p.DeleteFunc = Deletions.CreateFunc, Creations.DeleteFunc
	return p
}

// Respecified passes creations, deletions, and the updates by which the spec changes or the object is another one of
// its name. A cache that was behind shows a deletion and a creation as such an update.
var Respecified = Changes(func(before, now client.Object) bool {
	return before.GetGeneration() != now.GetGeneration() || before.GetUID() != now.GetUID() ||
		!before.GetDeletionTimestamp().Equal(now.GetDeletionTimestamp())
})

// Touched reports whether an update changed anything but the status: the spec, labels, annotations or finalizers.
func Touched(e event.UpdateEvent) bool {
	before, now := e.ObjectOld, e.ObjectNew
	return before.GetGeneration() != now.GetGeneration() || !maps.Equal(before.GetLabels(), now.GetLabels()) ||
		!maps.Equal(before.GetAnnotations(), now.GetAnnotations()) ||
		!slices.Equal(before.GetFinalizers(), now.GetFinalizers())
}

// Listed returns requests for the objects of a list that pass; all of them if pass is nil. If they cannot be listed, it
// logs the error and returns none.
func Listed(ctx context.Context, r client.Reader, list client.ObjectList, pass func(client.Object) bool,
	opts ...client.ListOption) (requests []reconcile.Request) {
	if err := r.List(ctx, list, append(opts, client.UnsafeDisableDeepCopy)...); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "list what an event concerns", "list", fmt.Sprintf("%T", list))
		return nil
	}
	_ = meta.EachListItem(list, func(o runtime.Object) error {
		if obj := o.(client.Object); pass == nil || pass(obj) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(obj)})
		}
		return nil
	})
	return requests
}

// Delayed enqueues what mapped returns after a delay, also for the former labels of an object. What is enqueued again
// meanwhile is enqueued once.
func Delayed(delay time.Duration, mapped handler.MapFunc) handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	enqueue := func(ctx context.Context, obj client.Object, q queue) {
		for _, request := range mapped(ctx, obj) {
			q.AddAfter(request, delay)
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { enqueue(ctx, e.Object, q) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			enqueue(ctx, e.ObjectNew, q)
			if !maps.Equal(e.ObjectOld.GetLabels(), e.ObjectNew.GetLabels()) {
				enqueue(ctx, e.ObjectOld, q)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { enqueue(ctx, e.Object, q) },
	}
}

// Chosen passes Placements that are new or gone, or that have chosen another number of clusters or groups.
var Chosen = Changes(func(was, is *placementv1beta1.Placement) bool {
	return was.UID != is.UID || !was.DeletionTimestamp.Equal(is.DeletionTimestamp) ||
		was.Status.NumberOfSelectedClusters != is.Status.NumberOfSelectedClusters ||
		!equality.Semantic.DeepEqual(was.Status.DecisionGroups, is.Status.DecisionGroups)
})
