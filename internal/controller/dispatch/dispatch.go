// Package dispatch keeps the Works of each binding: one for every cluster that shall hold the template, none for others.
// What a Work says is decided by core/dispatch; what becomes of it in the member is the execute controller's.
package dispatch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/dispatch"
	"github.com/argosy-io/argosy/internal/core/interpret"
	"github.com/argosy-io/argosy/internal/core/names"
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
}

type reconciler struct {
	Options
	client client.Client
	events record.EventRecorder
}

// byTemplate is the index that finds the bindings of a kind, with the values of templateIndex.
const byTemplate = "dispatch.template"

// Setup registers the controller with the manager.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	r := &reconciler{Options: o, client: mgr.GetClient(), events: mgr.GetEventRecorderFor("binding-controller")} //nolint:staticcheck // the contract names core/v1 events
	for _, kind := range scope.Bindings.Kinds() {
		if err := mgr.GetFieldIndexer().IndexField(ctx, kind, byTemplate, func(obj client.Object) []string {
			ref := obj.(workv1alpha2.Binding).BindingSpec().Resource
			return []string{templateIndex(ref.APIVersion, ref.Kind, ref.Namespace), templateIndex(ref.APIVersion, ref.Kind, ""), "/" + ref.Namespace, "/"}
		}); err != nil {
			return fmt.Errorf("index bindings by template: %w", err)
		}
	}
	b := ctrl.NewControllerManagedBy(mgr).Named("dispatch").WithOptions(controller.Options{MaxConcurrentReconciles: o.Concurrency})
	for _, kind := range scope.Bindings.Kinds() {
		// The status of a binding decides nothing here.
		b = b.Watches(kind, &handler.EnqueueRequestForObject{}, builder.WithPredicates(specChanged))
	}
	for _, kind := range scope.Overrides.Kinds() {
		b = b.Watches(kind, handler.EnqueueRequestsFromMapFunc(r.selectedBy), builder.WithPredicates(predicate.GenerationChangedPredicate{}))
	}
	return b.
		Watches(&workv1alpha1.Work{}, handler.EnqueueRequestsFromMapFunc(func(_ context.Context, obj client.Object) []reconcile.Request {
			if key, ok := scope.BindingOf(obj); ok {
				return []reconcile.Request{{NamespacedName: key}}
			}
			return nil
		}), builder.WithPredicates(workTouched)).
		Watches(&clusterv1alpha1.Cluster{}, handler.EnqueueRequestsFromMapFunc(r.targeting), builder.WithPredicates(clusterMoved)).
		Complete(r)
}

// specChanged passes what changes a binding's Works: its spec, its labels and its deletion.
var specChanged = predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}, predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		return !e.ObjectOld.GetDeletionTimestamp().Equal(e.ObjectNew.GetDeletionTimestamp())
	},
})

// workTouched passes Works that somebody else changed or deleted, and those that are gone; not our own creations, not statuses.
var workTouched = predicate.Funcs{
	CreateFunc:  func(event.CreateEvent) bool { return false },
	GenericFunc: func(event.GenericEvent) bool { return false },
	UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration()
	},
}

// clusterMoved passes changes of a cluster by which an override may choose differently.
var clusterMoved = predicate.Funcs{
	GenericFunc: func(event.GenericEvent) bool { return false },
	UpdateFunc: func(e event.UpdateEvent) bool {
		was, now := e.ObjectOld.(*clusterv1alpha1.Cluster), e.ObjectNew.(*clusterv1alpha1.Cluster)
		return fmt.Sprint(was.Labels) != fmt.Sprint(now.Labels) || was.Spec.Provider != now.Spec.Provider ||
			was.Spec.Region != now.Spec.Region || fmt.Sprint(was.Spec.Zones) != fmt.Sprint(now.Spec.Zones)
	},
}

// Reconcile makes the Works of one binding what they should be.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	b, err := scope.Bindings.Get(ctx, r.client, req.NamespacedName)
	if err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	works, err := scope.WorksOf(ctx, r.client, req.NamespacedName)
	if err != nil {
		return ctrl.Result{}, err
	}
	if b.GetDeletionTimestamp() != nil {
		return ctrl.Result{}, r.finish(ctx, b, works)
	}
	ref := b.BindingSpec().Resource
	template, found, err := r.Templates.Get(ctx, propagate.GroupKind(ref.APIVersion, ref.Kind), ref.Namespace, ref.Name)
	if err != nil {
		return ctrl.Result{}, err
	}
	if !found || (ref.UID != "" && template.GetUID() != ref.UID) {
		// Its template is going, or was made anew: the binding follows soon, and with it the Works.
		return ctrl.Result{}, nil
	}
	if err := r.remove(ctx, b, dispatch.Unwanted(b, works)); err != nil {
		return ctrl.Result{}, err
	}
	if len(dispatch.Purging(b, works)) > 0 {
		return ctrl.Result{}, nil // what leaves directly leaves first; that it is gone is an event
	}
	input, err := r.input(ctx, b, template, works)
	if err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.write(ctx, b, input)
}

// input gathers what the Works are made from.
func (r *reconciler) input(ctx context.Context, b workv1alpha2.Binding, tmpl *unstructured.Unstructured, works []workv1alpha1.Work) (dispatch.Input, error) {
	in := dispatch.Input{Binding: b, Template: tmpl, Clusters: map[string]*clusterv1alpha1.Cluster{}, Existing: map[string]*workv1alpha1.Work{},
		NewID: uuid.NewString}
	var clusters clusterv1alpha1.ClusterList
	if err := r.client.List(ctx, &clusters); err != nil {
		return in, err
	}
	for i := range clusters.Items {
		in.Clusters[clusters.Items[i].Name] = &clusters.Items[i]
	}
	for i := range works {
		if cluster, err := names.ClusterOf(works[i].Namespace); err == nil {
			in.Existing[cluster] = &works[i]
		}
	}
	var err error
	in.Overrides, err = scope.Overrides.List(ctx, r.client)
	return in, err
}

// write creates and updates the Works that differ. One cluster's failure leaves the others' Works as they should be.
func (r *reconciler) write(ctx context.Context, b workv1alpha2.Binding, in dispatch.Input) error {
	results := dispatch.Works(ctx, in, r.Interpreter)
	errs := make([]error, len(results))
	var all sync.WaitGroup
	gate := make(chan struct{}, 16)
	for i, res := range results {
		if res.Err == nil && !needed(in.Existing[res.Cluster], res.Work) {
			continue
		}
		all.Go(func() {
			gate <- struct{}{}
			defer func() { <-gate }()
			errs[i] = r.writeOne(ctx, b, in, res)
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

func needed(existing, wanted *workv1alpha1.Work) bool {
	return existing == nil || dispatch.Differs(existing, wanted)
}

func (r *reconciler) writeOne(ctx context.Context, b workv1alpha2.Binding, in dispatch.Input, res dispatch.Result) error {
	if res.Err != nil {
		r.tell(b, in.Template, workv1alpha2.EventSyncWorkFailed, res.Err.Error())
		return res.Err
	}
	for _, u := range res.Applied.Untouched {
		r.tell(b, in.Template, workv1alpha2.EventApplyOverridePolicyFailed, fmt.Sprintf("cluster %q: %s", res.Cluster, u))
	}
	existing := in.Existing[res.Cluster]
	if existing == nil {
		err := r.client.Create(ctx, res.Work)
		if apierrors.IsAlreadyExists(err) {
			return r.taken(ctx, b, in, res)
		}
		if err != nil {
			err = fmt.Errorf("create %s: %w", commit.Name(res.Work), err)
			r.tell(b, in.Template, workv1alpha2.EventSyncWorkFailed, err.Error())
		}
		return err
	}
	if existing.DeletionTimestamp != nil {
		return nil // made anew when it is gone; its deletion is an event
	}
	_, err := commit.Update(ctx, r.client, existing, dispatch.Onto(existing, res.Work))
	return err
}

// taken tells a Work that the cache has not shown yet from one that belongs to another binding.
func (r *reconciler) taken(ctx context.Context, b workv1alpha2.Binding, in dispatch.Input, res dispatch.Result) error {
	other := &workv1alpha1.Work{}
	if err := r.client.Get(ctx, client.ObjectKeyFromObject(res.Work), other); err != nil {
		return err
	}
	if key, ok := scope.BindingOf(other); ok && key == client.ObjectKeyFromObject(b) {
		return apierrors.NewConflict(workv1alpha1.Resource("works"), res.Work.Name, errors.New("the cache is behind"))
	}
	err := fmt.Errorf("Work %s/%s belongs to another template of the same kind name; rename one of the two", other.Namespace, other.Name) //nolint:staticcheck // Work is a kind
	r.tell(b, in.Template, workv1alpha2.EventSyncWorkFailed, err.Error())
	return err
}

// finish deletes the Works of a binding that is going, and lets it go when they are gone.
func (r *reconciler) finish(ctx context.Context, b workv1alpha2.Binding, works []workv1alpha1.Work) error {
	if len(works) > 0 {
		return r.remove(ctx, b, works)
	}
	for _, f := range []string{workv1alpha2.BindingFinalizer, workv1alpha2.ClusterBindingFinalizer} {
		if err := commit.RemoveFinalizer(ctx, r.client, b, f); err != nil {
			return err
		}
	}
	return nil
}

func (r *reconciler) remove(ctx context.Context, b workv1alpha2.Binding, works []workv1alpha1.Work) error {
	var errs []error
	for i := range works {
		if err := commit.Delete(ctx, r.client, &works[i]); err != nil {
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		r.events.Event(b, corev1.EventTypeWarning, workv1alpha2.EventCleanupWorkFailed, err.Error())
		return err
	}
	return nil
}

// tell puts an event on the binding and on its template.
func (r *reconciler) tell(b workv1alpha2.Binding, tmpl *unstructured.Unstructured, reason, message string) {
	r.events.Event(b, corev1.EventTypeWarning, reason, message)
	r.events.Event(tmpl, corev1.EventTypeWarning, reason, message)
}

// selectedBy are the bindings whose templates an override policy may select.
func (r *reconciler) selectedBy(ctx context.Context, obj client.Object) []reconcile.Request {
	var keys []string
	for _, sel := range obj.(policyv1alpha1.Override).OverrideSpec().ResourceSelectors {
		ns := sel.Namespace
		if obj.GetNamespace() != "" {
			ns = obj.GetNamespace()
		}
		keys = append(keys, templateIndex(sel.APIVersion, sel.Kind, ns))
	}
	if keys == nil {
		keys = []string{"/" + obj.GetNamespace()}
	}
	seen := map[types.NamespacedName]bool{}
	var out []reconcile.Request
	for _, key := range keys {
		bindings, err := scope.Bindings.List(ctx, r.client, client.MatchingFields{byTemplate: key})
		if err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "list bindings of an override policy", "policy", obj.GetName())
			continue
		}
		for _, b := range bindings {
			if key := client.ObjectKeyFromObject(b); !seen[key] {
				seen[key] = true
				out = append(out, reconcile.Request{NamespacedName: key})
			}
		}
	}
	return out
}

// targeting are the bindings that send something to the cluster.
func (r *reconciler) targeting(ctx context.Context, obj client.Object) []reconcile.Request {
	bindings, err := scope.Bindings.List(ctx, r.client)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "list bindings of a cluster", "cluster", obj.GetName())
		return nil
	}
	var out []reconcile.Request
	for _, b := range bindings {
		if slices.ContainsFunc(dispatch.Targets(b), func(t workv1alpha2.TargetCluster) bool { return t.Name == obj.GetName() }) {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(b)})
		}
	}
	return out
}

// templateIndex is the index value of the templates of a kind; an empty namespace is any.
func templateIndex(apiVersion, kind, namespace string) string {
	return strings.Join([]string{propagate.GroupKind(apiVersion, kind).String(), namespace}, "/")
}
