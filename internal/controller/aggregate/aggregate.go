// Package aggregate folds what the members answered into the binding, and from there into the template's own status.
// How statuses fold is decided by core/aggregate and core/interpret; when they are worth a write is decided here.
package aggregate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/aggregate"
	"github.com/argosy-io/argosy/internal/core/dispatch"
	"github.com/argosy-io/argosy/internal/core/fleet"
	"github.com/argosy-io/argosy/internal/core/interpret"
	"github.com/argosy-io/argosy/internal/core/membership"
	"github.com/argosy-io/argosy/internal/core/names"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/filter"
	"github.com/argosy-io/argosy/internal/interpreter"
	"github.com/argosy-io/argosy/internal/member"
	"github.com/argosy-io/argosy/internal/scope"
	"github.com/argosy-io/argosy/internal/template"
)

// Options of the controller.
type Options struct {
	Templates   *template.Store
	Interpreter interpret.Interpreter
	// LastReported counts what clusters that are not ready last reported as if it were so now, as Karmada does.
	LastReported bool
	// Concurrency is the number of bindings under way at once.
	Concurrency int
	// Gather is how long the answers of several members are waited for, so that they fold into one write.
	Gather time.Duration
	// StatusWindow is how long a change that neither completes the picture nor is a failure may wait for further ones. In
	// a burst it waits longer, see commit.Pace.
	StatusWindow time.Duration
	// FirstWindow is the same for the first picture of a binding, while some members have not answered at all.
	FirstWindow time.Duration
	// Members have the nodes of Workflows.
	Members *member.Members
	// NodesWindow is how long news of nodes may wait for more; large ones wait longer, see nodesRate.
	NodesWindow time.Duration
	// Clock is the time; default the real one.
	Clock clock.PassiveClock
}

const (
	// firstRetry is the delay of the first attempt after other failures; it grows.
	firstRetry = 100 * time.Millisecond
	// progressRate is how many bindings a second tell of progress in a burst; each is a write of the template too.
	progressRate = 20
)

type reconciler struct {
	Options
	client client.Client
	events commit.Events

	// progress are the bindings whose status waits to be written.
	progress commit.Pace[types.NamespacedName]
	// told are the warnings that stand, by binding.
	told commit.Told[types.NamespacedName]

	// queue is told of what changes in members and templates.
	queue atomic.Pointer[queue]
	// nodes are the bindings whose template's nodes wait to be written.
	nodes pacing
}

// Setup registers the controller with the manager.
func Setup(mgr ctrl.Manager, o Options) error {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	r := &reconciler{Options: o, client: mgr.GetClient(), events: commit.Recorder(mgr, "binding-status-controller")}
	r.progress.Rate, r.nodes.Rate = progressRate, progressRate
	followed.Store(new(client.Reader(mgr.GetCache())))
	b := ctrl.NewControllerManagedBy(mgr).Named("aggregate").WithOptions(controller.Options{
		MaxConcurrentReconciles: o.Concurrency,
		RateLimiter:             commit.Patience[reconcile.Request](firstRetry),
	})
	for _, kind := range scope.Bindings.Kinds() {
		b = b.Watches(kind, &handler.EnqueueRequestForObject{},
			builder.WithPredicates(predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, rewritten)))
	}
	if !o.LastReported {
		b = b.Watches(&clusterv1alpha1.Cluster{}, handler.EnqueueRequestsFromMapFunc(r.placedIn),
			builder.WithPredicates(outage))
	}
	o.Members.Handle(r.memberEvent)
	return b.Watches(&workv1alpha1.Work{}, gathering(o.Gather), builder.WithPredicates(answered)).
		WatchesRawSource(source.Func(r.follow)).
		WatchesRawSource(interpreter.Changes(o.Interpreter, r.client)).Complete(r)
}

// answered passes Works whose member has said something new, and those that are gone. Each binding is looked at when
// the hub starts, with its Works in memory.
var answered = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false },
	UpdateFunc: func(e event.UpdateEvent) bool {
		return !equality.Semantic.DeepEqual(e.ObjectOld.(*workv1alpha1.Work).Status, e.ObjectNew.(*workv1alpha1.Work).Status)
	},
}

// rewritten passes bindings whose Works could not be written before and can be now, or the reverse.
var rewritten = filter.Updates(func(was, is workv1alpha2.Binding) bool {
	before, now := aggregate.Unwritten(was.BindingStatus().Conditions), aggregate.Unwritten(is.BindingStatus().Conditions)
	return !slices.Equal(before, now)
})

// outage passes clusters whose outage begins, ends or has another reason. Each binding is reconciled when the hub
// starts, with the clusters in the cache.
var outage = filter.Updates(func(was, is *clusterv1alpha1.Cluster) bool {
	return !equality.Semantic.DeepEqual(membership.OutageOf(was), membership.OutageOf(is))
})

// placedIn are the bindings that have a Work in a cluster.
func (r *reconciler) placedIn(ctx context.Context, cluster client.Object) (requests []reconcile.Request) {
	var works workv1alpha1.WorkList
	if err := r.client.List(ctx, &works, client.InNamespace(names.ExecutionSpace(cluster.GetName())),
		client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "list the works of a cluster that changed", "cluster", cluster.GetName())
		return nil
	}
	for i := range works.Items {
		if key, ok := scope.BindingOf(&works.Items[i]); ok {
			requests = append(requests, reconcile.Request{NamespacedName: key})
		}
	}
	return requests
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// gathering queues the binding of a Work after a while, so that answers that come together are folded together.
func gathering(after time.Duration) handler.EventHandler {
	add := func(obj client.Object, q queue) {
		if key, ok := scope.BindingOf(obj); ok {
			q.AddAfter(reconcile.Request{NamespacedName: key}, after)
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { add(e.Object, q) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) { add(e.ObjectNew, q) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { add(e.Object, q) },
	}
}

// Reconcile folds the Works of one binding.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	after, err := r.fold(ctx, req.NamespacedName)
	if commit.Stale(err) {
		return ctrl.Result{RequeueAfter: commit.StaleRetry}, nil
	}
	return ctrl.Result{RequeueAfter: after}, client.IgnoreNotFound(err)
}

func (r *reconciler) fold(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
	b, err := scope.Bindings.Get(ctx, r.client, key)
	if err != nil || b.GetDeletionTimestamp() != nil {
		r.progress.Told(key)
		r.nodes.forget(key)
		r.told.Forget(key)
		return 0, err
	}
	folded, err := scope.Fold(ctx, r.client, b, r.LastReported, metav1.NewTime(r.Clock.Now()))
	if err != nil {
		return 0, err
	}
	want := b.DeepCopyObject().(workv1alpha2.Binding)
	*want.BindingStatus() = folded.Status
	if err := r.setStage(ctx, want, folded.Works, folded.Outages); err != nil {
		return 0, err
	}
	if wait := r.wait(key, b.BindingStatus(), want.BindingStatus()); wait > 0 {
		return wait, nil
	}
	wrote, err := commit.Status(ctx, r.client, b, want)
	if err != nil {
		return 0, err
	}
	if wrote {
		r.events.Stepped(workv1alpha2.EventAggregateStatusSucceed, "Update "+scope.Describe(b)+
			" with AggregatedStatus successfully.", b)
	}
	r.progress.Told(key)
	return r.foldIntoTemplate(ctx, want, folded.Outages)
}

// setStage sets the condition StagesCompleted of a binding. It changes with the statuses of Works, and is written with
// them.
func (r *reconciler) setStage(ctx context.Context, b workv1alpha2.Binding, works []workv1alpha1.Work,
	outages aggregate.Outages) error {
	conditions := &b.BindingStatus().Conditions
	if meta.FindStatusCondition(*conditions, fleet.StagesCompleted) == nil &&
		!slices.ContainsFunc(works, func(w workv1alpha1.Work) bool { return dispatch.Follows(&w) }) {
		return nil
	}
	read, found, err := r.Templates.Of(ctx, b)
	if errors.Is(err, propagate.ErrReference) || err == nil && !found {
		return nil
	}
	if err != nil {
		return err
	}
	stage, ok := dispatch.StageOf(b, read, works, func(cluster string) bool { return outages[cluster] != nil })
	if !ok {
		meta.RemoveStatusCondition(conditions, fleet.StagesCompleted)
		return nil
	}
	c := stage.Condition(read.GetGeneration())
	c.LastTransitionTime = metav1.NewTime(r.Clock.Now())
	meta.SetStatusCondition(conditions, c)
	return nil
}

// wait is how long the answers may still be gathered: not at all when nothing changes, when all clusters are applied
// and healthy now, or when anything failed; while the picture is only getting fuller, until the window has passed.
func (r *reconciler) wait(key types.NamespacedName, was, want *workv1alpha2.ResourceBindingStatus) time.Duration {
	if r.StatusWindow == 0 || equality.Semantic.DeepEqual(was, want) || settled(want) && !settled(was) ||
		failures(want) > failures(was) ||
		!meta.IsStatusConditionTrue(want.Conditions, workv1alpha2.FullyApplied) &&
			meta.IsStatusConditionTrue(was.Conditions, workv1alpha2.FullyApplied) {
		return 0
	}
	window := r.StatusWindow
	if len(was.AggregatedStatus) == 0 && !meta.IsStatusConditionTrue(want.Conditions, workv1alpha2.FullyApplied) {
		window = max(window, r.FirstWindow)
	}
	return r.progress.Wait(key, window, r.Clock.Now())
}

// settled says whether all is applied and healthy.
func settled(s *workv1alpha2.ResourceBindingStatus) bool {
	for _, item := range s.AggregatedStatus {
		if !item.Applied || item.Health != workv1alpha1.ResourceHealthy {
			return false
		}
	}
	return meta.IsStatusConditionTrue(s.Conditions, workv1alpha2.FullyApplied)
}

func failures(s *workv1alpha2.ResourceBindingStatus) (n int) {
	for _, item := range s.AggregatedStatus {
		if !item.Applied && item.AppliedMessage != "" || item.Health == workv1alpha1.ResourceUnhealthy {
			n++
		}
	}
	return n
}

// foldIntoTemplate writes the template's status where its kind has one that can be folded, and deletes what has
// finished and lived its time: members are not asked to, as it would run again. It is looked at again after the time
// returned.
func (r *reconciler) foldIntoTemplate(ctx context.Context, b workv1alpha2.Binding,
	outages aggregate.Outages) (time.Duration, error) {
	ref := b.BindingSpec().Resource
	kind := propagate.GroupKind(ref.APIVersion, ref.Kind)
	read, found, err := r.Templates.Of(ctx, b)
	if errors.Is(err, propagate.ErrReference) {
		return 0, nil // dispatch says so
	}
	key := client.ObjectKeyFromObject(b)
	if err != nil || !found || read.GetDeletionTimestamp() != nil {
		r.nodes.Told(key)
		return 0, err
	}
	want, err := r.Interpreter.Aggregate(ctx, read, ofRun(aggregate.Items(b, outages), read))
	if _, reported := interpreter.Report(ctx, r.client, b, err,
		configv1alpha1.InterpreterOperationAggregateStatus); err == nil {
		err = reported // else what went wrong is worse
	}
	if err == nil {
		want = r.withNodes(b, read, want)
	}
	if err == nil && !equality.Semantic.DeepEqual(statusOf(read), statusOf(want)) {
		if wait := r.waitForNodes(b, read, want); wait > 0 {
			after, err := r.expire(ctx, want)
			return commit.Sooner(wait, after), err
		}
		if err = r.Templates.UpdateStatus(ctx, want); apierrors.IsNotFound(err) && interpret.KeepsStatus(kind) {
			err = r.Templates.PatchStatus(ctx, want)
		}
		if err == nil {
			r.nodes.wrote(key, r.Clock.Now())
			r.events.Stepped(workv1alpha2.EventAggregateStatusSucceed, "Update Resource with AggregatedStatus successfully.",
				read)
			r.tellOmitted(b, read, want)
		}
	}
	switch {
	case err == nil:
		r.told.Forget(key)
		r.nodes.Told(key)
		return r.expire(ctx, want)
	// gone meanwhile, or a kind without a status subresource: its status is its users' to write
	case apierrors.IsNotFound(err):
		r.told.Forget(key)
		r.nodes.Told(key)
		return 0, nil
	case !commit.Stale(err) && r.told.News(key, err.Error()):
		for _, obj := range []runtime.Object{b, read} {
			r.events.Event(obj, corev1.EventTypeWarning, workv1alpha2.EventAggregateStatusFailed, err.Error())
		}
	}
	return 0, fmt.Errorf("aggregate the status of %s: %w", commit.Name(read), err)
}

// ofRun are the items without the statuses of what ran once for an earlier template of that name: this one is to run
// yet.
func ofRun(items []workv1alpha2.AggregatedStatusItem,
	template *unstructured.Unstructured) []workv1alpha2.AggregatedStatusItem {
	out := slices.Clone(items)
	for i := range out {
		var said map[string]any
		if s := out[i].Status; s != nil && bytes.Contains(s.Raw, []byte(interpret.RunOfField)) &&
			json.Unmarshal(s.Raw, &said) == nil && !interpret.OfRun(said, string(template.GetUID())) {
			out[i].Status = nil
		}
	}
	return out
}

// expire deletes a template that has finished and lived its ttl, or says how long it still has.
func (r *reconciler) expire(ctx context.Context, template *unstructured.Unstructured) (time.Duration, error) {
	when, ok := interpret.Expiry(template)
	if !ok {
		return 0, nil
	}
	if left := when.Sub(r.Clock.Now()); left > 0 {
		return left, nil
	}
	return 0, r.Templates.Delete(ctx, template)
}

func statusOf(u *unstructured.Unstructured) any { return u.Object["status"] }
