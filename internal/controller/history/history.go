// Package history records releases, their approvals and their revisions in the history database, and events of
// clusters, placements and policies. It decides nothing: a release continues whether or not it is recorded.
package history

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/history"
	"github.com/argosy-io/argosy/internal/scope"
)

const (
	// retry is the time until the next attempt while the database does not answer.
	retry = 15 * time.Second
	// pause is the time for which a failure applies to all objects, so that each does not wait for the database.
	pause = 10 * time.Second
	// firstRetry and lastRetry bound the time between attempts for an object that the database refuses.
	firstRetry, lastRetry = time.Second, time.Minute
	// upkeepPeriod is the time between two removals of old rows.
	upkeepPeriod = time.Hour
)

type Options struct {
	// Source of the database; nil if the hub keeps no history.
	Source *history.Source
	// Progress counts the recorded entries of each release. The release controller reads it.
	Progress *Progress
	// Clock defaults to the real one.
	Clock clock.WithTicker
}

// Setup registers the recorders with the manager.
func Setup(mgr ctrl.Manager, o Options) error {
	o.Clock = cmp.Or(o.Clock, clock.WithTicker(clock.RealClock{}))
	o.Progress.off = o.Source == nil
	r := &recorder{Options: o, client: mgr.GetClient(), live: mgr.GetAPIReader()}
	type recorded struct {
		name   string
		kind   client.Object
		record reconcile.Func
	}
	all := []recorded{{"release-history", &releasev1alpha1.Release{}, r.release}}
	if o.Source != nil {
		all = append(all, recorded{"approval-history", &releasev1alpha1.ReleaseApproval{}, r.approval},
			recorded{"revision-history", &releasev1alpha1.ReleaseRevision{}, r.revision})
	}
	for _, one := range all {
		err := ctrl.NewControllerManagedBy(mgr).Named(one.name).For(one.kind).
			WithOptions(controller.Options{MaxConcurrentReconciles: 1, RateLimiter: limiter[reconcile.Request]()}).
			Complete(one.record)
		if err != nil {
			return fmt.Errorf("set up %s: %w", one.name, err)
		}
	}
	if o.Source == nil {
		return nil
	}
	deleted := predicate.Funcs{CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc:  func(event.UpdateEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false }}
	once := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{}} // all workloads are looked at
	})
	err := ctrl.NewControllerManagedBy(mgr).Named("deployment-history").
		Watches(&workv1alpha2.ResourceBinding{}, once, builder.WithPredicates(deleted)).
		WithOptions(controller.Options{MaxConcurrentReconciles: 1}).
		Complete(reconcile.Func(func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
			return later(r.ends(ctx))
		}))
	if err != nil {
		return fmt.Errorf("set up deployment-history: %w", err)
	}
	if err := setupFleet(mgr, r); err != nil {
		return err
	}
	return mgr.Add(manager.RunnableFunc(r.upkeep))
}

// recorder writes objects to the database.
type recorder struct {
	Options
	client client.Client
	// live reads from the API: the cache has no managed fields.
	live    client.Reader
	failing failing

	// mu protects replayed, the number of the database that has all objects.
	mu       sync.Mutex
	replayed int
}

// release records a release. It removes the finalizer of a deleted release that is recorded, or that the database
// refuses.
func (r *recorder) release(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	key := req.NamespacedName
	read := &releasev1alpha1.Release{}
	if err := r.client.Get(ctx, key, read); err != nil {
		if client.IgnoreNotFound(err) == nil {
			r.Progress.forget(key)
			return reconcile.Result{}, nil
		}
		return reconcile.Result{}, fmt.Errorf("get Release %s: %w", key, err)
	}
	deleted := read.DeletionTimestamp != nil && controllerutil.ContainsFinalizer(read, releasev1alpha1.RecordedFinalizer)
	if r.Source == nil {
		return r.removeFinalizer(ctx, read, deleted)
	}
	failure := r.write(ctx, func(s *history.Store) error {
		if err := s.RecordRelease(ctx, read); err != nil || !deleted {
			return err
		}
		return r.approvalsOf(ctx, s, read)
	})
	has := r.Progress.note(read, failure)
	var report error
	if has.MustRecord(read) {
		want := read.DeepCopy()
		has.Record(&want.Status, read.Generation)
		_, report = commit.Status(ctx, r.client, read, want)
		read = want
	}
	if report != nil {
		return commit.Requeue(0, report)
	}
	if deleted && history.IsOfObject(failure) {
		ctrl.LoggerFrom(ctx).Error(failure, "the history database refuses a release that is being deleted; it goes")
		failure = nil
	}
	if failure != nil {
		return later(failure)
	}
	return r.removeFinalizer(ctx, read, deleted)
}

// removeFinalizer removes the finalizer of a release that is being deleted.
func (r *recorder) removeFinalizer(ctx context.Context, read *releasev1alpha1.Release,
	deleted bool) (reconcile.Result, error) {
	if !deleted {
		return reconcile.Result{}, nil
	}
	return commit.Requeue(0, commit.RemoveFinalizer(ctx, r.client, read, releasev1alpha1.RecordedFinalizer))
}

// replay records all objects in a database that was opened again, because its file may be another one. The first
// database gets them from the start of the watches. replay logs the objects that the database refuses.
func (r *recorder) replay(ctx context.Context, s *history.Store, opened int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.replayed = cmp.Or(r.replayed, opened)
	if r.replayed == opened {
		return nil
	}
	var revisions releasev1alpha1.ReleaseRevisionList
	var releases releasev1alpha1.ReleaseList
	var approvals releasev1alpha1.ReleaseApprovalList
	for _, list := range []client.ObjectList{&revisions, &releases, &approvals} {
		if err := r.client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return fmt.Errorf("list %T: %w", list, err)
		}
	}
	var errs []error
	note := func(obj client.Object, err error) {
		if history.IsOfObject(err) {
			failedWrites.Inc()
			ctrl.LoggerFrom(ctx).Error(err, "the history database refuses an object", "object",
				fmt.Sprintf("%T %s/%s", obj, obj.GetNamespace(), obj.GetName()))
			return
		}
		errs = append(errs, err)
	}
	for i := range revisions.Items {
		note(&revisions.Items[i], s.RecordRevision(ctx, &revisions.Items[i]))
	}
	for i := range releases.Items {
		note(&releases.Items[i], s.RecordRelease(ctx, &releases.Items[i]))
	}
	for i := range approvals.Items {
		note(&approvals.Items[i], s.RecordApproval(ctx, &approvals.Items[i]))
	}
	failed := r.replayFleet(ctx, s, note)
	err := errors.Join(append(errs, failed)...)
	if err == nil {
		r.replayed = opened
	}
	return err
}

// approvalsOf records the approvals of a release before they are deleted with it. One that the database refuses does
// not keep it from the others.
func (r *recorder) approvalsOf(ctx context.Context, s *history.Store, read *releasev1alpha1.Release) error {
	var approvals releasev1alpha1.ReleaseApprovalList
	if err := r.client.List(ctx, &approvals, client.InNamespace(read.Namespace),
		client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list the approvals of Release %s/%s: %w", read.Namespace, read.Name, err)
	}
	var refused []error
	for i := range approvals.Items {
		if a := &approvals.Items[i]; a.Spec.ReleaseUID == read.UID {
			err := s.RecordApproval(ctx, a)
			if err != nil && !history.IsOfObject(err) {
				return err
			}
			refused = append(refused, err)
		}
	}
	return errors.Join(refused...)
}

func (r *recorder) approval(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var read releasev1alpha1.ReleaseApproval
	if err := r.client.Get(ctx, req.NamespacedName, &read); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	return later(r.write(ctx, func(s *history.Store) error { return s.RecordApproval(ctx, &read) }))
}

func (r *recorder) revision(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var read releasev1alpha1.ReleaseRevision
	if err := r.client.Get(ctx, req.NamespacedName, &read); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	return later(r.write(ctx, func(s *history.Store) error { return s.RecordRevision(ctx, &read) }))
}

// ends records which workloads were deleted, so that their revisions no longer run in any cluster. A workload whose
// policy was deleted keeps its binding.
func (r *recorder) ends(ctx context.Context) error {
	return r.write(ctx, func(s *history.Store) error {
		deployed, err := s.Deployed(ctx)
		if err != nil {
			return err
		}
		var deleted []history.Workload
		for _, w := range deployed {
			b, _, err := scope.BindingFor(ctx, r.client, schema.GroupKind{Group: w.Group, Kind: w.Kind}, w.Namespace, w.Name,
				client.UnsafeDisableDeepCopy)
			if err != nil {
				return err
			}
			if b == nil {
				deleted = append(deleted, w)
			}
		}
		if len(deleted) == 0 {
			return nil
		}
		return s.RecordEnds(ctx, deleted, r.Clock.Now())
	})
}

// later tries again if a write failed. write has logged that the database does not answer.
func later(err error) (reconcile.Result, error) {
	if err == nil || history.IsOfObject(err) {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: retry}, nil
}

// write runs a write of the database, after a replay if the database was opened again. It logs when the database begins
// to fail, and when it answers again.
func (r *recorder) write(ctx context.Context, write func(s *history.Store) error) error {
	if err := r.failing.recent(r.Clock.Now()); err != nil {
		return err
	}
	store, opened, err := r.Source.Store(ctx)
	if err == nil {
		err = r.replay(ctx, store, opened)
	}
	if err == nil {
		err = write(store)
	}
	log := ctrl.LoggerFrom(ctx)
	switch {
	case ctx.Err() != nil:
	case err == nil:
		if r.failing.end() {
			log.Info("the history database takes releases again")
		}
	case history.IsOfObject(err):
		failedWrites.Inc()
	default:
		failedWrites.Inc()
		if r.failing.note(err, r.Clock.Now()) {
			log.Error(err, "cannot record releases; they continue, and are recorded when the history database answers")
		}
	}
	return err
}

// upkeep records what workloads request. In a database that is open, it removes old rows, records deletions that the
// hub did not see, and makes the copy of the day. It logs once what was restored.
func (r *recorder) upkeep(ctx context.Context) error {
	log := ctrl.LoggerFrom(ctx).WithName("release-history")
	ticker := r.Clock.NewTicker(upkeepPeriod)
	defer ticker.Stop()
	var reported *history.Store
	var sampled time.Time
	for {
		if store := r.Source.Opened(); store != nil {
			if restored := store.Restored(); store != reported && restored != (history.Restored{}) {
				log.Info("the history database was damaged or gone; history that no object has may be lost",
					"moved", restored.Moved, "restored", restored.From, "noRoomFor", restored.NoRoom)
			}
			reported = store
			now := r.Clock.Now()
			err := errors.Join(r.ends(ctx), store.Delete(ctx, history.DefaultRetention, now), store.Backup(ctx, now))
			if err != nil && ctx.Err() == nil {
				log.Error(err, "cannot remove old rows of the history database, or copy it; the next attempt is in an hour")
			}
			size.Set(float64(store.Size(ctx)))
		}
		if err := r.sample(ctx, &sampled); err != nil && ctx.Err() == nil {
			log.Error(err, "cannot record what workloads request; the next attempt is in an hour")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
	}
}
