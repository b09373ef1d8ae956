// Package inventory writes a ClusterProfile for each Cluster, for programs that work in several clusters.
// core/cluster/inventory decides what it says.
package inventory

import (
	"cmp"
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	multiclusterv1alpha1 "github.com/argosy-io/argosy/api/multicluster/v1alpha1"
	clusterv1 "github.com/argosy-io/argosy/api/ocm/cluster/v1"
	"github.com/argosy-io/argosy/internal/commit"
	core "github.com/argosy-io/argosy/internal/core/cluster/inventory"
)

// Options of the controller.
type Options struct {
	// Namespace of the ClusterProfiles; empty for none. Those of this hub in other namespaces are deleted.
	Namespace string
	// Decisions publishes the clusters of each ResourceBinding as PlacementDecisions. Without it, those are deleted.
	Decisions bool
	// Access returns the way to a cluster through the hub.
	Access func(cluster string) core.Access
	// Clock defaults to the real clock.
	Clock clock.PassiveClock
}

// EventFailed: the ClusterProfile of the cluster cannot be written, because its name belongs to another program.
//
//reference:event Warning on Cluster
const EventFailed = "ClusterProfileFailed"

type reconciler struct {
	Options
	client client.Client
	// live reads from the API server where a stale cache would cause a wrong deletion.
	live   client.Reader
	events commit.Events
	warned *commit.Dedup[types.UID]
}

// Setup registers the controller with the manager.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	o.Clock = cmp.Or(o.Clock, clock.PassiveClock(clock.RealClock{}))
	r := &reconciler{o, mgr.GetClient(), mgr.GetAPIReader(), commit.Recorder(mgr, "clusterprofile-controller"),
		&commit.Dedup[types.UID]{}}
	if err := setupDecisions(ctx, mgr, r); err != nil {
		return err
	}
	inNamespace := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, obj client.Object) []reconcile.Request {
		if o.Namespace == "" {
			return nil
		}
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: o.Namespace, Name: obj.GetName()}}}
	})
	return ctrl.NewControllerManagedBy(mgr).Named("clusterprofile").
		For(&multiclusterv1alpha1.ClusterProfile{}).
		Watches(&clusterv1alpha1.Cluster{}, inNamespace).
		Watches(&clusterv1.ManagedCluster{}, inNamespace).
		Complete(r)
}

// Reconcile writes the ClusterProfile of a cluster. The garbage collector deletes it with the Cluster.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	was, c, mc := &multiclusterv1alpha1.ClusterProfile{}, &clusterv1alpha1.Cluster{}, &clusterv1.ManagedCluster{}
	if err := r.client.Get(ctx, req.NamespacedName, was); apierrors.IsNotFound(err) {
		was = nil
	} else if err != nil {
		return reconcile.Result{}, err
	}
	if req.Namespace != r.Namespace {
		if was == nil || !core.IsDerived(was) {
			return reconcile.Result{}, nil
		}
		return reconcile.Result{}, commit.Delete(ctx, r.client, was)
	}
	name := types.NamespacedName{Name: req.Name}
	if err := r.client.Get(ctx, name, c); apierrors.IsNotFound(err) {
		return reconcile.Result{}, r.withdraw(ctx, was)
	} else if err != nil {
		return reconcile.Result{}, err
	}
	if err := r.client.Get(ctx, name, mc); apierrors.IsNotFound(err) {
		mc = nil
	} else if err != nil {
		return reconcile.Result{}, err
	}
	switch {
	case was != nil && was.DeletionTimestamp != nil, was == nil && c.DeletionTimestamp != nil:
		return reconcile.Result{}, nil
	case was != nil && !core.IsOurs(was):
		r.warn(c, EventFailed, fmt.Sprintf("ClusterProfile %s/%s is of cluster manager %q: delete it, "+
			"or choose another namespace with inventory.namespace in the hub's configuration", was.Namespace, was.Name,
			was.Spec.ClusterManager.Name))
		return reconcile.Result{}, nil
	}
	r.warned.Forget(c.UID)
	return commit.Requeue(0, r.write(ctx, was, core.Profile(r.Namespace, c, mc, was, r.Access(c.Name), r.Clock.Now())))
}

// withdraw deletes a ClusterProfile of this hub for which there is no Cluster.
func (r *reconciler) withdraw(ctx context.Context, was *multiclusterv1alpha1.ClusterProfile) error {
	if was == nil || !core.IsOurs(was) {
		return nil
	}
	err := r.live.Get(ctx, client.ObjectKey{Name: was.Name}, &clusterv1alpha1.Cluster{})
	if !apierrors.IsNotFound(err) {
		return err
	}
	return commit.Delete(ctx, r.client, was)
}

// write creates want, or writes what differs from was: the object first, then its status.
func (r *reconciler) write(ctx context.Context, was, want *multiclusterv1alpha1.ClusterProfile) error {
	status := want.Status.DeepCopy()
	if was == nil {
		err := commit.Create(ctx, r.client, want)
		if commit.NamespaceMissing(err) {
			if err := r.client.Create(ctx, core.Namespace(r.Namespace)); err != nil && !apierrors.IsAlreadyExists(err) {
				return fmt.Errorf("create namespace %s: %w", r.Namespace, err)
			}
			err = commit.Create(ctx, r.client, want)
		}
		if err != nil {
			if apierrors.IsAlreadyExists(err) {
				return nil // its creation causes an event
			}
			return err
		}
		was = want.DeepCopy()
	} else {
		want.Status = *was.Status.DeepCopy()
		if wrote, err := commit.Update(ctx, r.client, was, want); wrote || err != nil {
			return client.IgnoreNotFound(err) // the write causes an event
		}
	}
	want.Status = *status
	_, err := commit.Status(ctx, r.client, was, want)
	return client.IgnoreNotFound(err)
}
