package failover

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/capacity"
	"github.com/argosy-io/argosy/internal/core/adjust/failover"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
	"github.com/argosy-io/argosy/internal/core/dispatch"
	"github.com/argosy-io/argosy/internal/core/schedule"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// plan is the only request: each reconciliation plans for all bindings.
var plan = reconcile.Request{}

// changes enqueues the plan when clusters change. It is synced when the fleet is known.
type changes struct{ r *reconciler }

var _ source.SyncingSource = changes{}

// Start implements source.Source.
func (c changes) Start(_ context.Context, q queue) error {
	q.Add(plan)
	c.r.Fleet.OnChange(func(change capacity.Change) {
		if !schedule.RoomAlone(change.Old, change.New) || readiness(change.Old) != readiness(change.New) ||
			c.r.wantsRoom.Load() {
			q.AddAfter(plan, c.r.Gather)
		}
	})
	c.r.Fleet.OnRoom(func(string) {
		if c.r.wantsRoom.Load() {
			q.AddAfter(plan, c.r.Gather)
		}
	})
	return nil
}

// WaitForSync implements source.SyncingSource.
func (c changes) WaitForSync(ctx context.Context) error { return c.r.Fleet.WaitForSync(ctx) }

// readiness returns the statuses of the conditions Ready and FailoverPaused of a cluster, and whether it is lost.
func readiness(c *clusterv1alpha1.Cluster) [3]string {
	if c == nil {
		return [3]string{}
	}
	var out [3]string
	if _, lost := membership.LostSince(c); lost {
		out[2] = "lost"
	}
	for i, kind := range []string{clusterv1alpha1.ClusterConditionReady, clusterv1alpha1.ClusterConditionFailoverPaused} {
		if condition := meta.FindStatusCondition(c.Status.Conditions, kind); condition != nil {
			out[i] = string(condition.Status)
		}
	}
	return out
}

// mayAffectPlan reports whether the plan may depend on a binding.
func (r *reconciler) mayAffectPlan(b workv1alpha2.Binding) bool {
	return failover.MayLeave(b, r.Fleet.Snapshot().Cluster)
}

// planOnBindingChange enqueues the plan when a binding that it may depend on changes. The first plan covers all
// bindings.
func (r *reconciler) planOnBindingChange() handler.EventHandler {
	add := func(q queue) { q.AddAfter(plan, r.Gather) }
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) {
			if !e.IsInInitialList && r.mayAffectPlan(e.Object.(workv1alpha2.Binding)) {
				add(q)
			}
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			was, is := e.ObjectOld.(workv1alpha2.Binding), e.ObjectNew.(workv1alpha2.Binding)
			if was.GetGeneration() == is.GetGeneration() && !dispatch.Repaced(was, is) &&
				equality.Semantic.DeepEqual(was.BindingStatus(), is.BindingStatus()) {
				return
			}
			if r.mayAffectPlan(was) || r.mayAffectPlan(is) {
				add(q)
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) {
			if r.mayAffectPlan(e.Object.(workv1alpha2.Binding)) {
				add(q)
			}
		},
	}
}
