package service

import (
	"context"
	"fmt"
	"slices"
	"time"

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
	remedyv1alpha1 "github.com/argosy-io/argosy/api/remedy/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/cluster/remedy"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/source/service"
	"github.com/argosy-io/argosy/internal/filter"
	"github.com/argosy-io/argosy/internal/scope"
)

// ingresses reconciles MultiClusterIngresses: it lists the clusters that Remedies take out of their traffic. It follows
// the endpoints of a Service only while a cluster that has it also has the action TrafficControl.
type ingresses struct{ *exchanges }

func setupIngresses(mgr ctrl.Manager, x *exchanges) error {
	r := &ingresses{x}
	return ctrl.NewControllerManagedBy(mgr).Named("multi-cluster-ingress").
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrency,
			RateLimiter: commit.Backoff[reconcile.Request](firstRetry)}).
		For(&networkingv1alpha1.MultiClusterIngress{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&networkingv1alpha1.MultiClusterIngress{}, filter.Delayed(restoreAfter, itself),
			builder.WithPredicates(diverted)).
		Watches(&workv1alpha2.ResourceBinding{}, handler.EnqueueRequestsFromMapFunc(r.routing),
			builder.WithPredicates(placed)).
		Watches(&workv1alpha1.Work{}, handler.EnqueueRequestsFromMapFunc(r.receiving), builder.WithPredicates(worked)).
		Watches(&clusterv1alpha1.Cluster{}, handler.EnqueueRequestsFromMapFunc(r.allIngresses),
			builder.WithPredicates(moved)).
		Watches(&remedyv1alpha1.Remedy{}, handler.EnqueueRequestsFromMapFunc(r.allIngresses),
			builder.WithPredicates(filter.AfterStart, filter.Respecified)).
		WatchesRawSource(source.Func(func(_ context.Context,
			q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			enqueue := func(cluster string, services ...types.NamespacedName) {
				for _, key := range x.follows.ingresses(cluster, services...) {
					q.Add(reconcile.Request{NamespacedName: key})
				}
			}
			x.Members.OnEndpoints(func(cluster string, of types.NamespacedName) { enqueue(cluster, of) })
			x.Members.OnAnswer(func(cluster string) { enqueue(cluster) })
			return nil
		})).
		Complete(r)
}

func itself(_ context.Context, obj client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(obj)}}
}

// routing maps the binding of a Service to the MultiClusterIngresses with that Service.
func (r *ingresses) routing(ctx context.Context, b client.Object) []reconcile.Request {
	ref := b.(*workv1alpha2.ResourceBinding).Spec.Resource
	if match.GroupKind(ref.APIVersion, ref.Kind) != serviceKind {
		return nil
	}
	return r.ingressesOf(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name})
}

// receiving maps a Work to the MultiClusterIngresses of the Service in it.
func (r *ingresses) receiving(ctx context.Context, w client.Object) []reconcile.Request {
	if of, ok := serviceIn(w); ok {
		return r.ingressesOf(ctx, of)
	}
	return nil
}

// ingressesOf returns the MultiClusterIngresses with a Service.
func (r *ingresses) ingressesOf(ctx context.Context, of types.NamespacedName) []reconcile.Request {
	return filter.Listed(ctx, r.client, &networkingv1alpha1.MultiClusterIngressList{}, func(obj client.Object) bool {
		return slices.Contains(service.Backends(obj.(*networkingv1alpha1.MultiClusterIngress)), of.Name)
	}, client.InNamespace(of.Namespace))
}

// allIngresses maps a cluster or a Remedy to the MultiClusterIngresses that its change may affect.
func (r *ingresses) allIngresses(ctx context.Context, _ client.Object) []reconcile.Request {
	return filter.Listed(ctx, r.client, &networkingv1alpha1.MultiClusterIngressList{}, nil)
}

// Reconcile writes the clusters that get no traffic into the status.
func (r *ingresses) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	return r.result(r.reconcile(ctx, req.NamespacedName))
}

// reconcile also returns the time at which it must run again without an event; zero means never.
func (r *ingresses) reconcile(ctx context.Context, key types.NamespacedName) (next time.Time, err error) {
	read := &networkingv1alpha1.MultiClusterIngress{}
	if err := r.client.Get(ctx, key, read); client.IgnoreNotFound(err) != nil {
		return next, fmt.Errorf("get MultiClusterIngress %s: %w", key, err)
	} else if err != nil || read.DeletionTimestamp != nil {
		read.Namespace, read.Name = key.Namespace, key.Name
		r.release(read, nil)
		return next, nil
	}

	// 1. Decide for each Service, then for the Ingress.
	clusters, err := r.clusters(ctx)
	if err != nil {
		return next, err
	}
	c, err := r.control(ctx, clusters)
	if err != nil {
		return next, err
	}
	t, next, err := r.traffic(ctx, read, c.controlled)
	if err != nil {
		return next, err
	}

	// 2. Write the status.
	want := read.DeepCopy()
	want.Status.TrafficBlockClusters = t.Blocking(read.Status.TrafficBlockClusters)
	want.Status.Conditions = r.conditions(read.Status.Conditions, read.Generation, c, t)
	wrote, err := commit.Status(ctx, r.client, read, want)
	if wrote && err == nil {
		r.warnKept(want, read.Status.Conditions, want.Status.Conditions)
	}
	return next, client.IgnoreNotFound(err)
}

// traffic decides which clusters with the action TrafficControl are in the traffic of a MultiClusterIngress. next is
// when that changes without an event; zero means never.
func (r *ingresses) traffic(ctx context.Context, i *networkingv1alpha1.MultiClusterIngress,
	of map[string]bool) (t remedy.Traffic, next time.Time, err error) {
	var each []remedy.Traffic
	services := service.Backends(i)
	if len(of) == 0 {
		services = nil
	}
	var followed []string
	for _, name := range services {
		b, _, err := scope.BindingFor(ctx, r.client, serviceKind, i.Namespace, name, client.UnsafeDisableDeepCopy)
		if err != nil {
			return t, next, err
		}
		var clusters []string
		if b != nil {
			if clusters, err = r.targets(ctx, b); err != nil {
				return t, next, err
			}
		}
		e := service.Backend(i, name, clusters)
		e.Controlled = of
		works, err := r.services(ctx, e, clusters)
		if err != nil {
			return t, next, err
		}
		if !slices.ContainsFunc(e.Candidates(works), func(c remedy.Candidate) bool { return c.Controlled }) {
			continue
		}
		followed = append(followed, name)
		if err := r.follow(ctx, &e); err != nil {
			return t, next, err
		}
		if next, err = r.lost(ctx, &e); err != nil {
			return t, next, err
		}
		each = append(each, remedy.Decide(e.Candidates(works)))
	}
	r.release(i, followed)
	return remedy.Together(each), next, nil
}

// release ends the watches of a MultiClusterIngress, except those of the given Services.
func (r *ingresses) release(i *networkingv1alpha1.MultiClusterIngress, services []string) {
	for _, of := range r.follows.servicesIn("", service.Backend(i, "", nil).Owner.Kind) {
		if of.Namespace == i.Namespace && !slices.Contains(services, of.Name) {
			r.unfollow(service.Backend(i, of.Name, nil).Owner)
		}
	}
}
