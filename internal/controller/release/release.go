// Package release carries out releases. core/release decides the next step of a release; the controller reads what the
// step follows from, and writes it: the ReleaseRevisions, the status, and the plan on the bindings of the targets.
package release

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/release"
	"github.com/argosy-io/argosy/internal/template"
)

type Options struct {
	Templates *template.Store
	// Checks are the states of checks.
	Checks Checks
	// Recorded returns the state of a release in the release history.
	Recorded func(*releasev1alpha1.Release) release.History
}

// Checks are the states of checks as of their last samples.
type Checks interface {
	// States returns the states of the checks of a release, by key.
	States(release types.NamespacedName) map[string]releasev1alpha1.ReleaseCheckStatus
	// Subscribe adds a function that is called when a check of a release has something to store.
	Subscribe(f func(release types.NamespacedName))
	// Budget returns the error budget of a guard after the last sample of this process; nil if there was none.
	Budget(g *releasev1alpha1.ReleaseGuard) *releasev1alpha1.ReleaseGuardBudget
	// SubscribeBudgets adds a function that is called after the first sample of a guard, and when its budget has changed.
	SubscribeBudgets(f func(guard string))
}

const (
	// firstRetry is the delay of the first attempt after a failure; it grows.
	firstRetry = 100 * time.Millisecond
	// defaultTTL is the time to live of a release that has ended and does not set one.
	defaultTTL = 30 * 24 * time.Hour
)

type reconciler struct {
	Options
	client client.Client
	// live reads past the cache, where an old state would refuse a release or hold a plan.
	live   client.Reader
	events commit.Events
	// pending are the statuses that were written, by release.
	pending commit.PendingWrites[*metav1.PartialObjectMetadata]
}

// Setup registers the controllers with the manager. That of releases has one worker: two releases of a workload, or
// more than ReleaseGuards permit, must not start at the same time.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	r := &reconciler{Options: o, client: mgr.GetClient(), live: mgr.GetAPIReader(),
		events: commit.Recorder(mgr, "release-controller")}
	r.pending.Life = commit.PendingWriteLife
	followed.Store(new(client.Reader(mgr.GetCache())))
	if err := index(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	if err := setupGuards(mgr, r); err != nil {
		return err
	}
	if err := setupStarts(mgr, r); err != nil {
		return err
	}
	if err := setupOwners(mgr, r); err != nil {
		return err
	}
	return r.watch(ctrl.NewControllerManagedBy(mgr).Named("release").WithOptions(controller.Options{
		MaxConcurrentReconciles: 1,
		RateLimiter:             commit.Backoff[reconcile.Request](firstRetry),
	})).Complete(r)
}

// Reconcile takes the next step of a release.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	return commit.Requeue(r.reconcile(ctx, req.NamespacedName))
}

func (r *reconciler) reconcile(ctx context.Context, key types.NamespacedName) (after time.Duration, err error) {
	read := &releasev1alpha1.Release{}
	err = r.client.Get(ctx, key, read)
	if apierrors.IsNotFound(err) {
		err = r.live.Get(ctx, key, read)
	}
	if apierrors.IsNotFound(err) {
		r.pending.Forget(key)
		return 0, r.holdPlans(ctx, key, "")
	}
	if err != nil {
		return 0, fmt.Errorf("get Release %s: %w", key, err)
	}
	if read.DeletionTimestamp != nil {
		return 0, r.holdPlans(ctx, key, "")
	}
	if r.isBehind([]releasev1alpha1.Release{*read}) {
		return commit.StaleRetry, nil
	}
	if err := r.holdPlans(ctx, key, string(read.UID)); err != nil {
		return 0, err
	}
	in, err := r.input(ctx, read)
	if err != nil {
		return 0, err
	}
	if r.isBehind(in.Others) || r.isBehind(in.Peers) {
		return commit.StaleRetry, nil
	}
	step := release.Next(in)
	if err := template.CreateVersions(ctx, r.client, step.ConfigMaps); commit.Transient(err) {
		return 0, err
	} else if err != nil {
		in.VersionsRefused = err.Error()
		step = release.Next(in)
	}
	if err := r.write(ctx, in, step); err != nil {
		return 0, err
	}
	expires, err := r.expire(ctx, in, step)
	return commit.ShorterDelay(step.RequeueAfter, expires), err
}

// isBehind reports whether the cache lacks a status of one of the releases that this controller has written.
func (r *reconciler) isBehind(releases []releasev1alpha1.Release) bool {
	for i := range releases {
		cached := &releases[i]
		key := client.ObjectKeyFromObject(cached)
		for _, written := range r.pending.Get(key) {
			if !commit.Shows(cached, written) {
				return true
			}
		}
		r.pending.Seen(key, cached)
	}
	return false
}

// holdPlans holds the plans of a release that does not exist any more: its absence neither continues nor ends them. uid
// is of the release that has the name now.
func (r *reconciler) holdPlans(ctx context.Context, key types.NamespacedName, uid string) error {
	var bindings workv1alpha2.ResourceBindingList
	if err := r.client.List(ctx, &bindings, client.InNamespace(key.Namespace),
		client.MatchingFields{byPlan: key.Name}); err != nil {
		return fmt.Errorf("list the bindings of Release %s: %w", key, err)
	}
	for i := range bindings.Items {
		b := &bindings.Items[i]
		plan := release.PausedPlan(b, uid)
		if plan == nil {
			continue
		}
		if err := r.pace(ctx, b, release.BindingState{Plan: plan, Revision: plan.Revision}); err != nil {
			return err
		}
	}
	return nil
}

// expire deletes a release that has ended when its time to live is over, and returns when that will be. A release whose
// clusters catch up stays until they have, and the last record of a workload until the next one.
func (r *reconciler) expire(ctx context.Context, in release.Input, step release.Step) (time.Duration, error) {
	if !step.Status.Phase.Ended() || step.Status.EndedAt == nil {
		return 0, nil
	}
	for _, t := range in.Targets {
		if release.CatchesUp(in.Release, t) {
			return 0, nil
		}
	}
	ttl := defaultTTL
	if seconds := in.Release.Spec.TTLSecondsAfterFinished; seconds != nil {
		ttl = time.Duration(*seconds) * time.Second
	}
	if left := time.Until(step.Status.EndedAt.Add(ttl)); left > 0 {
		return left, nil
	}
	if release.IsLastRecord(in) {
		return time.Hour, nil
	}
	return 0, commit.Delete(ctx, r.client, in.Release)
}
