package release

import (
	"context"
	"slices"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/release"
	"github.com/argosy-io/argosy/internal/facts"
	"github.com/argosy-io/argosy/internal/filter"
)

// byGuard finds releases that wait for guards: its value is guardWaits.
const (
	byGuard    = "release.guard"
	guardWaits = "waits"
)

// waiting returns the releases that wait for guards.
func (r *reconciler) waiting(ctx context.Context, _ client.Object) []reconcile.Request {
	return r.active(ctx, client.MatchingFields{byGuard: guardWaits})
}

// useChanged passes releases whose use of the limits of guards, or whose wait for a guard, has changed.
var useChanged = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		was, is := e.ObjectOld.(*releasev1alpha1.Release), e.ObjectNew.(*releasev1alpha1.Release)
		return was.UID != is.UID || was.Status.Phase != is.Status.Phase ||
			!was.DeletionTimestamp.Equal(is.DeletionTimestamp) || !equalWait(was.Status.Guard, is.Status.Guard) ||
			begunStages(was) != begunStages(is)
	},
}

// equalWait compares what releases wait for.
func equalWait(a, b *releasev1alpha1.ReleaseGuardWait) bool {
	return (a == nil) == (b == nil) && (a == nil || a.Name == b.Name && a.Limit == b.Limit &&
		slices.Equal(a.Queues, b.Queues))
}

// begunStages counts the stages that have begun, and those that have ended.
func begunStages(r *releasev1alpha1.Release) (n struct{ begun, ended int }) {
	for _, stage := range r.Status.Stages {
		if stage.StartedAt != nil {
			n.begun++
		}
		if stage.EndedAt != nil {
			n.ended++
		}
	}
	return n
}

// guardDelay collects the changes of releases: each may start several stages.
const guardDelay = time.Second

// setupGuards registers the controller of ReleaseGuards. It writes their statuses, which decide nothing.
func setupGuards(mgr ctrl.Manager, r *reconciler) error {
	all := func(ctx context.Context, _ client.Object) []reconcile.Request {
		return filter.Listed(ctx, r.client, &releasev1alpha1.ReleaseGuardList{}, nil)
	}
	return ctrl.NewControllerManagedBy(mgr).Named("releaseguard").
		For(&releasev1alpha1.ReleaseGuard{}, builder.WithPredicates(filter.Respecified)).
		Watches(&releasev1alpha1.Release{}, filter.Delayed(guardDelay, all),
			builder.WithPredicates(filter.AfterStart, useChanged)).
		WatchesRawSource(source.Func(func(_ context.Context, q queue) error {
			r.Checks.SubscribeBudgets(func(guard string) {
				q.Add(reconcile.Request{NamespacedName: client.ObjectKey{Name: guard}})
			})
			return nil
		})).
		WithOptions(controller.Options{RateLimiter: commit.Backoff[reconcile.Request](firstRetry)}).
		Complete(reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
			return commit.Requeue(r.writeGuard(ctx, req.NamespacedName))
		}))
}

// writeGuard writes the status of a guard.
func (r *reconciler) writeGuard(ctx context.Context, key client.ObjectKey) (time.Duration, error) {
	read := &releasev1alpha1.ReleaseGuard{}
	if err := r.client.Get(ctx, key, read); err != nil {
		return 0, client.IgnoreNotFound(err)
	}
	releases, err := facts.ReleasesIn(ctx, r.client)
	if err != nil {
		return 0, err
	}
	clusters, err := facts.Clusters(ctx, r.client)
	if err != nil {
		return 0, err
	}
	want, now := read.DeepCopy(), time.Now()
	status, until := release.GuardStatus(read, releases, clusters, r.Checks.Budget(read), now)
	want.Status = status
	if _, err := commit.Status(ctx, r.client, read, want); err != nil {
		return 0, err
	}
	if until.IsZero() {
		return 0, nil
	}
	return max(until.Sub(now), time.Second), nil
}
