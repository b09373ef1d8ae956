package schedule

import (
	"context"
	"slices"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

func TestBindingsOfAHigherPriorityAreScheduledFirst(t *testing.T) {
	q := priorityqueue.New[reconcile.Request]("test")
	defer q.ShutDown()
	binding := func(name string, priority int32) client.Object {
		b := &workv1alpha2.ResourceBinding{}
		b.Name, b.Spec.SchedulePriority = name, &workv1alpha2.SchedulePriority{Priority: priority}
		return b
	}
	plain := &workv1alpha2.ResourceBinding{}
	plain.Name = "plain"
	listed := &workv1alpha2.ResourceBinding{}
	listed.Name = "listed"
	ctx := context.Background()
	byPriority.Create(ctx, event.CreateEvent{Object: listed, IsInInitialList: true}, q)
	byPriority.Create(ctx, event.CreateEvent{Object: binding("least", -1000)}, q)
	byPriority.Create(ctx, event.CreateEvent{Object: plain}, q)
	byPriority.Update(ctx, event.UpdateEvent{ObjectNew: binding("batch", 10)}, q)
	byPriority.Create(ctx, event.CreateEvent{Object: binding("critical", 1_000_000_000)}, q)
	byPriority.Update(ctx, event.UpdateEvent{ObjectNew: binding("web", 10)}, q)
	byPriority.Create(ctx, event.CreateEvent{Object: binding("recovered", 1_000_000), IsInInitialList: true}, q)

	var got []string
	for range 7 {
		item, _ := q.Get()
		got = append(got, item.Name)
		q.Done(item)
	}
	if want := []string{"critical", "recovered", "batch", "web", "plain", "listed", "least"}; !slices.Equal(got, want) {
		t.Errorf("taken in the order %v, want %v", got, want)
	}
}
