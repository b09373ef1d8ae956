package dispatch

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
	"github.com/argosy-io/argosy/internal/scope"
)

// target returns the replicas by cluster of the workload that a template refers to, including those that a cluster
// keeps until they are replaced; nil if it refers to none, or to one without a placement.
func (r *reconciler) target(ctx context.Context, tmpl *unstructured.Unstructured) (map[string]int64, error) {
	gk, name, ok := fleet.TargetOf(tmpl)
	if !ok {
		return nil, nil
	}
	b, _, err := scope.BindingFor(ctx, r.client, gk, tmpl.GetNamespace(), name, client.UnsafeDisableDeepCopy)
	if err != nil || b == nil || len(b.BindingSpec().Clusters) == 0 {
		return nil, err
	}
	replicas := map[string]int64{}
	for _, c := range b.BindingSpec().Clusters {
		replicas[c.Name] = int64(c.Replicas)
	}
	for _, t := range b.BindingSpec().GracefulEvictionTasks {
		if t.Replicas != nil && t.PurgeMode != policyv1alpha1.PurgeModeDirectly {
			replicas[t.FromCluster] += int64(*t.Replicas)
		}
	}
	return replicas, nil
}

// replaced selects bindings whose replicas by cluster changed.
var replaced = predicate.Funcs{
	CreateFunc: func(e event.CreateEvent) bool { return !e.IsInInitialList },
	UpdateFunc: func(e event.UpdateEvent) bool {
		was, is := e.ObjectOld.(workv1alpha2.Binding).BindingSpec(), e.ObjectNew.(workv1alpha2.Binding).BindingSpec()
		return !slices.EqualFunc(was.Clusters, is.Clusters, func(a, b workv1alpha2.TargetCluster) bool {
			return a.Name == b.Name && a.Replicas == b.Replicas
		}) ||
			!slices.Equal(was.LeftGracefully(), is.LeftGracefully())
	},
}

// about returns the bindings of templates that may refer to the workload of a binding: a few, each of which checks it
// again.
func (r *reconciler) about(ctx context.Context, obj client.Object) []reconcile.Request {
	var out []reconcile.Request
	for _, gk := range fleet.KindsWithTarget() {
		out = append(out, r.bindings(ctx, func(b workv1alpha2.Binding) bool {
			return b.GetNamespace() == obj.GetNamespace() && b.GetName() != obj.GetName()
		}, client.MatchingFields{byTemplate: templateIndex(gk.String(), obj.GetNamespace())})...)
	}
	return out
}
