// Package rebalance reschedules the workloads that WorkloadRebalancers name, by a request on their bindings, reports
// the results in the status, and deletes rebalancers after their time to live. core/adjust/rebalance decides all of
// it.
package rebalance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	appsv1alpha1 "github.com/argosy-io/argosy/api/apps/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/adjust/rebalance"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/filter"
	"github.com/argosy-io/argosy/internal/scope"
)

// Options of the controller.
type Options struct {
	// Clock sets when a rebalancer finished and when it expires; default the real one.
	Clock clock.PassiveClock
}

type reconciler struct {
	Options
	client client.Client
	// live reads past the cache, where a verdict on an old state would be a failure that is none.
	live client.Reader
}

const (
	// firstRetry is the delay of the first attempt after a failure; it grows.
	firstRetry = 100 * time.Millisecond
	// byWorkload finds the rebalancers that name a workload whose binding they have not triggered.
	byWorkload = "rebalance.workload"
)

// Setup registers the controller with the manager.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	o.Clock = cmp.Or(o.Clock, clock.PassiveClock(clock.RealClock{}))
	r := &reconciler{Options: o, client: mgr.GetClient(), live: mgr.GetAPIReader()}
	if err := mgr.GetFieldIndexer().IndexField(ctx, &appsv1alpha1.WorkloadRebalancer{}, byWorkload,
		func(obj client.Object) []string {
			var keys []string
			for _, w := range rebalance.Pending(obj.(*appsv1alpha1.WorkloadRebalancer)) {
				keys = append(keys, rebalance.Workload(w).String())
			}
			return keys
		}); err != nil {
		return fmt.Errorf("index rebalancers by their workloads: %w", err)
	}
	b := ctrl.NewControllerManagedBy(mgr).Named("rebalance").
		WithOptions(controller.Options{RateLimiter: commit.Backoff[reconcile.Request](firstRetry)}).
		For(&appsv1alpha1.WorkloadRebalancer{},
			builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, predicate.Predicate(replaced))))
	for _, kind := range scope.Bindings.Kinds() {
		b = b.Watches(kind, handler.EnqueueRequestsFromMapFunc(r.waiting), builder.WithPredicates(appears))
	}
	return b.Complete(r)
}

// replaced selects objects that replaced another of the same name, whose deletion was missed.
var replaced = filter.Updates(func(was, is client.Object) bool { return was.GetUID() != is.GetUID() })

// appears selects bindings that are new, also in the place of one that was there. Those of the start are all in memory
// before the first rebalancer is looked at.
var appears = predicate.Funcs{
	CreateFunc: filter.AfterStart.CreateFunc,
	UpdateFunc: replaced.UpdateFunc,
	DeleteFunc: replaced.DeleteFunc,
}

// waiting returns the rebalancers that wait for a binding.
func (r *reconciler) waiting(ctx context.Context, b client.Object) []reconcile.Request {
	return filter.Listed(ctx, r.client, &appsv1alpha1.WorkloadRebalancerList{}, nil,
		client.MatchingFields{byWorkload: propagate.TemplateOfBinding(b.(workv1alpha2.Binding)).String()})
}

// Reconcile executes one rebalancer, or deletes it after its TTL.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	after, err := r.reconcile(ctx, req.Name)
	if commit.Stale(err) || apierrors.IsNotFound(err) {
		return reconcile.Result{RequeueAfter: commit.StaleRetry}, nil
	}
	return reconcile.Result{RequeueAfter: after}, err
}

func (r *reconciler) reconcile(ctx context.Context, name string) (time.Duration, error) {
	read := &appsv1alpha1.WorkloadRebalancer{}
	err := r.client.Get(ctx, types.NamespacedName{Name: name}, read)
	if client.IgnoreNotFound(err) != nil {
		return 0, fmt.Errorf("get WorkloadRebalancer %q: %w", name, err)
	}
	if err != nil || read.DeletionTimestamp != nil {
		return 0, nil
	}

	// 1. Ask the bindings, each by itself: one that cannot be written holds up no other.
	found := map[appsv1alpha1.ObjectReference]bool{}
	var failures []error
	for _, w := range rebalance.Pending(read) {
		there, err := r.trigger(ctx, read, w)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		found[w] = there
	}

	// 2. Report the results, also partial ones.
	want := read.DeepCopy()
	want.Status = rebalance.Observe(read, found, metav1.NewTime(r.Clock.Now()))
	if _, err := commit.Status(ctx, r.client, read, want); err != nil {
		return 0, errors.Join(append(failures, err)...)
	}
	for _, err := range failures {
		if !commit.Stale(err) && !apierrors.IsNotFound(err) {
			return 0, errors.Join(failures...)
		}
	}
	if len(failures) > 0 {
		return commit.StaleRetry, nil
	}

	// 3. Go when it is time.
	remaining, ends := rebalance.Remaining(want, r.Clock.Now())
	if !ends || remaining > 0 {
		return remaining, nil
	}
	return 0, r.remove(ctx, want)
}

// trigger asks the binding of one workload for a fresh schedule; false if there is no such binding.
func (r *reconciler) trigger(ctx context.Context, rebalancer *appsv1alpha1.WorkloadRebalancer,
	w appsv1alpha1.ObjectReference) (bool, error) {
	gk := match.GroupKind(w.APIVersion, w.Kind)
	b, _, err := scope.BindingFor(ctx, r.client, gk, w.Namespace, w.Name)
	if err == nil && b == nil {
		b, _, err = scope.BindingFor(ctx, r.live, gk, w.Namespace, w.Name)
	}
	if err != nil || b == nil {
		return false, err
	}
	want, found := rebalance.Trigger(rebalancer, w, b)
	if !found {
		return false, nil
	}
	_, err = commit.Update(ctx, r.client, b, want)
	return err == nil, err
}

// remove deletes a rebalancer only in the version that was read: workloads that users added meanwhile come first.
func (r *reconciler) remove(ctx context.Context, judged *appsv1alpha1.WorkloadRebalancer) error {
	uid, version := judged.GetUID(), judged.GetResourceVersion()
	err := r.client.Delete(ctx, judged, client.Preconditions{UID: &uid, ResourceVersion: &version})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete %s after its time to live: %w", commit.Name(judged), err)
	}
	return nil
}
