// Package schedule places bindings when they are due. Where a template goes is decided by core/schedule on a snapshot of the
// fleet; a new binding comes placed already (Placer), so that this controller mostly confirms, and acts when something changes.
package schedule

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/capacity"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/schedule"
	"github.com/argosy-io/argosy/internal/scope"
)

// Options of the controller.
type Options struct {
	Fleet *capacity.Fleet
	// Name is the scheduler's: bindings that name another are left alone.
	Name string
	// Concurrency is the number of bindings under way at once.
	Concurrency int
}

type reconciler struct {
	Options
	client client.Client
	events record.EventRecorder
}

// Setup registers the controller with the manager.
func Setup(mgr ctrl.Manager, o Options) error {
	r := &reconciler{Options: o, client: mgr.GetClient(), events: mgr.GetEventRecorderFor("default-scheduler")} //nolint:staticcheck // the contract names core/v1 events
	woken := make(chan event.GenericEvent, 1024)
	o.Fleet.OnChange(func(c capacity.Change) { r.wake(c, woken) })
	b := ctrl.NewControllerManagedBy(mgr).Named("schedule").WithOptions(controller.Options{MaxConcurrentReconciles: o.Concurrency})
	for _, kind := range scope.Bindings.Kinds() {
		b = b.Watches(kind, &handler.EnqueueRequestForObject{}, builder.WithPredicates(predicate.GenerationChangedPredicate{}))
	}
	return b.WatchesRawSource(source.Channel(woken, &handler.EnqueueRequestForObject{})).Complete(r)
}

// Placer places a binding before it is written: it sets the clusters and the record of the placement.
// It reports false, and changes nothing, when the binding is not ours to place or nothing fits: the controller then says why.
func Placer(fleet *capacity.Fleet, scheduler string) func(workv1alpha2.Binding) bool {
	return func(b workv1alpha2.Binding) bool {
		if !fleet.Synced() || !schedule.Ours(b, scheduler) {
			return false
		}
		s := fleet.Snapshot()
		result, err := schedule.Schedule(b, s, s.Room(b))
		if err != nil {
			return false
		}
		place(b, result)
		return true
	}
}

// Reconcile schedules one binding if it is due, and confirms the scheduling in its status.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	read, err := scope.Bindings.Get(ctx, r.client, req.NamespacedName)
	if err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if read.GetDeletionTimestamp() != nil || !schedule.Ours(read, r.Name) {
		return ctrl.Result{}, nil
	}
	if !r.Fleet.Synced() {
		return ctrl.Result{RequeueAfter: 50 * time.Millisecond}, nil
	}
	s := r.Fleet.Snapshot()
	reason, due := schedule.Due(read, s)
	if !due {
		return again(r.confirm(ctx, read, schedule.Result{AffinityName: read.BindingStatus().SchedulerObservedAffinityName}, nil))
	}
	b := read.DeepCopyObject().(workv1alpha2.Binding)
	result, failure := schedule.Schedule(b, s, s.Room(b))
	b.BindingSpec().Clusters = result.Clusters
	if failure == nil {
		place(b, result)
	}
	wrote, err := commit.Update(ctx, r.client, read, b)
	if err != nil {
		return again(err)
	}
	if wrote {
		ctrl.LoggerFrom(ctx).Info("scheduled", "clusters", clusters(b), "reason", reason)
	}
	return again(r.confirm(ctx, b, result, failure))
}

func again(err error) (ctrl.Result, error) {
	if commit.Stale(err) {
		return ctrl.Result{RequeueAfter: 20 * time.Millisecond}, nil
	}
	return ctrl.Result{}, err
}

// confirm says in the status that the scheduler has seen this generation, and how it went; nothing is written when that stands there.
func (r *reconciler) confirm(ctx context.Context, b workv1alpha2.Binding, result schedule.Result, failure error) error {
	want := b.DeepCopyObject().(workv1alpha2.Binding)
	status := want.BindingStatus()
	changed := meta.SetStatusCondition(&status.Conditions, schedule.Condition(failure))
	if failure == nil && (changed || status.SchedulerObservedGeneration != b.GetGeneration()) {
		now := metav1.Now()
		status.LastScheduledTime = &now
	}
	status.SchedulerObservedGeneration, status.SchedulerObservedAffinityName = b.GetGeneration(), result.AffinityName
	wrote, err := commit.Status(ctx, r.client, b, want)
	if err != nil || !wrote || !changed {
		return err
	}
	if failure != nil {
		r.events.Event(b, corev1.EventTypeWarning, workv1alpha2.EventScheduleBindingFailed, failure.Error())
	} else {
		r.events.Event(b, corev1.EventTypeNormal, workv1alpha2.EventScheduleBindingSucceed,
			fmt.Sprintf("%s Result: {%s}", workv1alpha2.MessageScheduled, clusters(b)))
	}
	return nil
}

// wake queues the bindings that a change of a cluster may move.
func (r *reconciler) wake(c capacity.Change, woken chan<- event.GenericEvent) {
	bindings, err := scope.Bindings.List(context.Background(), r.client)
	if err != nil {
		return // the cache is not up yet: every binding is looked at when it is
	}
	for _, b := range bindings {
		if schedule.Affects(b, c.Old, c.New) {
			woken <- event.GenericEvent{Object: b}
		}
	}
}

// clusters is the placement in words: "member1:2, member2:1".
func clusters(b workv1alpha2.Binding) string {
	var out []string
	for _, t := range b.BindingSpec().Clusters {
		out = append(out, fmt.Sprintf("%s:%d", t.Name, t.Replicas))
	}
	return strings.Join(out, ", ")
}

// place puts the result into the binding, with the placement it was made for.
func place(b workv1alpha2.Binding, result schedule.Result) {
	notes := b.GetAnnotations()
	if notes == nil {
		notes = map[string]string{}
	}
	notes[policyv1alpha1.AppliedPlacementAnnotation] = schedule.AppliedPlacement(b.BindingSpec().Placement)
	b.SetAnnotations(notes)
	b.BindingSpec().Clusters = result.Clusters
}
