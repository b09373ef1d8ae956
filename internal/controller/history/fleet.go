package history

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/facts"
	"github.com/argosy-io/argosy/internal/filter"
	"github.com/argosy-io/argosy/internal/history"
	"github.com/argosy-io/argosy/internal/scope"
)

// objectID identifies an object, so that its deletion is noticed even if a new object has its name.
type objectID struct {
	types.NamespacedName
	UID types.UID
}

// setupFleet registers the recorders of clusters, bindings and policies. They write to the database only.
func setupFleet(mgr ctrl.Manager, r *recorder) error {
	spec := filter.Respecified
	for name, kind := range map[string]client.Object{"binding-history": &workv1alpha2.ResourceBinding{},
		"cluster-binding-history": &workv1alpha2.ClusterResourceBinding{}} {
		empty := kind.(workv1alpha2.Binding)
		err := ctrl.NewControllerManagedBy(mgr).Named(name).For(kind, builder.WithPredicates(spec)).
			WithOptions(controller.Options{MaxConcurrentReconciles: 1, RateLimiter: limiter[reconcile.Request]()}).
			Complete(r.binding(empty))
		if err != nil {
			return fmt.Errorf("set up %s: %w", name, err)
		}
	}
	if err := setupByUID(mgr, "cluster-history", &clusterv1alpha1.Cluster{}, clusterChanged, r.cluster); err != nil {
		return err
	}
	for _, kind := range policyKinds() {
		obj, err := mgr.GetScheme().New(policyv1alpha1.GroupVersion.WithKind(kind))
		if err != nil {
			return fmt.Errorf("set up the history of %s: %w", kind, err)
		}
		policy := obj.(client.Object)
		if err := setupByUID(mgr, strings.ToLower(kind)+"-history", policy, spec, r.policy(kind)); err != nil {
			return err
		}
	}
	return nil
}

func policyKinds() []string { return slices.Sorted(maps.Keys(history.PolicyResources)) }

// setupByUID registers a recorder of a kind whose deletions are recorded by the UID of the object.
func setupByUID(mgr ctrl.Manager, name string, kind client.Object, when predicate.Predicate,
	record reconcile.TypedFunc[objectID]) error {
	enqueue := handler.TypedEnqueueRequestsFromMapFunc(func(_ context.Context, obj client.Object) []objectID {
		return []objectID{{client.ObjectKeyFromObject(obj), obj.GetUID()}}
	})
	err := builder.TypedControllerManagedBy[objectID](mgr).Named(name).
		Watches(kind, enqueue, builder.WithPredicates(when)).
		WithOptions(controller.TypedOptions[objectID]{MaxConcurrentReconciles: 1, RateLimiter: limiter[objectID]()}).
		Complete(record)
	if err != nil {
		return fmt.Errorf("set up %s: %w", name, err)
	}
	return nil
}

// limiter returns the backoff for objects that the database refuses.
func limiter[T comparable]() workqueue.TypedRateLimiter[T] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[T](firstRetry, lastRetry)
}

// clusterChanged selects the updates of clusters that lead to another event. Other reports of the status do not.
var clusterChanged = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	before, isCluster := e.ObjectOld.(*clusterv1alpha1.Cluster)
	after, alsoCluster := e.ObjectNew.(*clusterv1alpha1.Cluster)
	return !isCluster || !alsoCluster ||
		!reflect.DeepEqual(history.EventsOfCluster(before), history.EventsOfCluster(after))
}}

// cluster records when a cluster joined, when it became not ready or ready, and when it was gone.
func (r *recorder) cluster(ctx context.Context, id objectID) (reconcile.Result, error) {
	c := &clusterv1alpha1.Cluster{}
	err := r.client.Get(ctx, id.NamespacedName, c)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, err
	}
	now := r.Clock.Now()
	return later(r.write(ctx, func(s *history.Store) error {
		if err != nil || c.UID != id.UID {
			return s.RecordGone(ctx, history.LeftOf(id.Name, string(id.UID), now))
		}
		return recordCluster(ctx, s, c)
	}))
}

func recordCluster(ctx context.Context, s *history.Store, c *clusterv1alpha1.Cluster) error {
	var events []history.FleetEvent
	for _, e := range history.EventsOfCluster(c) {
		if e.Type == history.BecameReady {
			// The first time that a cluster is ready belongs to its join.
			was, err := s.HasEvent(ctx, e.UID, history.BecameNotReady)
			if err != nil {
				return err
			}
			if !was {
				continue
			}
		}
		events = append(events, e)
	}
	return s.RecordFleet(ctx, events)
}

// binding records the placements of bindings of a kind.
func (r *recorder) binding(empty workv1alpha2.Binding) reconcile.Func {
	return func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
		b := empty.DeepCopyObject().(workv1alpha2.Binding)
		err := r.client.Get(ctx, req.NamespacedName, b)
		if client.IgnoreNotFound(err) != nil {
			return reconcile.Result{}, err
		}
		return later(r.write(ctx, func(s *history.Store) error {
			if err != nil {
				return r.removed(ctx, s, req.NamespacedName)
			}
			return r.recordPlacement(ctx, s, b)
		}))
	}
}

func (r *recorder) recordPlacement(ctx context.Context, s *history.Store, b workv1alpha2.Binding) error {
	is := history.PlacementOf(b)
	last, err := s.PlacementOfBinding(ctx, b.GetNamespace(), b.GetName())
	if err != nil || last.IsSame(is) {
		return err
	}
	return s.RecordPlacement(ctx, is, history.EventOfBinding(last, b, r.Clock.Now()))
}

// removed records that a binding was deleted.
func (r *recorder) removed(ctx context.Context, s *history.Store, key types.NamespacedName) error {
	last, err := s.PlacementOfBinding(ctx, key.Namespace, key.Name)
	if err != nil || last.UID == "" {
		return err
	}
	e := &history.FleetEvent{UID: last.UID, Type: history.Removed, At: r.Clock.Now(), Workload: last.Workload,
		From: last.Clusters}
	last.UID, last.Clusters = "", nil
	return s.RecordPlacement(ctx, last, e)
}

// policy records the last change of policies of a kind, and their deletions. The cache has no managed fields, so it
// reads the metadata from the API.
func (r *recorder) policy(kind string) reconcile.TypedFunc[objectID] {
	return func(ctx context.Context, id objectID) (reconcile.Result, error) {
		obj := &metav1.PartialObjectMetadata{}
		obj.SetGroupVersionKind(policyv1alpha1.GroupVersion.WithKind(kind))
		err := r.live.Get(ctx, id.NamespacedName, obj)
		if client.IgnoreNotFound(err) != nil {
			return reconcile.Result{}, err
		}
		now := r.Clock.Now()
		return later(r.write(ctx, func(s *history.Store) error {
			if err != nil || obj.UID != id.UID {
				return s.RecordGone(ctx, history.FleetEvent{UID: string(id.UID), Type: history.Deleted, At: now,
					Workload: history.Workload{Group: policyv1alpha1.GroupVersion.Group, Kind: kind, Namespace: id.Namespace,
						Name: id.Name}})
			}
			return recordChange(ctx, s, kind, obj)
		}))
	}
}

// recordChange records the last change of a policy. A deletion that has begun increases the generation, which is not a
// change of the spec.
func recordChange(ctx context.Context, s *history.Store, kind string, obj client.Object) error {
	e := history.EventOfChange(obj, policyv1alpha1.GroupVersion.Group, kind)
	if e == nil || obj.GetDeletionTimestamp() != nil {
		return nil
	}
	return s.RecordFleet(ctx, []history.FleetEvent{*e})
}

// replayFleet records all clusters, bindings and policies in a database that was opened again. note handles the result
// for each object.
func (r *recorder) replayFleet(ctx context.Context, s *history.Store, note func(client.Object, error)) error {
	clusters, err := facts.ClusterList(ctx, r.client)
	if err != nil {
		return err
	}
	for _, c := range clusters {
		note(c, recordCluster(ctx, s, c))
	}
	bindings, err := scope.Bindings.List(ctx, r.client, client.UnsafeDisableDeepCopy)
	if err != nil {
		return fmt.Errorf("list bindings: %w", err)
	}
	for _, b := range bindings {
		note(b, r.recordPlacement(ctx, s, b))
	}
	for _, kind := range policyKinds() {
		policies := &metav1.PartialObjectMetadataList{}
		policies.SetGroupVersionKind(policyv1alpha1.GroupVersion.WithKind(kind + "List"))
		if err := r.live.List(ctx, policies); err != nil {
			return fmt.Errorf("list policies of the kind %s: %w", kind, err)
		}
		for i := range policies.Items {
			note(&policies.Items[i], recordChange(ctx, s, kind, &policies.Items[i]))
		}
	}
	return nil
}
