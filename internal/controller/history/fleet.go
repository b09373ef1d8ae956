package history

import (
	"context"
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/history"
)

// fleetRecorder writes what happens to clusters, bindings and policies to the database. It writes nothing to the API.
type fleetRecorder struct {
	*recorder
	// reader reads from the API: the cache has no managed fields.
	reader client.Reader
}

// setupFleet registers the recorders of what happens beside releases.
func setupFleet(mgr ctrl.Manager, r *recorder) error {
	f := &fleetRecorder{recorder: r, reader: mgr.GetAPIReader()}
	kinds := map[string]client.Object{"PropagationPolicy": &policyv1alpha1.PropagationPolicy{},
		"ClusterPropagationPolicy": &policyv1alpha1.ClusterPropagationPolicy{},
		"OverridePolicy":           &policyv1alpha1.OverridePolicy{},
		"ClusterOverridePolicy":    &policyv1alpha1.ClusterOverridePolicy{}}
	type recorded struct {
		name   string
		kind   client.Object
		when   predicate.Predicate
		record reconcile.Func
	}
	spec := predicate.GenerationChangedPredicate{}
	all := []recorded{
		{"cluster-history", &clusterv1alpha1.Cluster{}, clusterChanged, f.cluster},
		{"binding-history", &workv1alpha2.ResourceBinding{}, spec, f.binding(func() workv1alpha2.Binding {
			return &workv1alpha2.ResourceBinding{}
		})},
		{"cluster-binding-history", &workv1alpha2.ClusterResourceBinding{}, spec, f.binding(func() workv1alpha2.Binding {
			return &workv1alpha2.ClusterResourceBinding{}
		})},
	}
	for kind, obj := range kinds {
		all = append(all, recorded{strings.ToLower(kind) + "-history", obj, spec, f.change(kind, obj)})
	}
	for _, one := range all {
		err := ctrl.NewControllerManagedBy(mgr).Named(one.name).For(one.kind, builder.WithPredicates(one.when)).
			WithOptions(controller.Options{MaxConcurrentReconciles: 1,
				RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
			}).Complete(one.record)
		if err != nil {
			return fmt.Errorf("set up %s: %w", one.name, err)
		}
	}
	return nil
}

// clusterChanged selects changes of clusters that give another event, not each report of their status.
var clusterChanged = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	before, isCluster := e.ObjectOld.(*clusterv1alpha1.Cluster)
	after, alsoCluster := e.ObjectNew.(*clusterv1alpha1.Cluster)
	return !isCluster || !alsoCluster ||
		!reflect.DeepEqual(history.EventsOfCluster(before), history.EventsOfCluster(after))
}}

// cluster records when a cluster joined, became not ready or ready, and left.
func (f *fleetRecorder) cluster(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	c := &clusterv1alpha1.Cluster{}
	if err := f.client.Get(ctx, req.NamespacedName, c); err != nil {
		if client.IgnoreNotFound(err) != nil {
			return reconcile.Result{}, err
		}
		at := f.Clock.Now()
		return later(f.write(ctx, func(s *history.Store, _ int) error { return s.RecordLeft(ctx, req.Name, at) }))
	}
	return later(f.write(ctx, func(s *history.Store, _ int) error {
		var events []history.FleetEvent
		for _, e := range history.EventsOfCluster(c) {
			if e.Type == history.Back {
				// A cluster that joins becomes ready for the first time.
				was, err := s.HasEvent(ctx, e.UID, history.Silent)
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
	}))
}

// binding records where the workload of a binding goes.
func (f *fleetRecorder) binding(empty func() workv1alpha2.Binding) reconcile.Func {
	return func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
		b := empty()
		err := f.client.Get(ctx, req.NamespacedName, b)
		if client.IgnoreNotFound(err) != nil {
			return reconcile.Result{}, err
		}
		if err != nil {
			return later(f.write(ctx, func(s *history.Store, _ int) error {
				return f.removed(ctx, s, req.NamespacedName)
			}))
		}
		is := history.PlacementOf(b)
		return later(f.write(ctx, func(s *history.Store, _ int) error {
			last, err := s.PlacementOfBinding(ctx, req.Namespace, req.Name)
			if err != nil || last.IsSame(is) {
				return err
			}
			return s.RecordPlacement(ctx, is, history.EventOfBinding(last, b, f.Clock.Now()))
		}))
	}
}

// removed records that a binding was deleted.
func (f *fleetRecorder) removed(ctx context.Context, s *history.Store, key types.NamespacedName) error {
	last, err := s.PlacementOfBinding(ctx, key.Namespace, key.Name)
	if err != nil || last.UID == "" {
		return err
	}
	e := &history.FleetEvent{UID: last.UID, Type: history.Removed, At: f.Clock.Now(), Workload: last.Workload,
		From: last.Clusters}
	last.UID, last.Clusters = "", nil
	return s.RecordPlacement(ctx, last, e)
}

// change records the last change of a policy, by its managed fields.
func (f *fleetRecorder) change(kind string, empty client.Object) reconcile.Func {
	return func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
		obj := empty.DeepCopyObject().(client.Object)
		if err := f.reader.Get(ctx, req.NamespacedName, obj); err != nil {
			return reconcile.Result{}, client.IgnoreNotFound(err)
		}
		e := history.EventOfChange(obj, policyv1alpha1.GroupVersion.Group, kind)
		if e == nil {
			return reconcile.Result{}, nil
		}
		return later(f.write(ctx, func(s *history.Store, _ int) error {
			return s.RecordFleet(ctx, []history.FleetEvent{*e})
		}))
	}
}
