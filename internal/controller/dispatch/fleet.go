package dispatch

import (
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/dispatch"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
	"github.com/argosy-io/argosy/internal/filter"
	"github.com/argosy-io/argosy/internal/scope"
)

// warnFleet records an event for each condition of the division that begins or changes.
func (r *reconciler) warnFleet(b workv1alpha2.Binding, tmpl *unstructured.Unstructured, conditions []fleet.Condition) {
	for _, kind := range fleet.ConditionTypes() {
		var err error
		if i := slices.IndexFunc(conditions, func(c fleet.Condition) bool { return c.Type == kind }); i >= 0 {
			err = errors.New(conditions[i].Message)
		}
		r.warn(b, tmpl, "", kind, err)
	}
}

// workMoved selects the changes of a Work's status that other Works of the template wait for.
var workMoved = filter.Updates(dispatch.Moved)

// answersAnew selects clusters that start or stop responding.
var answersAnew = filter.Updates(dispatch.Reachability)

// following returns the bindings with a Work in the cluster on which their other Works depend.
func (r *reconciler) following(ctx context.Context, cluster client.Object) []reconcile.Request {
	var works workv1alpha1.WorkList
	if err := r.client.List(ctx, &works, client.InNamespace(names.ExecutionSpace(cluster.GetName())),
		client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "list the works of a cluster", "cluster", cluster.GetName())
		return nil
	}
	var out []reconcile.Request
	for i := range works.Items {
		if dispatch.Follows(&works.Items[i]) {
			out = append(out, scope.BindingRequests(ctx, &works.Items[i])...)
		}
	}
	return out
}
