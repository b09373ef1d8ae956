// Package history records releases, their approvals and their revisions in the history database. It decides nothing:
// a release goes on whether or not it is recorded.
package history

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/internal/history"
)

const (
	// firstRetry and lastRetry bound the time between attempts while the database does not answer.
	firstRetry, lastRetry = time.Second, time.Minute
	// upkeepPeriod is how often old rows are removed and the copy of the day is made.
	upkeepPeriod = time.Hour
)

// unrecorded counts objects whose last change is not in the database.
var unrecorded = prometheus.NewCounter(prometheus.CounterOpts{Name: "argosy_history_failed_writes_total",
	Help: "Number of attempts to write to the release history that failed. They are repeated until they succeed."})

func init() { metrics.Registry.MustRegister(unrecorded) }

// Setup registers the recorders with the manager.
func Setup(mgr ctrl.Manager, source *history.Source) error {
	r := &recorder{client: mgr.GetClient(), source: source}
	limiter := func() controller.Options {
		return controller.Options{MaxConcurrentReconciles: 1,
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry)}
	}
	err := ctrl.NewControllerManagedBy(mgr).Named("release-history").For(&releasev1alpha1.Release{}).
		WithOptions(limiter()).Complete(reconcile.Func(r.release))
	if err != nil {
		return fmt.Errorf("set up the recorder of releases: %w", err)
	}
	err = ctrl.NewControllerManagedBy(mgr).Named("approval-history").For(&releasev1alpha1.ReleaseApproval{}).
		WithOptions(limiter()).Complete(reconcile.Func(r.approval))
	if err != nil {
		return fmt.Errorf("set up the recorder of approvals: %w", err)
	}
	err = ctrl.NewControllerManagedBy(mgr).Named("revision-history").For(&releasev1alpha1.ReleaseRevision{}).
		WithOptions(limiter()).Complete(reconcile.Func(r.revision))
	if err != nil {
		return fmt.Errorf("set up the recorder of revisions: %w", err)
	}
	return mgr.Add(manager.RunnableFunc(r.upkeep))
}

// recorder writes objects to the database.
type recorder struct {
	client client.Client
	source *history.Source
}

// release records a release. One that is being deleted goes when its last state is recorded.
func (r *recorder) release(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var release releasev1alpha1.Release
	if err := r.client.Get(ctx, req.NamespacedName, &release); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	err := r.write(ctx, func(s *history.Store) error { return s.RecordRelease(ctx, &release) })
	if err := errors.Join(err, r.report(ctx, &release, err)); err != nil {
		return reconcile.Result{}, err
	}
	if release.DeletionTimestamp.IsZero() || !controllerutil.ContainsFinalizer(&release, releasev1alpha1.RecordedFinalizer) {
		return reconcile.Result{}, nil
	}
	patch := client.MergeFromWithOptions(release.DeepCopy(), client.MergeFromWithOptimisticLock{})
	controllerutil.RemoveFinalizer(&release, releasev1alpha1.RecordedFinalizer)
	return reconcile.Result{}, client.IgnoreNotFound(r.client.Patch(ctx, &release, patch))
}

// approval records an approval.
func (r *recorder) approval(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var approval releasev1alpha1.ReleaseApproval
	if err := r.client.Get(ctx, req.NamespacedName, &approval); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	return reconcile.Result{}, r.write(ctx, func(s *history.Store) error { return s.RecordApproval(ctx, &approval) })
}

// revision records a revision.
func (r *recorder) revision(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var revision releasev1alpha1.ReleaseRevision
	if err := r.client.Get(ctx, req.NamespacedName, &revision); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	return reconcile.Result{}, r.write(ctx, func(s *history.Store) error { return s.RecordRevision(ctx, &revision) })
}

// write runs a write of the database.
func (r *recorder) write(ctx context.Context, write func(*history.Store) error) error {
	store, err := r.source.Store(ctx)
	if err == nil {
		err = write(store)
	}
	if err != nil {
		unrecorded.Inc()
	}
	return err
}

// report sets the condition Recorded when recording begins to fail, and when it succeeds again. A release that never
// failed to be recorded costs no write.
func (r *recorder) report(ctx context.Context, release *releasev1alpha1.Release, failure error) error {
	fails := meta.IsStatusConditionFalse(release.Status.Conditions, releasev1alpha1.ReleaseRecorded)
	if fails == (failure != nil) {
		return nil
	}
	cond := metav1.Condition{Type: releasev1alpha1.ReleaseRecorded, Status: metav1.ConditionTrue,
		Reason: releasev1alpha1.ReasonStored, Message: "The history database has all of this release.",
		ObservedGeneration: release.Generation}
	if failure != nil {
		cond.Status, cond.Reason = metav1.ConditionFalse, releasev1alpha1.ReasonDatabaseUnavailable
		cond.Message = "The release continues; its history is written when the database answers: " + failure.Error()
	}
	patch := client.MergeFromWithOptions(release.DeepCopy(), client.MergeFromWithOptimisticLock{})
	meta.SetStatusCondition(&release.Status.Conditions, cond)
	return client.IgnoreNotFound(r.client.Status().Patch(ctx, release, patch))
}

// upkeep removes old rows and copies the database once a day.
func (r *recorder) upkeep(ctx context.Context) error {
	log := ctrl.LoggerFrom(ctx).WithName("release-history")
	for {
		if store, err := r.source.Store(ctx); err == nil {
			if restored := store.Restored(); restored.Moved != "" {
				log.Info("the history database was damaged; older history is in the file it was moved to",
					"moved", restored.Moved, "restored", restored.From)
			}
			if err := errors.Join(store.Delete(ctx, history.DefaultRetention, time.Now()),
				store.Backup(ctx, time.Now())); err != nil && ctx.Err() == nil {
				log.Error(err, "keep the history database in order")
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(upkeepPeriod):
		}
	}
}
