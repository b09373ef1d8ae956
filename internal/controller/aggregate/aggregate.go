// Package aggregate folds what the members answered into the binding, and from there into the template's own status.
// How statuses fold is decided by core/aggregate and core/interpret; when they are worth a write is decided here.
package aggregate

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/aggregate"
	"github.com/argosy-io/argosy/internal/core/interpret"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/scope"
	"github.com/argosy-io/argosy/internal/template"
)

// Options of the controller.
type Options struct {
	Templates   *template.Store
	Interpreter interpret.Interpreter
	// Concurrency is the number of bindings under way at once.
	Concurrency int
	// Gather is how long the answers of several members are waited for, so that they fold into one write.
	Gather time.Duration
	// StatusWindow is how long a change that leaves applied and health as they are may wait for further ones.
	StatusWindow time.Duration
}

type reconciler struct {
	Options
	client client.Client
	events record.EventRecorder

	// written is when a binding's status was last written, for the window.
	written sync.Map // types.NamespacedName → time.Time
}

// Setup registers the controller with the manager.
func Setup(mgr ctrl.Manager, o Options) error {
	r := &reconciler{Options: o, client: mgr.GetClient(), events: mgr.GetEventRecorderFor("binding-status-controller")} //nolint:staticcheck // the contract names core/v1 events
	b := ctrl.NewControllerManagedBy(mgr).Named("aggregate").WithOptions(controller.Options{MaxConcurrentReconciles: o.Concurrency})
	for _, kind := range scope.Bindings.Kinds() {
		b = b.Watches(kind, &handler.EnqueueRequestForObject{}, builder.WithPredicates(predicate.GenerationChangedPredicate{}))
	}
	return b.Watches(&workv1alpha1.Work{}, gathering(o.Gather), builder.WithPredicates(answered)).Complete(r)
}

// answered passes Works whose member has said something new, and those that are gone.
var answered = predicate.Funcs{
	CreateFunc:  func(e event.CreateEvent) bool { return e.IsInInitialList },
	GenericFunc: func(event.GenericEvent) bool { return false },
	UpdateFunc: func(e event.UpdateEvent) bool {
		return !equality.Semantic.DeepEqual(e.ObjectOld.(*workv1alpha1.Work).Status, e.ObjectNew.(*workv1alpha1.Work).Status)
	},
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
	b, err := scope.Bindings.Get(ctx, r.client, req.NamespacedName)
	if err != nil || b.GetDeletionTimestamp() != nil {
		r.written.Delete(req.NamespacedName)
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	works, err := scope.WorksOf(ctx, r.client, req.NamespacedName)
	if err != nil {
		return ctrl.Result{}, err
	}
	want := b.DeepCopyObject().(workv1alpha2.Binding)
	*want.BindingStatus() = aggregate.Binding(b, works, metav1.Now())
	if wait := r.wait(req.NamespacedName, b.BindingStatus(), want.BindingStatus()); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	wrote, err := commit.Status(ctx, r.client, b, want)
	if err != nil {
		return again(err)
	}
	if wrote {
		r.written.Store(req.NamespacedName, time.Now())
	}
	return again(r.foldIntoTemplate(ctx, want))
}

// again tries a write over an old read again without calling it an error.
func again(err error) (ctrl.Result, error) {
	if commit.Stale(err) {
		return ctrl.Result{RequeueAfter: 20 * time.Millisecond}, nil
	}
	return ctrl.Result{}, err
}

// wait is how long the answers may still be gathered: not at all when what was answered makes the whole applied, whole
// healthy, or anything failed; while the picture is only getting fuller, until the window has passed.
func (r *reconciler) wait(key types.NamespacedName, was, want *workv1alpha2.ResourceBindingStatus) time.Duration {
	if r.StatusWindow == 0 || settled(want) && !settled(was) || failures(want) > failures(was) {
		return 0
	}
	at, ok := r.written.Load(key)
	if !ok {
		return 0
	}
	return r.StatusWindow - time.Since(at.(time.Time))
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

// foldIntoTemplate writes the template's status where its kind has one that can be folded.
func (r *reconciler) foldIntoTemplate(ctx context.Context, b workv1alpha2.Binding) error {
	ref := b.BindingSpec().Resource
	kind := propagate.GroupKind(ref.APIVersion, ref.Kind)
	read, found, err := r.Templates.Get(ctx, kind, ref.Namespace, ref.Name)
	if err != nil || !found || (ref.UID != "" && read.GetUID() != ref.UID) || read.GetDeletionTimestamp() != nil {
		return err
	}
	want, err := r.Interpreter.Aggregate(ctx, read, aggregate.Items(b))
	if err != nil {
		for _, obj := range []client.Object{b, read} {
			r.events.Event(obj, corev1.EventTypeWarning, workv1alpha2.EventAggregateStatusFailed, err.Error())
		}
		return fmt.Errorf("aggregate the status of %s: %w", commit.Name(read), err)
	}
	if equality.Semantic.DeepEqual(statusOf(read), statusOf(want)) {
		return nil
	}
	err = r.Templates.UpdateStatus(ctx, want)
	if apierrors.IsNotFound(err) {
		return nil // gone meanwhile, or a kind without a status subresource: its status is its users' to write
	}
	return err
}

func statusOf(u *unstructured.Unstructured) any { return u.Object["status"] }
