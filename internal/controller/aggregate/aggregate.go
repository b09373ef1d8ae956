// Package aggregate combines the statuses from members in the binding's status and in the template's. core/aggregate
// and core/workload/interpret decide how. The controller decides when to write.
package aggregate

import (
	"bytes"
	"cmp"
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
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
	"github.com/argosy-io/argosy/internal/core/dispatch"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/filter"
	"github.com/argosy-io/argosy/internal/interpreter"
	"github.com/argosy-io/argosy/internal/member"
	"github.com/argosy-io/argosy/internal/scope"
	"github.com/argosy-io/argosy/internal/template"
)

type Options struct {
	Templates   *template.Store
	Interpreter interpret.Interpreter
	// LastReported uses the last reported status of clusters that are not ready without changes, as Karmada does.
	LastReported bool
	// Concurrency is the number of bindings that are reconciled at once.
	Concurrency int
	// Gather is the time to wait for statuses of several members, to combine them in one write.
	Gather time.Duration
	// StatusWindow delays changes that are neither a failure nor the completion of the status. In a burst the delay grows,
	// see commit.Pace.
	StatusWindow time.Duration
	// FirstWindow is the delay while members that are new have not all reported, and the others report nothing new.
	FirstWindow time.Duration
	// Members have the nodes of Workflows.
	Members *member.Members
	// NodesWindow delays changes of nodes. Large ones are delayed more, see nodesRate.
	NodesWindow time.Duration
	// Clock defaults to the real clock.
	Clock clock.PassiveClock
}

const (
	// firstRetry is the first delay of the backoff after an error.
	firstRetry = 100 * time.Millisecond
	// progressRate limits the bindings with progress that are written per second in a burst. Each is also a write of the
	// template.
	progressRate = 20
)

type reconciler struct {
	Options
	client client.Client
	events commit.Events

	// progress are the bindings with delayed status writes.
	progress commit.Pace[types.NamespacedName]
	// warned has the current warnings by binding.
	warned commit.Dedup[types.NamespacedName]

	// queue receives changes in members and templates.
	queue atomic.Pointer[queue]
	// nodes are the templates with delayed writes of nodes.
	nodes pacing
}

// Setup registers the controller with the manager.
func Setup(mgr ctrl.Manager, o Options) error {
	o.Clock = cmp.Or(o.Clock, clock.PassiveClock(clock.RealClock{}))
	r := &reconciler{Options: o, client: mgr.GetClient(), events: commit.Recorder(mgr, "binding-status-controller")}
	r.progress.Rate, r.nodes.Rate = progressRate, progressRate
	followed.Store(new(client.Reader(mgr.GetCache())))
	b := ctrl.NewControllerManagedBy(mgr).Named("aggregate").WithOptions(controller.Options{
		MaxConcurrentReconciles: o.Concurrency,
		RateLimiter:             commit.Backoff[reconcile.Request](firstRetry),
	})
	for _, kind := range scope.Bindings.Kinds() {
		b = b.Watches(kind, &handler.EnqueueRequestForObject{},
			builder.WithPredicates(predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, rewritten,
				filter.Updates(dispatch.Repaced))))
	}
	if !o.LastReported {
		b = b.Watches(&clusterv1alpha1.Cluster{}, handler.EnqueueRequestsFromMapFunc(r.placedIn),
			builder.WithPredicates(outage))
	}
	o.Members.Handle(r.memberEvent)
	return b.Watches(&workv1alpha1.Work{}, filter.Delayed(o.Gather, scope.BindingRequests),
		builder.WithPredicates(answered)).
		WatchesRawSource(source.Func(r.follow)).
		WatchesRawSource(interpreter.Changes(o.Interpreter, r.client)).Complete(r)
}

// answered selects Works with a new status and deleted Works. At startup each binding is reconciled with its Works in
// the cache.
var answered = predicate.Or[client.Object](filter.Deletions, filter.Updates(func(was, is *workv1alpha1.Work) bool {
	return !equality.Semantic.DeepEqual(was.Status, is.Status)
}))

// rewritten selects bindings for which the writing of Works began to fail or to succeed, or ended with the run.
var rewritten = filter.Updates(func(was, is workv1alpha2.Binding) bool {
	before, now := aggregate.Unwritten(was.BindingStatus().Conditions), aggregate.Unwritten(is.BindingStatus().Conditions)
	return !slices.Equal(before, now) ||
		!equality.Semantic.DeepEqual(aggregate.RunEnd(was.BindingStatus().Conditions),
			aggregate.RunEnd(is.BindingStatus().Conditions))
})

// outage selects clusters whose outage begins, ends or changes its reason. At startup each binding is reconciled with
// the clusters in the cache.
var outage = filter.Updates(func(was, is *clusterv1alpha1.Cluster) bool {
	return !equality.Semantic.DeepEqual(membership.OutageOf(was), membership.OutageOf(is))
})

// placedIn maps a cluster to the bindings with a Work in it.
func (r *reconciler) placedIn(ctx context.Context, cluster client.Object) (requests []reconcile.Request) {
	var works workv1alpha1.WorkList
	if err := r.client.List(ctx, &works, client.InNamespace(names.ExecutionSpace(cluster.GetName())),
		client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "list the works of a cluster that changed", "cluster", cluster.GetName())
		return nil
	}
	for i := range works.Items {
		requests = append(requests, scope.BindingRequests(ctx, &works.Items[i])...)
	}
	return requests
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// Reconcile aggregates the Works of one binding.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	after, err := r.fold(ctx, req.NamespacedName)
	return commit.Requeue(after, client.IgnoreNotFound(err))
}

func (r *reconciler) fold(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
	b, err := scope.Bindings.Get(ctx, r.client, key)
	if err != nil || b.GetDeletionTimestamp() != nil {
		r.progress.Done(key)
		r.nodes.forget(key)
		r.warned.Forget(key)
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
		r.events.RecordStep(workv1alpha2.EventAggregateStatusSucceed, "Update "+scope.Describe(b)+
			" with AggregatedStatus successfully.", b)
	}
	r.progress.Done(key)
	return r.foldIntoTemplate(ctx, want, folded.Outages)
}

// setStage sets the condition StagesCompleted of a binding. It depends on the statuses of Works and is written with
// them.
func (r *reconciler) setStage(ctx context.Context, b workv1alpha2.Binding, works []workv1alpha1.Work,
	outages aggregate.Outages) error {
	conditions := &b.BindingStatus().Conditions
	if meta.FindStatusCondition(*conditions, fleet.StagesCompleted) == nil &&
		!slices.ContainsFunc(works, func(w workv1alpha1.Work) bool { return dispatch.Follows(&w) }) {
		return nil
	}
	read, found, err := r.Templates.ForBinding(ctx, b)
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

// wait returns the delay of a write: none without changes, when all clusters become applied and healthy, or after a
// failure; otherwise the rest of the window.
func (r *reconciler) wait(key types.NamespacedName, was, want *workv1alpha2.ResourceBindingStatus) time.Duration {
	if r.StatusWindow == 0 || equality.Semantic.DeepEqual(was, want) || settled(want) && !settled(was) ||
		failures(want) > failures(was) ||
		!meta.IsStatusConditionTrue(want.Conditions, workv1alpha2.FullyApplied) &&
			meta.IsStatusConditionTrue(was.Conditions, workv1alpha2.FullyApplied) {
		return 0
	}
	window := r.StatusWindow
	changed := func(item workv1alpha2.AggregatedStatusItem) bool {
		return !slices.ContainsFunc(want.AggregatedStatus, func(now workv1alpha2.AggregatedStatusItem) bool {
			return equality.Semantic.DeepEqual(now, item)
		})
	}
	if !slices.ContainsFunc(was.AggregatedStatus, changed) &&
		!meta.IsStatusConditionTrue(want.Conditions, workv1alpha2.FullyApplied) {
		window = max(window, r.FirstWindow)
	}
	return r.progress.Wait(key, window, r.Clock.Now())
}

// settled reports whether everything is applied and healthy.
func settled(s *workv1alpha2.ResourceBindingStatus) bool {
	return meta.IsStatusConditionTrue(s.Conditions, workv1alpha2.FullyApplied) &&
		!slices.ContainsFunc(s.AggregatedStatus, func(item workv1alpha2.AggregatedStatusItem) bool {
			return !item.Applied || item.Health != workv1alpha1.ResourceHealthy
		})
}

func failures(s *workv1alpha2.ResourceBindingStatus) (n int) {
	for _, item := range s.AggregatedStatus {
		if !item.Applied && item.AppliedMessage != "" || item.Health == workv1alpha1.ResourceUnhealthy {
			n++
		}
	}
	return n
}

// foldIntoTemplate writes the template's status if its kind has an aggregated one, and deletes a finished template
// after its TTL. Members must not delete it, because it would run again. It returns the delay until the next look.
func (r *reconciler) foldIntoTemplate(ctx context.Context, b workv1alpha2.Binding,
	outages aggregate.Outages) (time.Duration, error) {
	ref := b.BindingSpec().Resource
	kind := match.GroupKind(ref.APIVersion, ref.Kind)
	read, found, err := r.Templates.ForBinding(ctx, b)
	if errors.Is(err, propagate.ErrReference) {
		return 0, nil // dispatch reports the error
	}
	key := client.ObjectKeyFromObject(b)
	if err != nil || !found || read.GetDeletionTimestamp() != nil {
		r.nodes.Done(key)
		return 0, err
	}
	want, err := r.Interpreter.Aggregate(ctx, read, ofRun(aggregate.Items(b, outages), read))
	if _, reported := interpreter.Report(ctx, r.client, b, err,
		configv1alpha1.InterpreterOperationAggregateStatus); err == nil {
		err = reported // report it only without a worse error
	}
	if err == nil {
		want = r.withNodes(b, read, want)
	}
	if err == nil && !equality.Semantic.DeepEqual(statusOf(read), statusOf(want)) {
		if wait := r.waitForNodes(b, read, want); wait > 0 {
			after, err := r.expire(ctx, want)
			return commit.ShorterDelay(wait, after), err
		}
		if err = r.Templates.UpdateStatus(ctx, want); apierrors.IsNotFound(err) && interpret.KeepsStatus(kind) {
			err = r.Templates.PatchStatus(ctx, want)
		}
		if err == nil {
			r.nodes.wrote(key, r.Clock.Now())
			r.events.RecordStep(workv1alpha2.EventAggregateStatusSucceed, "Update Resource with AggregatedStatus successfully.",
				read)
			r.emitOmitted(b, read, want)
		}
	}
	switch {
	case err == nil:
		r.warned.Forget(key)
		r.nodes.Done(key)
		return r.expire(ctx, want)
	// deleted meanwhile, or a kind without a status subresource
	case apierrors.IsNotFound(err):
		r.warned.Forget(key)
		r.nodes.Done(key)
		return 0, nil
	case !commit.Stale(err) && r.warned.IsNew(key, err.Error()):
		for _, obj := range []runtime.Object{b, read} {
			r.events.Event(obj, corev1.EventTypeWarning, workv1alpha2.EventAggregateStatusFailed, err.Error())
		}
	}
	if apierrors.IsInvalid(err) { // another status may be valid, but not this one
		r.nodes.Done(key)
		return 0, nil
	}
	return 0, fmt.Errorf("aggregate the status of %s: %w", commit.Name(read), err)
}

// ofRun returns the items without statuses of an earlier template with the same name, for kinds that run once.
func ofRun(items []workv1alpha2.AggregatedStatusItem,
	template *unstructured.Unstructured) []workv1alpha2.AggregatedStatusItem {
	out := slices.Clone(items)
	for i := range out {
		var reported map[string]any
		if s := out[i].Status; s != nil && bytes.Contains(s.Raw, []byte(interpret.RunOfField)) &&
			json.Unmarshal(s.Raw, &reported) == nil && !interpret.OfRun(reported, string(template.GetUID())) {
			out[i].Status = nil
		}
	}
	return out
}

// expire deletes a finished template after its TTL, or returns the remaining time.
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
