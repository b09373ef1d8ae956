// Package propagate claims templates for policies, and keeps a binding for each claimed template. core/propagate
// decides which policy claims and the content of the binding; the scheduler decides the clusters.
package propagate

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	networkingv1alpha1 "github.com/argosy-io/argosy/api/networking/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
	"github.com/argosy-io/argosy/internal/interpreter"
	"github.com/argosy-io/argosy/internal/scope"
	"github.com/argosy-io/argosy/internal/template"
)

// Options of the controller.
type Options struct {
	Templates   *template.Store
	Interpreter interpret.Interpreter
	// Place schedules a binding that is about to be created: it fills spec.clusters and the annotation of the applied
	// placement. If it returns false, the binding is unchanged. nil leaves every binding to the scheduler.
	Place func(b workv1alpha2.Binding) (placed bool)
	// Pods finds the pods that a template names to go; without it they are found nowhere.
	Pods Pods
	// Concurrency is the number of templates that are reconciled at the same time.
	Concurrency int
}

// firstRetry is the delay of the first attempt after a failure; it grows.
const firstRetry = 5 * time.Millisecond

// reconciler is shared by two loops: one per template, which claims and binds, and one per policy, which removes the
// finalizer of a deleted policy once its claims are removed.
type reconciler struct {
	Options
	client client.Client
	// live bypasses the cache, for decisions that would delete something because of an old state.
	live   client.Reader
	events commit.Events
	// failures has the last message that was recorded per template.
	failures commit.Dedup[key]
	sidecars sidecars
}

// Setup registers the controllers with the manager.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	r := &reconciler{
		Options: o,
		client:  mgr.GetClient(),
		live:    mgr.GetAPIReader(),
		events:  commit.Recorder(mgr, "resource-detector"),
	}
	for _, i := range indexes() {
		if err := mgr.GetFieldIndexer().IndexField(ctx, i.object, i.field, i.values); err != nil {
			return fmt.Errorf("index %T by %s: %w", i.object, i.field, err)
		}
	}

	templates, err := controller.NewTyped("propagate", mgr, controller.TypedOptions[key]{
		MaxConcurrentReconciles: o.Concurrency,
		RateLimiter:             commit.Backoff[key](firstRetry),
		Reconciler:              reconcile.TypedFunc[key](r.reconcileTemplate),
	})
	if err != nil {
		return fmt.Errorf("set up the propagation of templates: %w", err)
	}
	sources := []source.TypedSource[key]{
		source.TypedFunc[key](func(ctx context.Context, q workqueue.TypedRateLimitingInterface[key]) error {
			o.Templates.Subscribe(templateChanged(q.Add))
			o.Templates.Subscribe(r.sidecarsChanged(ctx, q.Add))
			interpreter.OnChange(o.Interpreter, r.kindsChanged(q.Add))
			return nil
		}),
	}
	for _, kind := range scope.Propagations.Kinds() {
		sources = append(sources, source.TypedKind(mgr.GetCache(), kind, r.policyChanged()))
	}
	for _, kind := range scope.Bindings.Kinds() {
		sources = append(sources, source.TypedKind(mgr.GetCache(), kind, r.bindingChanged()))
	}
	for _, kind := range scope.Overrides.Kinds() {
		sources = append(sources, source.TypedKind(mgr.GetCache(), kind, r.overrideAppeared()))
	}
	sources = append(sources, source.TypedKind(mgr.GetCache(), &corev1.Namespace{}, r.namespaceChanged()),
		source.TypedKind(mgr.GetCache(), &networkingv1alpha1.MultiClusterService{}, r.exposureEnded()))
	for _, s := range sources {
		if err := templates.Watch(s); err != nil {
			return fmt.Errorf("watch for the propagation of templates: %w", err)
		}
	}
	return r.setupFinalizers(mgr)
}
