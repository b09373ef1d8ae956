package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	networkingv1alpha1 "github.com/argosy-io/argosy/api/networking/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	remedyv1alpha1 "github.com/argosy-io/argosy/api/remedy/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/core/source/service"
	"github.com/argosy-io/argosy/internal/filter"
	"github.com/argosy-io/argosy/internal/scope"
)

var serviceKind = schema.GroupKind{Kind: "Service"}

// crossCluster reconciles MultiClusterServices.
type crossCluster struct{ *exchanges }

func setupCrossCluster(mgr ctrl.Manager, x *exchanges) error {
	r := &crossCluster{x}
	return ctrl.NewControllerManagedBy(mgr).Named("multi-cluster-service").
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrency,
			RateLimiter: commit.Backoff[reconcile.Request](firstRetry)}).
		For(&networkingv1alpha1.MultiClusterService{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&workv1alpha2.ResourceBinding{}, handler.EnqueueRequestsFromMapFunc(managed), builder.WithPredicates(placed)).
		Watches(&workv1alpha1.Work{}, handler.EnqueueRequestsFromMapFunc(owner(networkingv1alpha1.MultiClusterServiceKind)),
			builder.WithPredicates(worked)).
		Watches(&workv1alpha1.Work{}, handler.EnqueueRequestsFromMapFunc(r.sent), builder.WithPredicates(worked)).
		Watches(&clusterv1alpha1.Cluster{}, handler.EnqueueRequestsFromMapFunc(r.allServices), builder.WithPredicates(moved)).
		Watches(&remedyv1alpha1.Remedy{}, handler.EnqueueRequestsFromMapFunc(r.allServices),
			builder.WithPredicates(filter.AfterStart, filter.Respecified)).
		WatchesRawSource(x.endpoints(networkingv1alpha1.MultiClusterServiceKind)).
		WatchesRawSource(source.Func(func(_ context.Context,
			q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			x.Templates.Subscribe(func(was, is *unstructured.Unstructured) {
				obj := cmp.Or(is, was)
				if obj.GroupVersionKind().GroupKind() == serviceKind && !sameTemplate(was, is) {
					q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}})
				}
			})
			return nil
		})).
		Complete(r)
}

// managed maps a binding to the MultiClusterService that it was created for.
func managed(_ context.Context, b client.Object) []reconcile.Request {
	notes := b.GetAnnotations()
	if b.GetLabels()[workv1alpha2.BindingManagedByLabel] != networkingv1alpha1.MultiClusterServiceKind {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{
		Namespace: notes[networkingv1alpha1.MultiClusterServiceNamespaceKey],
		Name:      notes[networkingv1alpha1.MultiClusterServiceNameKey]}}}
}

// sent maps a Work to the MultiClusterService of the Service in it.
func (r *crossCluster) sent(ctx context.Context, w client.Object) []reconcile.Request {
	key, ok := serviceIn(w)
	if !ok {
		return nil
	}
	if err := r.client.Get(ctx, key, &networkingv1alpha1.MultiClusterService{}, client.UnsafeDisableDeepCopy); err != nil {
		return nil
	}
	return []reconcile.Request{{NamespacedName: key}}
}

// serviceIn returns the Service in a Work that a binding sends.
func serviceIn(w client.Object) (key types.NamespacedName, ok bool) {
	binding, ok := scope.BindingOf(w)
	if !ok || !strings.HasSuffix(binding.Name, names.Binding(serviceKind.Kind, "")) {
		return key, false
	}
	manifest, err := execute.Manifest(w.(*workv1alpha1.Work))
	if err != nil || manifest.GroupVersionKind().GroupKind() != serviceKind {
		return key, false
	}
	return client.ObjectKeyFromObject(manifest), true
}

// allServices maps a cluster or a Remedy to the MultiClusterServices that its change may affect.
func (r *crossCluster) allServices(ctx context.Context, _ client.Object) []reconcile.Request {
	return filter.Listed(ctx, r.client, &networkingv1alpha1.MultiClusterServiceList{}, nil)
}

// sameTemplate reports whether neither the content for members nor the claim changed.
func sameTemplate(was, is *unstructured.Unstructured) bool {
	return was != nil && is != nil && was.GetUID() == is.GetUID() && propagate.Digest(was) == propagate.Digest(is) &&
		claimed(was) == claimed(is)
}

// claim identifies the MultiClusterService that claims a Service or its binding.
type claim struct{ by, id, namespace, name string }

func claimed(obj metav1.Object) claim {
	labels, notes := obj.GetLabels(), obj.GetAnnotations()
	by := cmp.Or(labels[policyv1alpha1.ClaimedByLabel], labels[workv1alpha2.BindingManagedByLabel])
	return claim{by, labels[networkingv1alpha1.MultiClusterServicePermanentIDLabel],
		notes[networkingv1alpha1.MultiClusterServiceNamespaceKey], notes[networkingv1alpha1.MultiClusterServiceNameKey]}
}

// Reconcile sends the Service to providers and consumers, and the endpoints of the providers to the consumers.
func (r *crossCluster) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	return r.result(r.reconcile(ctx, req.NamespacedName))
}

// reconcile also returns the time at which it must run again without an event; zero means never.
func (r *crossCluster) reconcile(ctx context.Context, key types.NamespacedName) (next time.Time, err error) {
	me := service.Owner{Kind: networkingv1alpha1.MultiClusterServiceKind, Namespace: key.Namespace, Name: key.Name}
	read := &networkingv1alpha1.MultiClusterService{}
	err = r.client.Get(ctx, key, read)
	if client.IgnoreNotFound(err) != nil {
		return next, fmt.Errorf("get MultiClusterService %s: %w", key, err)
	}
	if err != nil {
		claimed, err := r.claimedBy(ctx, me)
		if err != nil {
			return next, err
		}
		return next, r.gone(ctx, me, read, claimed, r.end)
	}
	if !service.Exposes(read) {
		return next, r.end(ctx, me)
	}

	// 1. Select the clusters.
	all, err := r.clusters(ctx)
	if err != nil {
		return next, err
	}
	traffic, err := r.control(ctx, all)
	if err != nil {
		return next, err
	}
	var fleet []string
	for _, c := range all {
		fleet = append(fleet, c.Name)
	}
	e, clusters := service.CrossCluster(read, fleet), service.ClustersOf(read, fleet)
	e.Controlled = traffic.controlled
	missing := ""
	if len(clusters.Missing) > 0 {
		missing = "no cluster is named " + strings.Join(clusters.Missing, ", ") + "; it is used once it joins"
	}
	r.warn(me, read, service.EventClusterNotFound, missing)

	// 2. Send the Service to all of them.
	if len(clusters.Union()) == 0 && len(clusters.Missing) == 0 {
		return next, nil // there are no clusters; a cluster that joins causes an event
	}
	trouble, sending, binding := "", error(nil), workv1alpha2.Binding(nil)
	template, found, err := r.Templates.Get(ctx, serviceKind, key.Namespace, key.Name)
	switch {
	case err != nil:
		return next, err
	case !found || template.GetDeletionTimestamp() != nil:
		trouble = fmt.Sprintf("there is no Service %s on the hub: create it with the name of the MultiClusterService", key)
		e.Consumers = nil
	default:
		if binding, sending = r.send(ctx, read, template, clusters); sending != nil && !commit.Stale(sending) {
			trouble = sending.Error()
		}
	}
	r.warn(me, read, service.EventSyncServiceFailed, trouble)

	// 3. Send the endpoints of the providers to the consumers.
	x, err := r.exchangeEndpoints(ctx, e, clusters.Union())
	if err != nil {
		return next, err
	}

	// 4. Set the conditions. Without the Service there is nothing to report about endpoints.
	unwritten := cmp.Or(trouble, obstacle(x.failed))
	was := meta.FindStatusCondition(read.Status.Conditions, networkingv1alpha1.EndpointSliceDispatched)
	if was != nil && was.ObservedGeneration != read.Generation {
		was = nil
	}
	applied, dispatched := service.ServiceApplied(clusters.Union(), binding, x.services, trouble),
		service.Dispatched(x.Decision, x.standing, unwritten, was)
	refusal := ""
	if trouble == "" && dispatched.Status == metav1.ConditionFalse {
		refusal = dispatched.Message
	}
	r.warn(me, read, service.EventDispatchEndpointSliceFailed, refusal)
	r.warn(me, read, service.EventProviderLost, service.WithdrawnMessage(x.Decision))
	want := read.DeepCopy()
	want.Status.Conditions = r.conditions(read.Status.Conditions, read.Generation, traffic, x.Traffic, applied, dispatched)
	wrote, err := commit.Status(ctx, r.client, read, want)
	if wrote && err == nil {
		r.emitTurned(read, want)
		r.warnKept(want, read.Status.Conditions, want.Status.Conditions)
	}
	return x.next, errors.Join(sending, x.failed, client.IgnoreNotFound(err))
}

// emitTurned records an event for each condition that became true.
func (r *crossCluster) emitTurned(was, is *networkingv1alpha1.MultiClusterService) {
	for kind, reason := range map[string]string{
		networkingv1alpha1.ServiceApplied:          service.EventSyncServiceSucceed,
		networkingv1alpha1.EndpointSliceDispatched: service.EventDispatchEndpointSliceSucceed,
	} {
		if c := meta.FindStatusCondition(is.Status.Conditions, kind); c != nil && c.Status == metav1.ConditionTrue &&
			!meta.IsStatusConditionTrue(was.Status.Conditions, kind) {
			r.events.RecordSuccess(reason, c.Message, is)
		}
	}
}

// send claims the Service, so that policies ignore it, and creates or updates the binding. It returns the written
// binding, or the existing one if the write was not possible.
func (r *crossCluster) send(ctx context.Context, s *networkingv1alpha1.MultiClusterService,
	template *unstructured.Unstructured, clusters service.Clusters) (workv1alpha2.Binding, error) {
	existing, _, err := scope.BindingFor(ctx, r.client, serviceKind, s.Namespace, s.Name)
	if err != nil {
		return nil, err
	}
	if want := service.Claim(template, s); want != nil {
		if template, err = r.Templates.Update(ctx, want); err != nil {
			return existing, err
		}
	}
	want, err := service.Binding(template, s, clusters, existing, newID())
	if err != nil {
		return existing, err
	}
	if existing != nil {
		if _, err = commit.Update(ctx, r.client, existing, want); err != nil {
			return existing, err
		}
		return want, nil
	}
	name, err := scope.NewBindingName(ctx, r.client, serviceKind, s.Namespace, s.Name)
	if err != nil {
		return nil, err
	}
	want.SetName(name)
	if r.Place != nil {
		r.Place(want)
	}
	if err := commit.Create(ctx, r.client, want); err != nil {
		return nil, err
	}
	return want, nil
}

// claimedBy reports whether the owner claims the Service or its binding. Services are not watched just for this, so
// without a watch only the binding is checked.
func (r *crossCluster) claimedBy(ctx context.Context, me service.Owner) (bool, error) {
	if r.Templates.Wanted(serviceKind) {
		template, found, err := r.Templates.Get(ctx, serviceKind, me.Namespace, me.Name)
		if err != nil || found && service.Claims(me, template) {
			return err == nil, err
		}
	}
	b, _, err := scope.BindingFor(ctx, r.client, serviceKind, me.Namespace, me.Name, client.UnsafeDisableDeepCopy)
	return err == nil && b != nil && service.Claims(me, b), err
}

// end withdraws the endpoints from the consumers. The Service stays in the clusters, as after the deletion of a policy,
// until another policy selects it.
func (r *crossCluster) end(ctx context.Context, me service.Owner) error {
	if err := r.withdraw(ctx, me); err != nil {
		return err
	}
	claimed, err := r.claimedBy(ctx, me)
	if err != nil || !claimed {
		return err
	}
	template, found, err := r.Templates.Live(ctx, serviceKind, me.Namespace, me.Name)
	if err != nil {
		return err
	}
	// Release the binding last: after a restart it shows that there is still work to do.
	if found && service.Claims(me, template) {
		want := template.DeepCopy()
		service.Unclaim(want)
		if _, err := r.Templates.Update(ctx, want); err != nil {
			return client.IgnoreNotFound(err)
		}
	}
	b, _, err := scope.BindingFor(ctx, r.live, serviceKind, me.Namespace, me.Name)
	if err != nil || b == nil || !service.Claims(me, b) {
		return err
	}
	want := b.DeepCopyObject().(workv1alpha2.Binding)
	service.Unclaim(want)
	_, err = commit.Update(ctx, r.client, b, want)
	return err
}
