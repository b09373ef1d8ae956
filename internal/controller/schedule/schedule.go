// Package schedule schedules bindings when they are due. core/schedule decides on a snapshot of the fleet. A new
// binding is created with its placement and its confirmation (Placer). This controller acts when something changes, and
// confirms placements by others.
package schedule

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/capacity"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/admission/quota"
	"github.com/argosy-io/argosy/internal/core/dispatch"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/core/schedule"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/filter"
	"github.com/argosy-io/argosy/internal/scope"
	"github.com/argosy-io/argosy/internal/template"
)

type Options struct {
	Fleet     *capacity.Fleet
	Templates *template.Store
	// Name is the scheduler's: bindings that name another are left alone.
	Name string
	// Concurrency is the number of bindings that are scheduled in parallel.
	Concurrency int
	// AskAgain is the delay before estimators are asked again about a binding that waits for capacity; 30 s by default.
	// RefreshAfter is the delay before the conditions of unscheduled bindings are updated after a change of a cluster; 5 s
	// by default.
	AskAgain, RefreshAfter time.Duration
	// LastReported counts what clusters that are not ready last reported as if it were so now, as Karmada does.
	LastReported bool
	// Clock gives the times in conditions and annotations; the real clock by default.
	Clock clock.PassiveClock
}

const (
	// maxEvents and eventRate bound the success events: each is a write per binding. Beyond that, the conditions report
	// the placement, and one event on the cluster reports how many bindings were rescheduled.
	maxEvents, eventRate = 500, 50
)

// eventReschedule: a change of the cluster caused many bindings to be scheduled again.
//
//reference:event Normal on Cluster
const eventReschedule = "RescheduleBindings"

type reconciler struct {
	Options
	client client.Client
	events commit.Events

	index *index
	peers peers
	// limiter limits the events of success.
	limiter *rate.Limiter
	// depth returns the number of queued bindings.
	depth atomic.Pointer[func() int]

	// pending are the placements that are being written, or were written and are confirmed when the cache shows them. A
	// confirmation by an older binding would be refused as a conflict.
	pending commit.PendingWrites[pendingPlacement]
	// unannounced are the bindings that were created since the start and have no event of their placement yet. Their
	// confirmation may have been written when they were created.
	unannounced sync.Map // keys are types.NamespacedName
}

// Setup registers the controller with the manager.
func Setup(mgr ctrl.Manager, o Options) error {
	o.Clock = cmp.Or(o.Clock, clock.PassiveClock(clock.RealClock{}))
	o.AskAgain, o.RefreshAfter = cmp.Or(o.AskAgain, askAgain), cmp.Or(o.RefreshAfter, refreshAfter)
	r := &reconciler{Options: o, client: mgr.GetClient(), events: commit.Recorder(mgr, o.Name),
		index: newIndex(o.Name, o.Fleet.Snapshot().Settings().Plugins), limiter: rate.NewLimiter(eventRate, maxEvents)}
	measured.Store(r)
	b := ctrl.NewControllerManagedBy(mgr).Named("schedule").WithOptions(
		controller.Options{MaxConcurrentReconciles: o.Concurrency})
	for _, kind := range scope.Bindings.Kinds() {
		b = b.Watches(kind, r.bindings())
	}
	return b.Watches(&policyv1alpha1.FederatedResourceQuota{}, handler.EnqueueRequestsFromMapFunc(r.refused),
		builder.WithPredicates(predicate.Or(filter.Deletions, filter.Updates(quota.Eases)))).
		WatchesRawSource(fleetChanges{r}).Complete(r)
}

// relevant selects what the scheduler decides on: the spec, the labels of the claim, the record of the placement, the
// replicas that autoscalers of members set, and the confirmation. It also passes our own writes, because the fleet may
// have changed during them.
var relevant = predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{},
	filter.Changes(func(before, now client.Object) bool {
		was, is := before.GetAnnotations(), now.GetAnnotations()
		return was[policyv1alpha1.AppliedPlacementAnnotation] != is[policyv1alpha1.AppliedPlacementAnnotation] ||
			was[wellknown.ScaledByMembersAnnotation] != is[wellknown.ScaledByMembersAnnotation] ||
			confirmed(before) != confirmed(now)
	}))

func confirmed(obj client.Object) bool {
	b, ok := obj.(workv1alpha2.Binding)
	return ok && meta.IsStatusConditionTrue(b.BindingStatus().Conditions, workv1alpha2.Scheduled)
}

// bindings adds each binding to the index before it queues it, with the bindings that wait for it.
func (r *reconciler) bindings() handler.EventHandler {
	waiting := handler.EnqueueRequestsFromMapFunc(r.waitingPeers)
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) {
			r.index.put(e.Object.(workv1alpha2.Binding))
			if !e.IsInInitialList {
				r.unannounced.Store(client.ObjectKeyFromObject(e.Object), nil)
			}
			byPriority.Create(ctx, e, q)
			waiting.Create(ctx, e, q)
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			r.index.put(e.ObjectNew.(workv1alpha2.Binding))
			if relevant.Update(e) {
				sooner := 0
				if len(r.pending.Get(client.ObjectKeyFromObject(e.ObjectNew))) > 0 {
					sooner = 1
				}
				enqueue(q, e.ObjectNew, sooner)
				waiting.Update(ctx, e, q)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) {
			r.index.remove(client.ObjectKeyFromObject(e.Object))
			r.unannounced.Delete(client.ObjectKeyFromObject(e.Object))
			byPriority.Delete(ctx, e, q)
			waiting.Delete(ctx, e, q)
		},
	}
}

// fleetChanges queues the bindings that a change of a cluster may move. No binding is queued before all clusters are in
// the cache: with half of the fleet everything would move.
type fleetChanges struct{ r *reconciler }

var _ source.SyncingSource = fleetChanges{}

// Start implements source.Source.
func (f fleetChanges) Start(_ context.Context, q queue) error {
	add := func(bindings []workv1alpha2.Binding) {
		for _, b := range bindings { // the most urgent ones use the current fleet first
			enqueue(q, b, 0)
		}
	}
	depth := q.Len
	f.r.depth.Store(&depth)
	f.r.Fleet.OnChange(func(c capacity.Change) {
		concerned := f.r.index.changed(c)
		add(concerned)
		f.r.follows(c, len(concerned))
		if !schedule.RoomAlone(c.Old, c.New) {
			f.r.refresh(q)
		}
	})
	f.r.Fleet.OnRoom(func(name string) {
		if cluster := f.r.Fleet.Snapshot().Cluster(name); cluster != nil {
			// A binding that a quota refused gives back the room that it tried, and would be called by that again.
			add(slices.DeleteFunc(f.r.index.waits(name, func(b workv1alpha2.Binding) bool {
				return schedule.AwaitsRoom(b, cluster, f.r.index.plugins)
			}), overQuota))
		}
	})
	return nil
}

// WaitForSync implements source.SyncingSource.
func (f fleetChanges) WaitForSync(ctx context.Context) error { return f.r.Fleet.WaitForSync(ctx) }

// Placer places a binding before it is created: it sets the clusters, the record of the placement, and the confirmation
// in the status, which commit.Create writes in the same write. It reports false, and changes nothing, if another
// scheduler places the binding, or if nothing fits: the controller then reports why.
func Placer(fleet *capacity.Fleet, scheduler string) func(workv1alpha2.Binding) bool {
	return func(b workv1alpha2.Binding) bool {
		// The controller places bindings of affinity groups, since it knows the clusters of the other members.
		if !fleet.Synced() || !schedule.PlacedBy(b, scheduler) || schedule.Grouped(b) {
			return false
		}
		s, began := fleet.Snapshot(), time.Now()
		result, err := fleet.Schedule(b, s)
		if err != nil {
			return false // the controller counts it
		}
		result.Apply(b, nil)
		const generation = 1 // API servers give it to a new object
		schedule.Confirm(b, schedule.Confirmation{Generation: generation, Affinity: result.AffinityName, Ran: true},
			metav1.NewTime(began))
		observe(schedule.NeverScheduled, nil, time.Since(began))
		return true
	}
}

// Reconcile schedules one binding if it is due, and confirms the scheduling in its status.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	after, err := r.schedule(ctx, req.NamespacedName)
	return commit.Requeue(after, client.IgnoreNotFound(err))
}

func (r *reconciler) schedule(ctx context.Context, key client.ObjectKey) (after time.Duration, err error) {
	read, err := scope.Bindings.Get(ctx, r.client, key)
	if err != nil || !schedule.PlacedBy(read, r.Name) || propagate.Misdirected(read) != nil {
		r.pending.Forget(key)
		if apierrors.IsNotFound(err) {
			r.peers.pending.Forget(key)
		}
		return 0, err
	}
	s := r.Fleet.Snapshot()
	if schedule.Grouped(read) {
		r.peers.Lock()
		defer r.peers.Unlock()
		s = s.Among(r.peers.placements(read, r.index.peers(read)))
	}
	read, err = r.confirmPending(ctx, read)
	if read == nil || err != nil {
		return 0, err
	}
	reason, due := schedule.Due(read, s)
	if !due {
		if _, unannounced := r.unannounced.Load(key); unannounced && confirmed(read) {
			r.scheduled(read) // it was created with its confirmation
		}
		_, err := r.confirm(ctx, read, outcome{affinity: read.BindingStatus().SchedulerObservedAffinityName})
		return 0, err
	}

	began := r.Clock.Now()
	b := read.DeepCopyObject().(workv1alpha2.Binding)
	result, failure := r.Fleet.Schedule(b, s)
	var short *schedule.UnschedulableError
	if errors.As(failure, &short) {
		short.Limit = r.Fleet.QuotasText(b, s)
	}
	result.Apply(b, failure)
	failure, unread := r.explain(ctx, b, failure)
	moved := !equality.Semantic.DeepEqual(read.BindingSpec().Clusters, b.BindingSpec().Clusters)
	o := outcome{affinity: result.AffinityName, failure: failure, ran: true, announced: moved}
	r.pending.Add(key, pendingPlacement{read, outcome{confirmed: true}}) // the event may arrive before the response
	status, news, err := r.confirmation(ctx, b, o)
	if err != nil {
		return 0, err
	}
	wrote, withStatus, err := commit.UpdateWithStatus(ctx, r.client, read, b, func(generation int64) any {
		status.SchedulerObservedGeneration = generation
		return status
	})
	observe(reason, cmp.Or(failure, err), r.Clock.Since(began))
	if refused := (*quota.ExceededError)(nil); errors.As(err, &refused) {
		r.pending.Forget(key)
		r.Fleet.Assume(read, read.BindingSpec().Clusters) // others can use the room that the run reserved
		_, err := r.confirm(ctx, read, outcome{affinity: read.BindingStatus().SchedulerObservedAffinityName,
			failure: &schedule.QuotaError{Err: quota.Denied(refused)}, ran: true})
		return quotaRetry, err
	}
	if wrote {
		o.confirmed = withStatus
		r.pending.Add(key, pendingPlacement{b, o})
	} else {
		r.pending.Forget(key)
	}
	if err != nil {
		return 0, err
	}
	if withStatus {
		r.emitEvents(b, status, o, news)
	}
	if wrote && schedule.Grouped(b) {
		r.peers.pending.Add(key, b)
	}
	if wrote {
		ctrl.LoggerFrom(ctx).Info("scheduled", "clusters", workv1alpha2.DescribeTargets(b.BindingSpec().Clusters),
			"reason", reason)
	}
	if failure == nil && moved {
		r.scheduled(b)
	}
	if wrote {
		return 0, unread
	}
	_, err = r.confirm(ctx, b, o)
	return r.retryAfter(b, failure), errors.Join(unread, err)
}

// explain returns the failure of a run for b, or that it needs no cluster: see dispatch.PlacementFailure. With the
// error of a template that cannot be read, it returns failure.
func (r *reconciler) explain(ctx context.Context, b workv1alpha2.Binding, failure error) (explained, unread error) {
	of := b.BindingSpec().Resource
	if failure == nil || !interpret.RunsOnce(match.GroupKind(of.APIVersion, of.Kind)) {
		return failure, nil
	}
	template, _, err := r.Templates.ForBinding(ctx, b)
	if err != nil {
		return failure, fmt.Errorf("read the template, to find out whether its run has ended: %w", err)
	}
	return dispatch.PlacementFailure(b, template, failure), nil
}

// confirmPending confirms a pending write of a placement once the cache shows it. It returns the new binding, or nil if
// the cache does not show the placement yet.
func (r *reconciler) confirmPending(ctx context.Context, read workv1alpha2.Binding) (workv1alpha2.Binding, error) {
	key := client.ObjectKeyFromObject(read)
	for _, w := range r.pending.Get(key) {
		if !commit.Shows(read, w) {
			return nil, nil // its event comes
		}
		if read.GetUID() == w.GetUID() && read.GetGeneration() == w.GetGeneration() && !w.confirmed {
			confirmed, err := r.confirm(ctx, read, w.outcome)
			if err != nil {
				return nil, err
			}
			read = confirmed
		}
	}
	r.pending.Forget(key) // confirmed, or changed by another writer
	return read, nil
}

// pendingPlacement is a binding as it was written, until the cache confirms it.
type pendingPlacement struct {
	workv1alpha2.Binding
	outcome
}

// outcome is the result of a run for one binding.
type outcome struct {
	affinity string
	failure  error
	// ran: the binding was due. announced: an event already reported the placement. confirmed: the status already confirms
	// it.
	ran, announced, confirmed bool
}

// confirm writes into the status that the scheduler has seen this generation, with the result. It writes nothing if the
// status has it already. It returns the new binding.
func (r *reconciler) confirm(ctx context.Context, b workv1alpha2.Binding, o outcome) (workv1alpha2.Binding, error) {
	status, news, err := r.confirmation(ctx, b, o)
	if err != nil {
		return nil, err
	}
	want := b.DeepCopyObject().(workv1alpha2.Binding)
	*want.BindingStatus() = *status
	if _, err := commit.Status(ctx, r.client, b, want); err != nil {
		return nil, err
	}
	r.emitEvents(b, status, o, news)
	return want, nil
}

// confirmation returns the status of b with the result of the run, and whether the result is new. If the binding moved,
// the status also has what the Works mean for its clusters, which saves the next write.
func (r *reconciler) confirmation(ctx context.Context, b workv1alpha2.Binding,
	o outcome) (status *workv1alpha2.ResourceBindingStatus, news bool, err error) {
	b = b.DeepCopyObject().(workv1alpha2.Binding)
	now := metav1.NewTime(r.Clock.Now())
	if status = b.BindingStatus(); o.announced {
		folded, err := scope.Fold(ctx, r.client, b, r.LastReported, now)
		if err != nil {
			return nil, false, err
		}
		*status = folded.Status
	}
	news = schedule.Confirm(b, schedule.Confirmation{Generation: b.GetGeneration(), Affinity: o.affinity,
		Ran: o.ran, Failure: o.failure}, now)
	return status, news, nil
}

// emitEvents records events for a new result.
func (r *reconciler) emitEvents(b workv1alpha2.Binding, status *workv1alpha2.ResourceBindingStatus, o outcome,
	news bool) {
	switch {
	case schedule.AwaitsCluster(o.failure): // the binding runs again when the cluster has reported
	case schedule.RunEnded(o.failure): // the condition says so
	case news && o.failure != nil:
		message := meta.FindStatusCondition(status.Conditions, workv1alpha2.Scheduled).Message
		for _, obj := range []runtime.Object{b, scope.TemplateOf(b)} {
			r.events.Event(obj, corev1.EventTypeWarning, workv1alpha2.EventScheduleBindingFailed, message)
		}
	case news && !o.announced:
		r.scheduled(b)
	}
}

// follows records one event on a cluster if its change reschedules so many bindings that they do not have events of
// their own.
func (r *reconciler) follows(c capacity.Change, bindings int) {
	if bindings > r.limiter.Burst() && c.New != nil {
		r.events.Eventf(c.New, corev1.EventTypeNormal, eventReschedule,
			"A change of the cluster caused %d bindings to be rescheduled; the condition Scheduled of each shows the result",
			bindings)
	}
}

// scheduled records an event with the clusters of a binding, unless there are too many events.
func (r *reconciler) scheduled(b workv1alpha2.Binding) {
	r.unannounced.Delete(client.ObjectKeyFromObject(b))
	if !r.limiter.AllowN(r.Clock.Now(), 1) {
		return
	}
	text := fmt.Sprintf("%s Result: {%s}", workv1alpha2.MessageScheduled,
		workv1alpha2.DescribeTargets(b.BindingSpec().Clusters))
	if copies := schedule.Copies(b); copies != "" {
		text += " " + copies
	}
	r.events.RecordSuccess(workv1alpha2.EventScheduleBindingSucceed, text, b)
	r.events.RecordStep(workv1alpha2.EventScheduleBindingSucceed, text, scope.TemplateOf(b))
}
