package check

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/release"
	"github.com/argosy-io/argosy/internal/core/release/sample"
	"github.com/argosy-io/argosy/internal/filter"
)

// budgets asks for the error budgets of ReleaseGuards. The controller of guards stores what changes.
type budgets struct{ *reconciler }

// setupBudgets registers the controller that asks for error budgets.
func setupBudgets(mgr ctrl.Manager, r *reconciler) error {
	return ctrl.NewControllerManagedBy(mgr).Named("release-budget").
		For(&releasev1alpha1.ReleaseGuard{}, builder.WithPredicates(filter.Respecified)).
		Watches(&releasev1alpha1.ReleaseCheck{}, handler.EnqueueRequestsFromMapFunc(r.guardsOf),
			builder.WithPredicates(filter.AfterStart, filter.Respecified)).
		WithOptions(controller.Options{MaxConcurrentReconciles: r.Concurrency,
			RateLimiter: commit.Backoff[reconcile.Request](firstRetry)}).
		Complete(budgets{r})
}

// guardsOf returns the guards that use a check for their error budget.
func (r *reconciler) guardsOf(ctx context.Context, c client.Object) []reconcile.Request {
	return filter.Listed(ctx, r.client, &releasev1alpha1.ReleaseGuardList{}, func(g client.Object) bool {
		ref := budgetCheck(g.(*releasev1alpha1.ReleaseGuard))
		return ref != nil && ref.Namespace == c.GetNamespace() && ref.Name == c.GetName()
	})
}

// budgetCheck is the check of a guard's error budget; nil without one.
func budgetCheck(g *releasev1alpha1.ReleaseGuard) *releasev1alpha1.NamespacedCheckReference {
	if g.DeletionTimestamp != nil || g.Spec.Limits == nil || g.Spec.Limits.MinErrorBudget == nil {
		return nil
	}
	return &g.Spec.Limits.MinErrorBudget.CheckRef
}

// Reconcile takes a sample of the error budget of a guard.
func (b budgets) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	return commit.Requeue(b.reconcile(ctx, req.Name))
}

func (b budgets) reconcile(ctx context.Context, name string) (time.Duration, error) {
	g := &releasev1alpha1.ReleaseGuard{}
	err := b.client.Get(ctx, client.ObjectKey{Name: name}, g)
	if client.IgnoreNotFound(err) != nil {
		return 0, fmt.Errorf("get ReleaseGuard %s: %w", name, err)
	}
	var ref *releasev1alpha1.NamespacedCheckReference
	if err == nil {
		ref = budgetCheck(g)
	}
	if ref == nil {
		b.Results.forgetBudget(name)
		return 0, nil
	}
	c := &releasev1alpha1.ReleaseCheck{}
	err = b.client.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, c)
	if client.IgnoreNotFound(err) != nil {
		return 0, fmt.Errorf("get ReleaseCheck %s/%s: %w", ref.Namespace, ref.Name, err)
	}
	var percent float64
	var unclear *sample.Sample
	if apierrors.IsNotFound(err) {
		s := missingCheck(ref.Namespace, ref.Name)
		unclear = &s
	} else {
		percent, unclear = b.askBudget(ctx, c)
	}
	if ctx.Err() != nil {
		return 0, nil // the hub stops, which is no answer
	}
	interval, limit := release.SampleLimits(&c.Spec)
	b.Results.setBudget(g, b.Results.lastBudget(g).AfterSample(g, percent, unclear, limit))
	return interval, nil
}

// askBudget asks how much of an error budget is left. Without data or an answer, it returns the sample for that.
func (b budgets) askBudget(ctx context.Context, c *releasev1alpha1.ReleaseCheck) (percent float64,
	unclear *sample.Sample) {
	fail := func(message string) (float64, *sample.Sample) {
		s := sample.Failure(message)
		return 0, &s
	}
	if why := release.UnfitForBudget(c); why != "" {
		return fail(why)
	}
	query, err := b.ofServer(ctx, c.Namespace, &c.Spec.SLO.PrometheusServer)
	if err != nil {
		return fail(err.Error())
	}
	return sample.BudgetLeft(c.Spec.SLO.Objective, eventsOf(c.Spec.SLO, c.Spec.SLO.Window, sample.Variables{},
		func(text string) sample.Answer { return query(ctx, "", text) }))
}
