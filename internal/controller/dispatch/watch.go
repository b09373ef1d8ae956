package dispatch

import (
	"cmp"
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
	"github.com/argosy-io/argosy/internal/core/dispatch"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/core/release"
	"github.com/argosy-io/argosy/internal/core/schedule"
	"github.com/argosy-io/argosy/internal/filter"
	"github.com/argosy-io/argosy/internal/interpreter"
	"github.com/argosy-io/argosy/internal/scope"
)

// watch sets the events that reconcile a binding. Every binding is reconciled at the start, with full caches, so
// initial objects need no event. A mapping gets the old and the new object, since a policy also matters to the
// templates that it no longer selects.
func (r *reconciler) watch(b *builder.Builder) *builder.Builder {
	for _, kind := range scope.Bindings.Kinds() {
		// The status of a binding has no effect here.
		b = b.Watches(kind, &handler.EnqueueRequestForObject{},
			builder.WithPredicates(predicate.Or[client.Object](specChanged, filter.Updates(dispatch.Repaced))))
	}
	b = b.Watches(&workv1alpha2.ResourceBinding{}, handler.EnqueueRequestsFromMapFunc(r.about),
		builder.WithPredicates(replaced))
	for _, kind := range scope.Overrides.Kinds() {
		b = b.Watches(kind, handler.EnqueueRequestsFromMapFunc(r.selectedBy),
			builder.WithPredicates(filter.AfterStart, predicate.GenerationChangedPredicate{}))
	}
	return b.
		WatchesRawSource(interpreter.Changes(r.Interpreter, r.client)).
		Watches(&workv1alpha1.Work{}, handler.EnqueueRequestsFromMapFunc(scope.BindingRequests),
			builder.WithPredicates(predicate.Or[client.Object](workTouched, workMoved))).
		Watches(&releasev1alpha1.ReleaseRevision{}, handler.EnqueueRequestsFromMapFunc(r.madeFrom),
			builder.WithPredicates(filter.AfterStart, filter.CreationsAndDeletions)).
		Watches(&workv1alpha1.Work{}, handler.EnqueueRequestsFromMapFunc(r.waiters), builder.WithPredicates(sidecarsMoved)).
		Watches(&workv1alpha1.Work{}, handler.EnqueueRequestsFromMapFunc(r.requiredBy),
			builder.WithPredicates(filter.Deletions)).
		Watches(&workv1alpha2.ClusterResourceBinding{}, handler.EnqueueRequestsFromMapFunc(r.waiters),
			builder.WithPredicates(sidecarsPlaced)).
		Watches(&workv1alpha1.Work{}, handler.EnqueueRequestsFromMapFunc(pullFor), builder.WithPredicates(pulls)).
		Watches(&clusterv1alpha1.Cluster{}, handler.EnqueueRequestsFromMapFunc(r.following),
			builder.WithPredicates(answersAnew)).
		Watches(&clusterv1alpha1.Cluster{},
			handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, obj client.Object) []reconcile.Request {
				return r.targeting(ctx, obj.GetName())
			}), builder.WithPredicates(filter.AfterStart, clusterMoved)).
		Watches(&clusterv1alpha1.Cluster{}, handler.EnqueueRequestsFromMapFunc(r.purgedFrom), builder.WithPredicates(falls)).
		Watches(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(func(ctx context.Context,
			obj client.Object) []reconcile.Request {
			cluster, err := names.ClusterOf(obj.GetName())
			if err != nil {
				return nil
			}
			return r.targeting(ctx, cluster)
		}), builder.WithPredicates(filter.AfterStart, filter.Creations)).
		Watches(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(r.bindingsOfNamespace),
			builder.WithPredicates(overwriteForbidden)).
		WatchesRawSource(source.Func(func(ctx context.Context,
			q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			r.Templates.Subscribe(func(was, is *unstructured.Unstructured) {
				if release.ConfigChanges(was, is) {
					u := cmp.Or(is, was)
					for _, req := range r.configRead(ctx, u.GetNamespace(), u.GetName()) {
						q.Add(req)
					}
				}
				if is == nil || was != nil && !claimedAnew(was, is) {
					return
				}
				// A binding that does not exist yet causes an event when it is created.
				b, _, err := scope.BindingFor(ctx, r.client, is.GroupVersionKind().GroupKind(), is.GetNamespace(), is.GetName(),
					client.UnsafeDisableDeepCopy)
				if err != nil {
					ctrl.LoggerFrom(ctx).Error(err, "find the binding of a template that changed")
				} else if b != nil {
					q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(b)})
				}
			})
			return nil
		}))
}

// waiters returns the workloads that wait for SidecarSets, after a change of one of these.
func (r *reconciler) waiters(context.Context, client.Object) []reconcile.Request {
	return r.waiting.requests()
}

// claimedAnew reports whether another policy claims a template than before. Manifests carry the claim, and the hub may
// see the new binding before the claim. Other changes of the template reach the binding and cause an event of it; a
// claim that ends stays in the manifests until the next one.
func claimedAnew(was, is *unstructured.Unstructured) bool {
	before, _ := propagate.Claimed(was)
	now, claimed := propagate.Claimed(is)
	return claimed && now != before
}

// specChanged selects changes of a binding that change its Works: its spec, its labels and its deletion.
var specChanged = predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{},
	filter.Changes(func(was, is client.Object) bool {
		return !was.GetDeletionTimestamp().Equal(is.GetDeletionTimestamp())
	}))

// workTouched selects Works that differ from what was written, and deleted ones; neither our own creations nor
// statuses.
var workTouched = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false },
	UpdateFunc: filter.Touched,
}

// clusterMoved selects changes of a cluster that may change the overrides or the version of a manifest, and clusters
// that join or leave.
var clusterMoved = filter.Changes(func(was, is *clusterv1alpha1.Cluster) bool {
	return schedule.AffinityMayChange(was, is) ||
		!slices.EqualFunc(was.Status.APIEnablements, is.Status.APIEnablements, sameKinds)
})

func sameKinds(was, is clusterv1alpha1.APIEnablement) bool {
	return was.GroupVersion == is.GroupVersion && slices.Equal(was.Resources, is.Resources)
}

// byTemplate is the index of bindings by the kind of their templates.
const byTemplate = "dispatch.template"

// templateIndexes returns the index values of a binding: its template's kind or any, its namespace or any.
func templateIndexes(obj client.Object) []string {
	ref := obj.(workv1alpha2.Binding).BindingSpec().Resource
	kind := match.GroupKind(ref.APIVersion, ref.Kind).String()
	values := []string{templateIndex(kind, ""), templateIndex("", "")}
	if ref.Namespace != "" {
		values = append(values, templateIndex(kind, ref.Namespace), templateIndex("", ref.Namespace))
	}
	return values
}

// templateIndex returns the index value of templates; an empty kind or namespace is any.
func templateIndex(kind, namespace string) string { return kind + "/" + namespace }

// selectedBy returns the bindings whose templates an override policy may select, or of which it may select ConfigMaps
// that releases version: a ConfigMap that is selected has no versions. It ignores labels, which may have changed.
func (r *reconciler) selectedBy(ctx context.Context, obj client.Object) []reconcile.Request {
	selectors := obj.(policyv1alpha1.Override).OverrideSpec().ResourceSelectors
	if len(selectors) == 0 {
		selectors = []policyv1alpha1.ResourceSelector{{Namespace: obj.GetNamespace()}}
	}
	var out []reconcile.Request
	for _, sel := range selectors {
		// A selector without a namespace in a namespaced policy selects a cluster-scoped kind.
		kind, namespace := "", sel.Namespace
		if sel.Kind != "" {
			kind = match.GroupKind(sel.APIVersion, sel.Kind).String()
		}
		out = append(out, r.bindings(ctx, func(b workv1alpha2.Binding) bool {
			return sel.Name == "" || sel.Name == b.BindingSpec().Resource.Name
		}, client.MatchingFields{byTemplate: templateIndex(kind, namespace)})...)
		if match.GroupKind(sel.APIVersion, sel.Kind) == release.ConfigMapKind {
			out = append(out, r.configRead(ctx, cmp.Or(namespace, obj.GetNamespace()),
				cmp.Or(sel.Name, release.AnyConfigMap))...)
		}
	}
	// Enclosed objects are selected by their own kind and name, which bindings do not have.
	return append(out, r.bindings(ctx, nil,
		client.MatchingFields{byTemplate: templateIndex(releasev1alpha1.EnclosedManifestKind.String(), "")})...)
}

// falls selects clusters that stop responding.
var falls = filter.Updates(func(was, is *clusterv1alpha1.Cluster) bool {
	return !membership.KnownNotReady(was) && membership.KnownNotReady(is)
})

// purgedFrom returns the bindings whose Works in a cluster are deleted directly.
func (r *reconciler) purgedFrom(ctx context.Context, cluster client.Object) []reconcile.Request {
	return r.bindings(ctx, func(b workv1alpha2.Binding) bool {
		return dispatch.LeavesDirectly(b, cluster.GetName())
	})
}

// targeting returns the bindings with a Work in the cluster.
func (r *reconciler) targeting(ctx context.Context, cluster string) []reconcile.Request {
	return r.bindings(ctx, func(b workv1alpha2.Binding) bool {
		return workv1alpha2.HasTarget(dispatch.Targets(b), cluster)
	})
}

// bindings returns the bindings that pass; all of them if pass is nil.
func (r *reconciler) bindings(ctx context.Context, pass func(workv1alpha2.Binding) bool,
	opts ...client.ListOption) (out []reconcile.Request) {
	bindings, err := scope.Bindings.List(ctx, r.client, append(opts, client.UnsafeDisableDeepCopy)...)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "list the bindings that an event concerns")
	}
	for _, b := range bindings {
		if pass == nil || pass(b) {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(b)})
		}
	}
	return out
}
