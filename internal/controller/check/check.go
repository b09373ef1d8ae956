// Package check asks what ReleaseChecks name: a Prometheus, a webhook, or a Job in members. It is the only controller
// that calls out for users. core/release decides when a sample is due and what the samples mean.
package check

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/netip"
	"reflect"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/release"
	"github.com/argosy-io/argosy/internal/core/release/sample"
	"github.com/argosy-io/argosy/internal/filter"
	"github.com/argosy-io/argosy/internal/member"
)

// Options of the controller.
type Options struct {
	// Members are asked for Services in them.
	Members *member.Members
	// Results get the samples.
	Results *Results
	// Networks are those that checks may call; none for all but the addresses of the hub's own machine.
	Networks []netip.Prefix
	// Dial opens connections to the servers of checks; default TCP, to permitted addresses.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Clock is the time; default the real one.
	Clock clock.PassiveClock
	// Concurrency is the number of releases that are reconciled at the same time.
	Concurrency int
}

const (
	// firstRetry is the delay of the first attempt after a failure; it grows.
	firstRetry = time.Second
	// clustersAtOnce is the number of clusters that are asked at the same time for one check.
	clustersAtOnce = 8
	// byRelease is the index that finds the Works of a release's Jobs.
	byRelease = "check.release"
)

type reconciler struct {
	Options
	client client.Client
	// live reads past the cache.
	live client.Reader
	http caller
}

// Setup registers the controller with the manager.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	o.Clock = cmp.Or(o.Clock, clock.PassiveClock(clock.RealClock{}))
	r := &reconciler{Options: o, client: mgr.GetClient(), live: mgr.GetAPIReader(), http: caller{dial: o.Dial}}
	if r.http.dial == nil {
		r.http.dial = guarded(o.Networks)
	}
	if err := mgr.GetFieldIndexer().IndexField(ctx, &workv1alpha1.Work{}, byRelease, func(w client.Object) []string {
		if of := w.GetAnnotations()[wellknown.CheckOfAnnotation]; of != "" {
			return []string{of}
		}
		return nil
	}); err != nil {
		return fmt.Errorf("index the Works of checks: %w", err)
	}
	if err := setupBudgets(mgr, r); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).Named("release-check").
		For(&releasev1alpha1.Release{}, builder.WithPredicates(asked)).
		Watches(&workv1alpha1.Work{}, handler.EnqueueRequestsFromMapFunc(ofJob), builder.WithPredicates(jobs)).
		WithOptions(controller.Options{MaxConcurrentReconciles: o.Concurrency,
			RateLimiter: commit.Backoff[reconcile.Request](firstRetry)}).
		Complete(r)
}

// asked passes releases that wait for other checks than before.
var asked = filter.Changes(func(was, is *releasev1alpha1.Release) bool {
	return was.Status.Phase != is.Status.Phase || was.UID != is.UID ||
		!was.DeletionTimestamp.Equal(is.DeletionTimestamp) ||
		!reflect.DeepEqual(release.CheckCalls(was), release.CheckCalls(is))
})

// jobs passes Works of the Jobs of checks.
var jobs = predicate.And(predicate.NewPredicateFuncs(func(w client.Object) bool {
	return w.GetAnnotations()[wellknown.CheckOfAnnotation] != ""
}), filter.Changes(func(was, is *workv1alpha1.Work) bool { return !reflect.DeepEqual(was.Status, is.Status) }))

// ofJob returns the release of the Work of a Job.
func ofJob(_ context.Context, w client.Object) []reconcile.Request {
	namespace, name, _ := strings.Cut(w.GetAnnotations()[wellknown.CheckOfAnnotation], "/")
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: namespace, Name: name}}}
}

// Reconcile takes the samples that are due.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	return commit.Requeue(r.reconcile(ctx, req.NamespacedName))
}

func (r *reconciler) reconcile(ctx context.Context, key client.ObjectKey) (after time.Duration, err error) {
	rel := &releasev1alpha1.Release{}
	err = r.client.Get(ctx, key, rel)
	if client.IgnoreNotFound(err) != nil {
		return 0, fmt.Errorf("get Release %s: %w", key, err)
	}
	now := r.Clock.Now()
	var calls []release.CheckCall
	var keep map[string]bool // the Works of its Jobs
	if err == nil {
		var again time.Time
		calls = release.CheckCalls(rel)
		keep, again = release.JobsToKeep(rel, now)
		if !again.IsZero() {
			after = max(again.Sub(now), time.Second)
		}
	}

	// 1. Forget what is no longer asked.
	keys := map[string]bool{}
	for _, call := range calls {
		keys[call.Status.Key] = true
	}
	r.Results.keep(key, keys)
	works, err := r.deleteJobs(ctx, key, keep)
	if err != nil {
		return 0, err
	}

	// 2. Ask.
	delays, errs := make([]time.Duration, len(calls)), make([]error, len(calls))
	var all sync.WaitGroup
	for i, call := range calls {
		all.Go(func() { delays[i], errs[i] = r.takeSample(ctx, rel, call, works) })
	}
	all.Wait()
	for i := range calls {
		if errs[i] != nil {
			return 0, errs[i]
		}
		after = commit.ShorterDelay(after, delays[i])
	}
	return after, nil
}

// takeSample takes a sample of a check if it is due, and returns when the next one is.
func (r *reconciler) takeSample(ctx context.Context, rel *releasev1alpha1.Release, call release.CheckCall,
	works []workv1alpha1.Work) (time.Duration, error) {
	key := client.ObjectKeyFromObject(rel)
	was := r.Results.latest(key, call.Status)
	if release.IsDecided(was) {
		return 0, nil
	}
	var check releasev1alpha1.ReleaseCheck
	err := r.client.Get(ctx, client.ObjectKey{Namespace: rel.Namespace, Name: was.Name}, &check)
	if client.IgnoreNotFound(err) != nil {
		return 0, fmt.Errorf("get ReleaseCheck %s/%s: %w", rel.Namespace, was.Name, err)
	}
	wait := call.Due(&check.Spec, was).Sub(r.Clock.Now())
	var s sample.Sample
	switch spec := &check.Spec; {
	case err == nil && spec.Job != nil:
		if s, err = r.job(ctx, rel, call, spec.Job, works); err != nil {
			return 0, err
		}
		if wait > 0 && s.Outcome != sample.Pass && s.Outcome != sample.Fail {
			return wait, nil // the Job reports by events
		}
	case wait > 0:
		return wait, nil
	case apierrors.IsNotFound(err):
		s = missingCheck(rel.Namespace, was.Name)
	case spec.Prometheus != nil:
		s = r.prometheus(ctx, rel, call, spec.Prometheus)
	case spec.Webhook != nil:
		s = r.webhook(ctx, rel, call, spec.Webhook)
	case spec.SLO != nil:
		s = r.slo(ctx, rel, call, spec.SLO)
	}
	if ctx.Err() != nil {
		return 0, nil // the hub stops, which is no answer
	}
	is := release.WithSample(&check.Spec, was, s, r.Clock.Now())
	r.Results.set(key, was, is)
	if release.IsDecided(is) {
		return 0, nil
	}
	return max(call.Due(&check.Spec, is).Sub(r.Clock.Now()), time.Second), nil
}

// missingCheck is the sample of a ReleaseCheck that does not exist.
func missingCheck(namespace, name string) sample.Sample {
	return sample.Failure(fmt.Sprintf("ReleaseCheck %s/%s does not exist: create it", namespace, name))
}
