// Package failover moves workloads out of clusters that are lost, drained or unhealthy. core/adjust/failover decides
// what moves, where, and when the old instance is deleted. This controller plans when the facts change, and at the
// time that the last plan names, and executes the plan with one write per binding.
package failover

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/capacity"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/adjust/failover"
	"github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/core/schedule"
	"github.com/argosy-io/argosy/internal/facts"
	"github.com/argosy-io/argosy/internal/scope"
	"github.com/argosy-io/argosy/internal/template"
)

// Options of the controller.
type Options struct {
	failover.Options
	Fleet     *capacity.Fleet
	Templates *template.Store
	// Settle is the time after the first plan in which nothing is evicted, until the conditions of the clusters are up to
	// date.
	Settle time.Duration
	// Gather is the time from a change to the plan, in which other changes may follow.
	Gather time.Duration
	// LastReported counts what clusters that are not ready last reported as if it were so now, as Karmada does.
	LastReported bool
	// Clock is the real clock by default.
	Clock clock.PassiveClock
}

const (
	// parallel is the number of bindings that are written in parallel.
	parallel = 16
	// eventsAtOnce and eventsPerSecond bound the events of bindings. The events of clusters count the rest.
	eventsAtOnce, eventsPerSecond = 500, 50
)

type reconciler struct {
	Options
	client client.Client
	events commit.Events
	// limiter limits the events of bindings.
	limiter *rate.Limiter
	// began is the time of the first plan: the caches are filled, and this hub leads.
	began time.Time
	// recent are the times of the evictions of the last minute.
	recent []time.Time
	// pending are the bindings that were written.
	pending commit.PendingWrites[workv1alpha2.Binding]
	// wantsRoom is true if something waits for room, and while a plan is made and its input is read: that may not see new
	// room any more.
	wantsRoom atomic.Bool
	// reported are the warnings that were recorded, and are not out of date.
	reported map[subject]failover.Waiting
}

// subject identifies a warning: a binding and the cluster that it should leave.
type subject struct {
	binding types.NamespacedName
	cluster string
}

func newReconciler(c client.Client, o Options) *reconciler {
	o.Clock = cmp.Or(o.Clock, clock.PassiveClock(clock.RealClock{}))
	return &reconciler{Options: o, client: c, reported: map[subject]failover.Waiting{},
		limiter: rate.NewLimiter(eventsPerSecond, eventsAtOnce)}
}

// Setup registers the controller with the manager.
func Setup(mgr ctrl.Manager, o Options) error {
	o.SchedulerName = cmp.Or(o.SchedulerName, policyv1alpha1.DefaultSchedulerName)
	r := newReconciler(mgr.GetClient(), o)
	r.events = commit.Recorder(mgr, "failover-controller")
	// One worker: a plan needs the result of the plan before it.
	b := ctrl.NewControllerManagedBy(mgr).Named("failover").WatchesRawSource(changes{r})
	for _, kind := range scope.Bindings.Kinds() {
		b = b.Watches(kind, r.planOnBindingChange())
	}
	updated := func(_ context.Context, _ event.UpdateEvent, q queue) { q.AddAfter(plan, r.Gather) }
	for _, kind := range scope.Propagations.Kinds() {
		b = b.Watches(kind, handler.Funcs{UpdateFunc: updated},
			builder.WithPredicates(predicate.AnnotationChangedPredicate{}))
	}
	return b.Complete(r)
}

// Reconcile makes the plan and executes it.
func (r *reconciler) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	now := r.Clock.Now()
	if r.began.IsZero() {
		r.began = now
	}
	if wait := r.began.Add(r.Settle).Sub(now); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	r.wantsRoom.Store(true)
	in, room, err := r.input(ctx, now)
	if err != nil {
		return ctrl.Result{}, err
	}
	plan := failover.Make(in, now)
	reserve(room, &plan, now)
	r.wantsRoom.Store(slices.ContainsFunc(plan.Waiting, func(w failover.Waiting) bool {
		return w.Code == failover.NothingFits
	}))
	err = errors.Join(r.evict(ctx, plan.Evictions, now), r.finish(ctx, plan.Finishes, now), r.pause(ctx, plan.Paused, now))
	r.report(in.Bindings, plan)
	var after time.Duration
	if !plan.Next.IsZero() {
		after = max(plan.Next.Sub(now), r.Gather, time.Millisecond)
	}
	return commit.Requeue(after, err)
}

// reserve reserves the room that a plan takes. Other placements may have taken some of it while the plan was made: then
// reserve drops the first eviction without room and all later ones, and plans again at once.
func reserve(room *capacity.Room, plan *failover.Plan, now time.Time) {
	n := room.Reserve()
	if n == len(plan.Evictions) {
		return
	}
	dropped := map[types.NamespacedName]bool{}
	for _, e := range plan.Evictions[n:] {
		dropped[client.ObjectKeyFromObject(e.Binding)] = true
	}
	plan.Waiting = slices.DeleteFunc(plan.Waiting, func(w failover.Waiting) bool { return dropped[w.Binding] })
	plan.Evictions, plan.Next = plan.Evictions[:n], now
}

// input reads the facts for a plan.
func (r *reconciler) input(ctx context.Context, now time.Time) (failover.Input, *capacity.Room, error) {
	snapshot := r.Fleet.Snapshot()
	room := r.Fleet.PlanRoom(snapshot)
	clusters, err := facts.ClusterList(ctx, r.client)
	if err != nil {
		return failover.Input{}, nil, err
	}
	all, err := scope.Bindings.List(ctx, r.client, client.UnsafeDisableDeepCopy)
	if err != nil {
		return failover.Input{}, nil, fmt.Errorf("list bindings: %w", err)
	}
	r.recent = slices.DeleteFunc(r.recent, func(t time.Time) bool { return now.Sub(t) >= time.Minute })
	return facts.FailoverInput(ctx, r.client, r.template, r.Options.Options, snapshot, room, clusters,
		r.current(all), r.recent), room, nil
}

// current returns the bindings, each as the cache has it or as the last plan wrote it.
func (r *reconciler) current(cached []workv1alpha2.Binding) []workv1alpha2.Binding {
	exist := make(map[types.NamespacedName]bool, len(cached))
	for i, b := range cached {
		key := client.ObjectKeyFromObject(b)
		exist[key] = true
		cached[i] = commit.Newest(b, r.pending.Get(key))
		r.pending.Seen(key, b)
	}
	r.pending.ForgetIf(func(key types.NamespacedName) bool { return !exist[key] })
	return cached
}

// template reads the template of a binding.
func (r *reconciler) template(ctx context.Context, b workv1alpha2.Binding) (*unstructured.Unstructured, error) {
	obj, found, err := r.Templates.ForBinding(ctx, b)
	if err != nil && !errors.Is(err, propagate.ErrReference) {
		return nil, err
	}
	if !found {
		return nil, fmt.Errorf("the template %s %s is not found", b.BindingSpec().Resource.Kind,
			b.BindingSpec().Resource.Name)
	}
	return obj, nil
}

// runParallel calls act with 0 to n-1, several in parallel, and joins the errors.
func runParallel(n int, act func(i int) error) error {
	errs := make([]error, n)
	var calls errgroup.Group
	calls.SetLimit(parallel)
	for i := range n {
		calls.Go(func() error {
			errs[i] = act(i)
			return nil
		})
	}
	_ = calls.Wait() // errs has all errors
	return errors.Join(errs...)
}

// evict executes evictions, each in one write of its binding.
func (r *reconciler) evict(ctx context.Context, evictions []failover.Eviction, now time.Time) error {
	written := make([]workv1alpha2.Binding, len(evictions))
	err := runParallel(len(evictions), func(i int) error {
		e := &evictions[i]
		want := e.Binding.DeepCopyObject().(workv1alpha2.Binding)
		e.Apply(want)
		if err := r.write(ctx, e.Binding, want, e.Affinity, now); err != nil {
			r.Fleet.Assume(e.Binding, e.Binding.BindingSpec().Clusters)
			return fmt.Errorf("evict from cluster %q: %w", e.From, err)
		}
		written[i] = want
		return nil
	})
	leaving := map[string]int{}
	for i, b := range written {
		e := &evictions[i]
		if b == nil {
			evicted.WithLabelValues(e.Reason(), "Failed").Inc()
			continue
		}
		r.pending.Add(client.ObjectKeyFromObject(b), b)
		r.recent = append(r.recent, now)
		evicted.WithLabelValues(e.Reason(), "Evicted").Inc()
		leaving[e.From]++
		ctrl.LoggerFrom(ctx).Info("evicted", "binding", client.ObjectKeyFromObject(b), "from", e.From, "reason", e.Reason(),
			"result", workv1alpha2.DescribeTargets(e.Placement))
		if len(e.Warnings) > 0 {
			r.warn(b, eventPreserveState, strings.Join(e.Warnings, "; "))
		}
		if r.limiter.AllowN(now, 1) {
			r.events.RecordSuccess(workv1alpha2.EventEvictWorkloadFromClusterSucceed, describe(e), b, scope.TemplateOf(b))
		}
	}
	for cluster, n := range leaving {
		if c := r.Fleet.Snapshot().Cluster(cluster); c != nil {
			r.events.RecordSuccess(workv1alpha2.EventEvictWorkloadFromClusterSucceed,
				fmt.Sprintf("Evicted %s from the cluster. Old copies are kept until their replacements are healthy, unless purgeMode is Directly.", text.Count(n, "workload")), c)
		}
	}
	return err
}

// write writes a binding together with the status that follows: the confirmation of its placement, and what its Works
// mean for its clusters. The schedule controller writes the status if the scheduler has to run, or if the API server
// does not accept both in one write. affinity is the new affinity term; empty keeps the current one.
func (r *reconciler) write(ctx context.Context, read, want workv1alpha2.Binding, affinity string, now time.Time) error {
	confirmed := want.DeepCopyObject().(workv1alpha2.Binding)
	status, at := confirmed.BindingStatus(), metav1.NewTime(now)
	if !schedule.Keep(confirmed, cmp.Or(affinity, status.SchedulerObservedAffinityName), r.SchedulerName,
		r.Fleet.Snapshot(), at) {
		_, err := commit.Update(ctx, r.client, read, want)
		return err
	}
	folded, err := scope.Fold(ctx, r.client, confirmed, r.LastReported, at)
	if err != nil {
		return err
	}
	_, _, err = commit.UpdateWithStatus(ctx, r.client, read, want, func(generation int64) any {
		folded.Status.SchedulerObservedGeneration = generation
		return &folded.Status
	})
	return err
}

// describe returns an eviction for people.
func describe(e *failover.Eviction) string {
	text := fmt.Sprintf("Evicted from cluster %s: %s. Result: {%s}.", e.From, e.Tasks[0].Message,
		workv1alpha2.DescribeTargets(e.Placement))
	switch e.Tasks[0].PurgeMode {
	case policyv1alpha1.PurgeModeDirectly:
		return text + " The replacement starts when the old copy is deleted."
	case policyv1alpha1.PurgeModeNever:
		return text + " The old copy is kept until suppressDeletion of the task is set to false."
	}
	return text + " The old copy is kept until the replacement is healthy."
}

// finish ends tasks, in one write per binding.
func (r *reconciler) finish(ctx context.Context, finishes []failover.Finish, now time.Time) error {
	written := make([]workv1alpha2.Binding, len(finishes))
	err := runParallel(len(finishes), func(i int) error {
		f := &finishes[i]
		want := f.Binding.DeepCopyObject().(workv1alpha2.Binding)
		f.Apply(want)
		if err := r.write(ctx, f.Binding, want, "", now); err != nil {
			return fmt.Errorf("end the eviction of %s: %w", commit.Name(f.Binding), err)
		}
		written[i] = want
		return nil
	})
	for i, b := range written {
		if b == nil {
			continue
		}
		r.pending.Add(client.ObjectKeyFromObject(b), b)
		for _, ended := range finishes[i].Tasks {
			evicted.WithLabelValues(ended.Task.Reason, string(ended.Result)).Inc()
			text := fmt.Sprintf("The replacement is healthy. The copy in cluster %s is removed.", ended.Task.FromCluster)
			switch ended.Result {
			case failover.ReplacementHealthy:
				if !ended.Since.IsZero() && ended.Task.Reason != failover.ReasonFailback {
					duration.Observe(now.Sub(ended.Since).Seconds())
				}
			case failover.EndedByUser:
				text = fmt.Sprintf("A user ended the eviction. The copy in cluster %s is removed.", ended.Task.FromCluster)
			case failover.ClusterRemoved:
				text = fmt.Sprintf("The eviction from cluster %s ended, because the cluster is no longer a member.",
					ended.Task.FromCluster)
			}
			ctrl.LoggerFrom(ctx).Info("ended eviction", "binding", client.ObjectKeyFromObject(b), "from", ended.Task.FromCluster,
				"result", ended.Result)
			if r.limiter.AllowN(now, 1) {
				r.events.RecordSuccess(workv1alpha2.EventEvictWorkloadFromClusterSucceed, text, b, scope.TemplateOf(b))
			}
		}
	}
	return err
}

// pause sets the condition FailoverPaused on the clusters in paused, and removes it from others.
func (r *reconciler) pause(ctx context.Context, paused map[string]string, now time.Time) error {
	pausedClusters.Set(float64(len(paused)))
	clusters, err := facts.ClusterList(ctx, r.client)
	if err != nil {
		return err
	}
	var errs []error
	for _, c := range clusters {
		message, isPaused := paused[c.Name]
		was := meta.FindStatusCondition(c.Status.Conditions, clusterv1alpha1.ClusterConditionFailoverPaused)
		if !isPaused && was == nil {
			continue
		}
		want := c.DeepCopy()
		if isPaused {
			meta.SetStatusCondition(&want.Status.Conditions,
				metav1.Condition{Type: clusterv1alpha1.ClusterConditionFailoverPaused, Status: metav1.ConditionTrue,
					Reason: clusterv1alpha1.ReasonTooManyClustersLost, Message: message, LastTransitionTime: metav1.NewTime(now)})
		} else {
			meta.RemoveStatusCondition(&want.Status.Conditions, clusterv1alpha1.ClusterConditionFailoverPaused)
		}
		wrote, err := commit.Status(ctx, r.client, c, want)
		errs = append(errs, err)
		switch {
		case !wrote:
		case isPaused && was == nil:
			r.events.Event(c, corev1.EventTypeWarning, clusterv1alpha1.ClusterConditionFailoverPaused, message)
		case !isPaused:
			r.events.RecordSuccess(eventResumed, "Failover is no longer paused for the cluster.", c)
		}
	}
	return errors.Join(errs...)
}

// report records an event once for each blocked failover, and one when it is no longer needed. It counts what waits.
func (r *reconciler) report(bindings []workv1alpha2.Binding, plan failover.Plan) {
	counts := map[failover.Code]int{}
	stands := map[subject]bool{}
	for _, w := range plan.Waiting {
		counts[w.Code]++
		about := subject{w.Binding, w.From}
		stands[about] = true
		if !w.Code.NeedsUser() || r.reported[about].Code == w.Code {
			continue
		}
		r.reported[about] = w
		if !r.limiter.Allow() {
			continue
		}
		message := fmt.Sprintf("Stays in cluster %s: %s", w.From, w.Message)
		if w.Evicted {
			message = fmt.Sprintf("The old copy in cluster %s is kept: %s. The grace period is over, and nothing is removed before the replacement is healthy.", w.From, w.Message)
		}
		for _, known := range []runtime.Object{reference(w), templateOf(w)} {
			r.events.Event(known, corev1.EventTypeWarning, workv1alpha2.EventEvictWorkloadFromClusterFailed, message)
		}
	}
	r.forget(bindings, stands)
	for _, code := range failover.Codes() {
		waiting.WithLabelValues(string(code)).Set(float64(counts[code]))
	}
}

// forget forgets the warnings about what no longer waits. It records an event about a workload that stays in a cluster
// because there is no longer a reason to leave one.
func (r *reconciler) forget(bindings []workv1alpha2.Binding, stands map[subject]bool) {
	if len(r.reported) == 0 {
		return
	}
	known := map[types.NamespacedName]workv1alpha2.Binding{}
	for _, b := range bindings {
		known[client.ObjectKeyFromObject(b)] = b
	}
	maps.DeleteFunc(r.reported, func(about subject, w failover.Waiting) bool {
		b := known[about.binding]
		switch {
		case stands[about]:
			return false
		case b == nil || !workv1alpha2.HasTarget(b.BindingSpec().Clusters, about.cluster):
			return true
		case failover.MayLeave(b, r.Fleet.Snapshot().Cluster):
			return false
		}
		r.events.RecordSuccess(eventNotNeeded, fmt.Sprintf("Stays in cluster %s, and no longer has to leave it.",
			about.cluster), reference(w), templateOf(w))
		return true
	})
}

// reference returns the binding of a blocked failover for events, and templateOf its template.
func reference(w failover.Waiting) *corev1.ObjectReference {
	ref := &corev1.ObjectReference{APIVersion: workv1alpha2.GroupVersion.String(), Kind: "ResourceBinding",
		Namespace: w.Binding.Namespace, Name: w.Binding.Name, UID: w.UID}
	if w.Binding.Namespace == "" {
		ref.Kind = "ClusterResourceBinding"
	}
	return ref
}

func templateOf(w failover.Waiting) *corev1.ObjectReference {
	ref := w.Resource
	return &corev1.ObjectReference{APIVersion: ref.APIVersion, Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name,
		UID: ref.UID}
}

// warn records a warning on a binding and its template.
func (r *reconciler) warn(b workv1alpha2.Binding, reason, message string) {
	for _, obj := range []runtime.Object{b, scope.TemplateOf(b)} {
		r.events.Event(obj, corev1.EventTypeWarning, reason, message)
	}
}
