package inventory

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	multiclusterv1alpha1 "github.com/argosy-io/argosy/api/multicluster/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/commit"
	core "github.com/argosy-io/argosy/internal/core/cluster/inventory"
	"github.com/argosy-io/argosy/internal/filter"
)

// EventDecisionFailed: the PlacementDecision of the binding cannot be written, because its name belongs to another
// program.
//
//reference:event Warning on ResourceBinding
const EventDecisionFailed = "PlacementDecisionFailed"

// decisions writes the PlacementDecisions of bindings. Without Options.Decisions, it deletes them.
type decisions struct{ *reconciler }

// byBinding indexes PlacementDecisions by the UID of their binding.
const byBinding = "inventory.binding"

func setupDecisions(ctx context.Context, mgr ctrl.Manager, r *reconciler) error {
	if err := mgr.GetFieldIndexer().IndexField(ctx, &multiclusterv1alpha1.PlacementDecision{}, byBinding,
		func(obj client.Object) []string {
			if d := obj.(*multiclusterv1alpha1.PlacementDecision); core.IsDecision(d) {
				return []string{string(metav1.GetControllerOf(d).UID)}
			}
			return nil
		}); err != nil {
		return fmt.Errorf("index PlacementDecisions: %w", err)
	}
	b := ctrl.NewControllerManagedBy(mgr).Named("clusterprofile-decision").
		Watches(&multiclusterv1alpha1.PlacementDecision{}, handler.EnqueueRequestsFromMapFunc(func(_ context.Context,
			d client.Object) []reconcile.Request {
			return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: d.GetNamespace(),
				Name: core.BindingName(d.(*multiclusterv1alpha1.PlacementDecision))}}}
		}))
	if r.Decisions {
		b = b.Watches(&workv1alpha2.ResourceBinding{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(
			filter.Changes(func(was, is *workv1alpha2.ResourceBinding) bool {
				return was.UID != is.UID || was.Spec.SchedulerName != is.Spec.SchedulerName ||
					!slices.Equal(core.Decided(was, ""), core.Decided(is, ""))
			})))
	}
	return b.Complete(&decisions{r})
}

// Reconcile writes the PlacementDecisions of a binding. The garbage collector deletes them with the binding.
func (d *decisions) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	b := &workv1alpha2.ResourceBinding{}
	if err := d.client.Get(ctx, req.NamespacedName, b, client.UnsafeDisableDeepCopy); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if b.DeletionTimestamp != nil {
		return reconcile.Result{}, nil
	}
	var list multiclusterv1alpha1.PlacementDecisionList
	if err := d.client.List(ctx, &list, client.InNamespace(b.Namespace),
		client.MatchingFields{byBinding: string(b.UID)}); err != nil {
		return reconcile.Result{}, fmt.Errorf("list PlacementDecisions of binding %s: %w", req, err)
	}
	write, gone := []multiclusterv1alpha1.PlacementDecision(nil), list.Items
	if d.Decisions {
		write, gone = core.Decisions(b, core.Decided(b, d.Namespace), list.Items)
	}
	var errs []error
	for i := range write {
		errs = append(errs, d.put(ctx, b, &write[i]))
	}
	if err := errors.Join(errs...); err != nil {
		return commit.Requeue(0, err) // a cluster may be in an object that is to be deleted, and not yet in another
	}
	for i := range gone {
		errs = append(errs, commit.Delete(ctx, d.client, &gone[i]))
	}
	return commit.Requeue(0, errors.Join(errs...))
}

// put creates or updates a PlacementDecision of a binding.
func (d *decisions) put(ctx context.Context, b *workv1alpha2.ResourceBinding,
	want *multiclusterv1alpha1.PlacementDecision) error {
	if want.UID != "" {
		return d.client.Update(ctx, want)
	}
	err := d.client.Create(ctx, want)
	if err == nil {
		d.warned.Forget(b.UID)
	}
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	is := &multiclusterv1alpha1.PlacementDecision{}
	if err := d.live.Get(ctx, client.ObjectKeyFromObject(want), is); err != nil {
		return err
	}
	switch {
	case metav1.IsControlledBy(is, b):
		return err // it is not in the cache yet
	case core.IsDecision(is): // the garbage collector deletes it with the former binding of this name
	default:
		d.warn(b, EventDecisionFailed, fmt.Sprintf("PlacementDecision %s/%s belongs to another program: delete it",
			is.Namespace, is.Name))
	}
	return nil // its deletion causes an event
}

// warn records a warning event once per message.
func (r *reconciler) warn(obj client.Object, reason, message string) {
	if r.warned.IsNew(obj.GetUID(), message) {
		r.events.Event(obj, corev1.EventTypeWarning, reason, message)
	}
}
