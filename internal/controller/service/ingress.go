package service

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
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
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/cluster/remedy"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/source/service"
	"github.com/argosy-io/argosy/internal/filter"
	"github.com/argosy-io/argosy/internal/scope"
)

// ingresses reconciles MultiClusterIngresses: it lists the clusters that Remedies take out of their traffic. It follows
// endpoints only while a cluster has the action TrafficControl.
type ingresses struct {
	*exchanges
	mu sync.Mutex
	// users are the MultiClusterIngresses that follow a Service. Callbacks of members read it, so it has its own lock.
	users map[types.NamespacedName]sets.Set[types.NamespacedName]
}

func setupIngresses(mgr ctrl.Manager, x *exchanges) error {
	r := &ingresses{exchanges: x, users: map[types.NamespacedName]sets.Set[types.NamespacedName]{}}
	return ctrl.NewControllerManagedBy(mgr).Named("multi-cluster-ingress").
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrency,
			RateLimiter: commit.Backoff[reconcile.Request](firstRetry)}).
		For(&networkingv1alpha1.MultiClusterIngress{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&workv1alpha2.ResourceBinding{}, handler.EnqueueRequestsFromMapFunc(r.routing),
			builder.WithPredicates(placed)).
		Watches(&clusterv1alpha1.Cluster{}, handler.EnqueueRequestsFromMapFunc(r.allIngresses),
			builder.WithPredicates(moved)).
		Watches(&remedyv1alpha1.Remedy{}, handler.EnqueueRequestsFromMapFunc(r.allIngresses),
			builder.WithPredicates(retitled)).
		WatchesRawSource(source.Func(func(_ context.Context,
			q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			enqueue := func(services ...types.NamespacedName) {
				for _, key := range r.usersOf(services...) {
					q.Add(reconcile.Request{NamespacedName: key})
				}
			}
			x.Members.OnEndpoints(func(_ string, of types.NamespacedName) { enqueue(of) })
			x.Members.OnAnswer(func(string) { enqueue() })
			return nil
		})).
		Complete(r)
}

// routing maps the binding of a Service to the MultiClusterIngresses with that Service.
func (r *ingresses) routing(ctx context.Context, b client.Object) []reconcile.Request {
	ref := b.(*workv1alpha2.ResourceBinding).Spec.Resource
	if match.GroupKind(ref.APIVersion, ref.Kind) != serviceKind {
		return nil
	}
	return filter.Listed(ctx, r.client, &networkingv1alpha1.MultiClusterIngressList{}, func(obj client.Object) bool {
		return obj.GetNamespace() == ref.Namespace &&
			slices.Contains(service.Backends(obj.(*networkingv1alpha1.MultiClusterIngress)), ref.Name)
	})
}

// allIngresses maps a cluster or a Remedy to the MultiClusterIngresses that its change may affect.
func (r *ingresses) allIngresses(ctx context.Context, _ client.Object) []reconcile.Request {
	return filter.Listed(ctx, r.client, &networkingv1alpha1.MultiClusterIngressList{}, nil)
}

// usersOf returns the MultiClusterIngresses that follow one of the Services, or any Service if none is given.
func (r *ingresses) usersOf(services ...types.NamespacedName) []types.NamespacedName {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := sets.New[types.NamespacedName]()
	for of, users := range r.users {
		if len(services) == 0 || slices.Contains(services, of) {
			all = all.Union(users)
		}
	}
	return all.UnsortedList()
}

// use records the Services that a MultiClusterIngress follows, and returns those that it no longer follows.
func (r *ingresses) use(key types.NamespacedName, services []string) (ended []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for of, users := range r.users {
		if of.Namespace == key.Namespace && users.Has(key) && !slices.Contains(services, of.Name) {
			ended = append(ended, of.Name)
			if users.Delete(key); users.Len() == 0 {
				delete(r.users, of)
			}
		}
	}
	for _, name := range services {
		of := types.NamespacedName{Namespace: key.Namespace, Name: name}
		if r.users[of] == nil {
			r.users[of] = sets.New[types.NamespacedName]()
		}
		r.users[of].Insert(key)
	}
	return ended
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
	var t remedy.Traffic
	if of := controlled(clusters); len(of) > 0 {
		t, next, err = r.traffic(ctx, read, of)
	} else {
		r.release(read, nil)
	}
	if err != nil {
		return next, err
	}
	kept, err := r.kept(ctx, t, clusters, read.Status.Conditions)
	if err != nil {
		return next, err
	}

	// 2. Write the status.
	want := read.DeepCopy()
	want.Status.TrafficBlockClusters = t.Blocking(read.Status.TrafficBlockClusters)
	want.Status.Conditions = service.SetConditions(read.Status.Conditions, read.Generation, metav1.NewTime(r.Clock.Now()),
		kept...)
	if len(kept) == 0 {
		meta.RemoveStatusCondition(&want.Status.Conditions, networkingv1alpha1.TrafficKept)
	}
	wrote, err := commit.Status(ctx, r.client, read, want)
	if wrote && err == nil {
		r.warnKept(want, read.Status.Conditions, kept)
	}
	return next, client.IgnoreNotFound(err)
}

// traffic decides which clusters with the action TrafficControl are in the traffic of a MultiClusterIngress. next is
// when that changes without an event; zero means never.
func (r *ingresses) traffic(ctx context.Context, i *networkingv1alpha1.MultiClusterIngress,
	of map[string]bool) (t remedy.Traffic, next time.Time, err error) {
	services := service.Backends(i)
	r.release(i, services)
	var each []remedy.Traffic
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
		if err := r.follow(ctx, &e); err != nil {
			return t, next, err
		}
		if next, err = r.lost(ctx, &e); err != nil {
			return t, next, err
		}
		each = append(each, e.Traffic())
	}
	return remedy.Together(each), next, nil
}

// release records the Services that a MultiClusterIngress follows, and ends its watches of others.
func (r *ingresses) release(i *networkingv1alpha1.MultiClusterIngress, services []string) {
	for _, name := range r.use(client.ObjectKeyFromObject(i), services) {
		r.unfollow(service.Backend(i, name, nil).Owner)
	}
}
