package release

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/dispatch"
	"github.com/argosy-io/argosy/internal/core/release"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
	"github.com/argosy-io/argosy/internal/filter"
	"github.com/argosy-io/argosy/internal/scope"
	"github.com/argosy-io/argosy/internal/template"
)

// The indexes. byTarget finds releases and ReleaseRevisions by workload, byRelease approvals by the name of the
// release, and byPlan bindings by the name of the release whose plan they have.
const (
	byTarget  = "release.target"
	byRelease = "release.release"
	byPlan    = "release.plan"
)

func index(ctx context.Context, indexer client.FieldIndexer) error {
	for _, i := range []struct {
		kind  client.Object
		name  string
		value client.IndexerFunc
	}{
		{&releasev1alpha1.Release{}, byTarget, func(obj client.Object) []string {
			var values []string
			for _, t := range obj.(*releasev1alpha1.Release).Spec.Targets {
				values = append(values, targetIndex(t.Ref))
			}
			return values
		}},
		{&releasev1alpha1.Release{}, byGuard, func(obj client.Object) []string {
			if obj.(*releasev1alpha1.Release).Status.Guard != nil {
				return []string{guardWaits}
			}
			return nil
		}},
		{&releasev1alpha1.ReleaseRevision{}, byTarget, func(obj client.Object) []string {
			return []string{targetIndex(obj.(*releasev1alpha1.ReleaseRevision).Spec.Target)}
		}},
		{&releasev1alpha1.ReleaseApproval{}, byRelease, func(obj client.Object) []string {
			return []string{obj.(*releasev1alpha1.ReleaseApproval).Spec.Release}
		}},
		{&workv1alpha2.ResourceBinding{}, byPlan, func(obj client.Object) []string {
			if p := fleet.PlanOf(obj.GetAnnotations()); p != nil {
				return []string{p.Release}
			}
			return nil
		}},
	} {
		if err := indexer.IndexField(ctx, i.kind, i.name, i.value); err != nil {
			return fmt.Errorf("index %T by %s: %w", i.kind, i.name, err)
		}
	}
	return nil
}

// watch sets what makes the controller reconcile a release. Each release is reconciled when the hub starts.
func (r *reconciler) watch(b *builder.Builder) *builder.Builder {
	for _, kind := range scope.Overrides.Kinds() {
		b = b.Watches(kind, handler.EnqueueRequestsFromMapFunc(r.inNamespace),
			builder.WithPredicates(filter.AfterStart, filter.Respecified))
	}
	return b.
		For(&releasev1alpha1.Release{}, builder.WithPredicates(touched)).
		Watches(&releasev1alpha1.Release{}, handler.EnqueueRequestsFromMapFunc(r.rivals),
			builder.WithPredicates(filter.AfterStart, phaseChanged)).
		Watches(&releasev1alpha1.Release{}, handler.EnqueueRequestsFromMapFunc(r.waiting),
			builder.WithPredicates(filter.AfterStart, useChanged)).
		Watches(&releasev1alpha1.ReleaseGuard{}, handler.EnqueueRequestsFromMapFunc(r.waiting),
			builder.WithPredicates(filter.AfterStart, filter.Respecified)).
		Watches(&releasev1alpha1.ReleaseStrategy{}, handler.EnqueueRequestsFromMapFunc(r.inNamespace),
			builder.WithPredicates(filter.AfterStart, filter.Respecified)).
		Watches(&releasev1alpha1.ReleaseCheck{}, handler.EnqueueRequestsFromMapFunc(r.inNamespace),
			builder.WithPredicates(filter.AfterStart, filter.Creations)).
		Watches(&releasev1alpha1.ReleaseApproval{}, handler.EnqueueRequestsFromMapFunc(approved),
			builder.WithPredicates(filter.AfterStart)).
		Watches(&releasev1alpha1.ReleaseRevision{},
			handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, obj client.Object) []reconcile.Request {
				return r.ofTarget(ctx, obj.GetNamespace(), obj.(*releasev1alpha1.ReleaseRevision).Spec.Target)
			}), builder.WithPredicates(filter.AfterStart)).
		Watches(&workv1alpha2.ResourceBinding{}, handler.EnqueueRequestsFromMapFunc(r.ofBinding),
			builder.WithPredicates(predicate.Funcs{UpdateFunc: filter.Touched})).
		Watches(&workv1alpha1.Work{}, filter.Delayed(reportDelay, r.ofWork),
			builder.WithPredicates(filter.AfterStart, reported)).
		Watches(&clusterv1alpha1.Cluster{},
			handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, _ client.Object) []reconcile.Request {
				return r.active(ctx)
			}), builder.WithPredicates(filter.AfterStart, clusterChanged)).
		WatchesRawSource(source.Func(func(ctx context.Context, q queue) error {
			r.Checks.Subscribe(func(release types.NamespacedName) { q.Add(reconcile.Request{NamespacedName: release}) })
			r.Checks.SubscribeBudgets(func(string) {
				for _, req := range r.waiting(ctx, nil) {
					q.Add(req)
				}
			})
			return nil
		})).
		WatchesRawSource(r.templates(r.ofTarget, func(context.Context, *unstructured.Unstructured) bool { return true }))
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// templates makes the requests of workloads whose template has changed, and counts, or that read a ConfigMap that has.
// After a deletion, the argument of counts is nil.
func (r *reconciler) templates(
	requests func(ctx context.Context, namespace string, ref releasev1alpha1.ReleaseObjectReference) []reconcile.Request,
	counts func(ctx context.Context, is *unstructured.Unstructured) bool) source.Source {
	return source.Func(func(ctx context.Context, q queue) error {
		r.Templates.Subscribe(func(was, is *unstructured.Unstructured) {
			u := cmp.Or(is, was)
			workloads := []release.Workload{{Namespace: u.GetNamespace(), ReleaseObjectReference: release.ReferenceOf(u)}}
			switch {
			case release.ConfigChanges(was, is):
				workloads = template.WorkloadsReading(ctx, r.client, u.GetNamespace(), u.GetName())
			case u.GetNamespace() == "", is != nil && was != nil && was.GetGeneration() == is.GetGeneration() &&
				was.GetUID() == is.GetUID() && maps.Equal(was.GetAnnotations(), is.GetAnnotations()), !counts(ctx, is):
				return
			}
			for _, w := range workloads {
				for _, req := range requests(ctx, w.Namespace, w.ReleaseObjectReference) {
					q.Add(req)
				}
			}
		})
		return nil
	})
}

// touched passes what users change of a release. Statuses are the hub's own.
var touched = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	return filter.Touched(e) || e.ObjectOld.GetUID() != e.ObjectNew.GetUID() ||
		!e.ObjectOld.GetDeletionTimestamp().Equal(e.ObjectNew.GetDeletionTimestamp())
}}

// phaseChanged passes releases for which others of the same workload may wait.
var phaseChanged = filter.Changes(func(was, is *releasev1alpha1.Release) bool {
	return was.Status.Phase != is.Status.Phase || was.Spec.Supersede != is.Spec.Supersede
})

// reported passes Works that were written, and what members report.
var reported = filter.Changes(func(was, is *workv1alpha1.Work) bool {
	return was.Generation != is.Generation || !maps.Equal(was.Annotations, is.Annotations) ||
		!reflect.DeepEqual(was.Status, is.Status)
})

// clusterChanged passes clusters that begin or stop to answer, or that stages may select differently.
var clusterChanged = filter.Changes(func(was, is *clusterv1alpha1.Cluster) bool {
	return dispatch.Reachability(was, is) || !maps.Equal(was.Labels, is.Labels)
})

// active returns the releases that may have a next step.
func (r *reconciler) active(ctx context.Context, options ...client.ListOption) []reconcile.Request {
	return filter.Listed(ctx, r.client, &releasev1alpha1.ReleaseList{}, func(o client.Object) bool {
		return release.Active(o.(*releasev1alpha1.Release))
	}, options...)
}

// inNamespace returns the active releases in the namespace of an object; all for one without a namespace.
func (r *reconciler) inNamespace(ctx context.Context, obj client.Object) []reconcile.Request {
	return r.active(ctx, client.InNamespace(obj.GetNamespace()))
}

// ofTarget returns the active releases of a workload.
func (r *reconciler) ofTarget(ctx context.Context, namespace string,
	ref releasev1alpha1.ReleaseObjectReference) []reconcile.Request {
	return r.active(ctx, client.InNamespace(namespace), client.MatchingFields{byTarget: targetIndex(ref)})
}

// rivals returns the active releases of the workloads of a release.
func (r *reconciler) rivals(ctx context.Context, obj client.Object) []reconcile.Request {
	var out []reconcile.Request
	for _, t := range obj.(*releasev1alpha1.Release).Spec.Targets {
		for _, req := range r.ofTarget(ctx, obj.GetNamespace(), t.Ref) {
			if req.Name != obj.GetName() {
				out = append(out, req)
			}
		}
	}
	return out
}

// approved returns the release of an approval.
func approved(_ context.Context, obj client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: obj.GetNamespace(),
		Name: obj.(*releasev1alpha1.ReleaseApproval).Spec.Release}}}
}

// ofBinding returns the active releases of the template of a binding, and the release whose plan the binding has, which
// may not exist any more.
func (r *reconciler) ofBinding(ctx context.Context, obj client.Object) []reconcile.Request {
	b := obj.(*workv1alpha2.ResourceBinding)
	return append(r.ofTarget(ctx, b.Namespace, targetOf(b)), planned(b)...)
}

// ofWork returns the release whose plan the binding of a Work has; without a plan, those that record a direct change.
func (r *reconciler) ofWork(ctx context.Context, work client.Object) []reconcile.Request {
	key, ok := scope.BindingOf(work)
	if !ok || key.Namespace == "" {
		return nil
	}
	b := &workv1alpha2.ResourceBinding{}
	if err := r.client.Get(ctx, key, b, client.UnsafeDisableDeepCopy); err != nil {
		return nil // the binding is an event of its own
	}
	if requests := planned(b); len(requests) > 0 {
		return requests
	}
	return r.ofTarget(ctx, b.Namespace, targetOf(b))
}

// reportDelay collects the reports of members: a step reads all Works of a release, and a stage with many clusters
// causes as many reports.
const reportDelay = 200 * time.Millisecond

// planned returns the release whose plan a binding has.
func planned(b *workv1alpha2.ResourceBinding) []reconcile.Request {
	p := fleet.PlanOf(b.Annotations)
	if p == nil || p.Release == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: b.Namespace, Name: p.Release}}}
}
