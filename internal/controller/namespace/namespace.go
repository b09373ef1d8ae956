// Package namespace sends the namespaces of the hub to every member, so that placed objects find their namespace.
// core/dispatch decides the content of the Works; names.Reserved and the skip label exclude namespaces.
package namespace

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/dispatch"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/object/identity"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/schedule"
	"github.com/argosy-io/argosy/internal/facts"
	"github.com/argosy-io/argosy/internal/filter"
	"github.com/argosy-io/argosy/internal/scope"
)

type Options struct {
	// ForbidOverwrite treats conflict resolution Overwrite on a namespace as Abort.
	ForbidOverwrite bool
}

type reconciler struct {
	Options
	client client.Client
	// live bypasses the cache, for decisions that would delete something because of an old state.
	live client.Reader
}

const (
	// spaceRetry is the delay before a cluster is tried again while its execution space is being deleted.
	spaceRetry = 2 * time.Second
	// concurrency is the number of namespaces that are reconciled in parallel.
	concurrency = 4
)

// Setup registers the controller with the manager.
func Setup(mgr ctrl.Manager, o Options) error {
	r := &reconciler{Options: o, client: mgr.GetClient(), live: mgr.GetAPIReader()}
	all := handler.EnqueueRequestsFromMapFunc(r.allNamespaces)
	return ctrl.NewControllerManagedBy(mgr).Named("namespace").
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrency}).
		For(&corev1.Namespace{}).
		Watches(&corev1.Namespace{}, all, builder.WithPredicates(spaceOpens)).
		Watches(&clusterv1alpha1.Cluster{}, all, builder.WithPredicates(clusterMoved)).
		Watches(&policyv1alpha1.ClusterOverridePolicy{}, all,
			builder.WithPredicates(filter.AfterStart, predicate.GenerationChangedPredicate{}, selectsNamespaces)).
		Watches(&workv1alpha1.Work{}, handler.EnqueueRequestsFromMapFunc(func(_ context.Context,
			obj client.Object) []reconcile.Request {
			if ns, ok := namespaceOf(obj.(*workv1alpha1.Work)); ok {
				return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: ns}}}
			}
			return nil
		}), builder.WithPredicates(workTouched)).
		Complete(r)
}

// spaceOpens selects new execution spaces: only then can a cluster have Works.
var spaceOpens = predicate.And[client.Object](filter.AfterStart, filter.Creations,
	predicate.NewPredicateFuncs(func(namespace client.Object) bool {
		_, err := names.ClusterOf(namespace.GetName())
		return err == nil
	}))

// clusterMoved selects changes of a cluster that overrides select by, and new clusters: a registration, or a user, may
// create the execution space first.
var clusterMoved = predicate.Or[client.Object](filter.Updates(schedule.AffinityMayChange),
	predicate.And[client.Object](filter.AfterStart, filter.Creations))

// selectsNamespaces selects override policies that may select a namespace, or did.
var selectsNamespaces = predicate.Funcs{
	CreateFunc: func(e event.CreateEvent) bool { return selects(e.Object) },
	UpdateFunc: func(e event.UpdateEvent) bool { return selects(e.ObjectOld) || selects(e.ObjectNew) },
	DeleteFunc: func(e event.DeleteEvent) bool { return selects(e.Object) },
}

func selects(policy client.Object) bool {
	selectors := policy.(*policyv1alpha1.ClusterOverridePolicy).Spec.ResourceSelectors
	return len(selectors) == 0 || slices.ContainsFunc(selectors, func(sel policyv1alpha1.ResourceSelector) bool {
		return match.GroupKind(sel.APIVersion, sel.Kind) == namespaceKind
	})
}

// workTouched selects all events of Works but updates of the status. Creations and deletions count too: the namespace
// of a Work may have been deleted before the cache had the Work, or while the hub was down.
var workTouched = predicate.Funcs{UpdateFunc: filter.Touched}

// Reconcile writes the Works of one namespace, or deletes them.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	err := r.reconcile(ctx, req.Name)
	switch {
	case commit.Stale(err):
		return ctrl.Result{RequeueAfter: commit.StaleRetry}, nil
	case errors.Is(err, errNoSpace):
		return ctrl.Result{RequeueAfter: spaceRetry}, nil
	}
	return ctrl.Result{}, err
}

// errNoSpace means that the execution space of a cluster is being deleted. A new one triggers an event, but the API
// server's own cache of namespaces may be behind ours.
var errNoSpace = errors.New("a cluster has no execution space")

func (r *reconciler) reconcile(ctx context.Context, name string) error {
	ns := &corev1.Namespace{}
	err := r.client.Get(ctx, client.ObjectKey{Name: name}, ns)
	if apierrors.IsNotFound(err) {
		return r.withdraw(ctx, name)
	}
	if err != nil {
		return fmt.Errorf("get namespace %q: %w", name, err)
	}
	if ns.DeletionTimestamp != nil || !dispatch.AutoPropagated(named(ns)) {
		// In a terminating namespace the templates are deleted first. In a skipped one, Works stay: a label deletes nothing.
		return nil
	}
	return r.send(ctx, ns)
}

func (r *reconciler) send(ctx context.Context, ns *corev1.Namespace) error {
	in, err := r.input(ctx, ns)
	if err != nil {
		return err
	}
	var errs []error
	stale, closed := false, false
	for _, res := range dispatch.Namespaces(in) {
		err := res.Err
		if existing := in.Existing[res.Cluster]; err == nil && existing == nil {
			err = scope.CreateWork(ctx, r.client, r.live, res.Work, object(ns.Name))
		} else if err == nil && execute.Recallable(existing) {
			err = r.recall(ctx, ns, existing)
		} else if err == nil && existing.DeletionTimestamp == nil && dispatch.Differs(existing, res.Work) {
			_, err = commit.Update(ctx, r.client, existing, dispatch.Onto(existing, res.Work))
		}
		switch {
		case commit.Stale(err):
			stale = true
		case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
			closed = true
		case err != nil:
			errs = append(errs, fmt.Errorf("propagate namespace %q to cluster %q: %w", ns.Name, res.Cluster, err))
		}
	}
	if len(errs) == 0 && closed {
		return errNoSpace
	}
	if len(errs) == 0 && stale {
		return apierrors.NewConflict(workv1alpha1.Resource("works"), ns.Name, errors.New("the cache is behind"))
	}
	return errors.Join(errs...)
}

// recall ends the deletion of a Work, unless the namespace is being deleted, which the cache may not show yet.
func (r *reconciler) recall(ctx context.Context, ns *corev1.Namespace, work *workv1alpha1.Work) error {
	live := &corev1.Namespace{}
	err := r.live.Get(ctx, client.ObjectKeyFromObject(ns), live)
	if err != nil || live.DeletionTimestamp != nil || live.UID != ns.UID {
		return client.IgnoreNotFound(err)
	}
	return commit.Recall(ctx, r.client, work)
}

// input reads the facts for the Works of a namespace. They are read-only, so only the namespace is copied.
func (r *reconciler) input(ctx context.Context, ns *corev1.Namespace) (dispatch.Input, error) {
	in := dispatch.Input{Clusters: map[string]*clusterv1alpha1.Cluster{}, Existing: map[string]*workv1alpha1.Work{},
		NewID:           uuid.NewString,
		ForbidOverwrite: dispatch.Forbidden(r.ForbidOverwrite, ns.Name, ns.Labels)}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(ns)
	if err != nil {
		return in, err
	}
	in.Template = &unstructured.Unstructured{Object: object}
	in.Template.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(namespaceKind.Kind))

	var overrides policyv1alpha1.ClusterOverridePolicyList
	if err := r.client.List(ctx, &overrides, client.UnsafeDisableDeepCopy); err != nil {
		return in, fmt.Errorf("list cluster override policies: %w", err)
	}
	for i := range overrides.Items {
		in.Overrides = append(in.Overrides, &overrides.Items[i])
	}

	clusters, err := facts.Clusters(ctx, r.client)
	if err != nil {
		return in, err
	}
	for _, c := range clusters {
		open, err := r.open(ctx, c.Name)
		if err != nil {
			return in, err
		}
		if !open {
			continue // its creation triggers this loop
		}
		existing, err := r.work(ctx, ns.Name, c.Name)
		if err != nil {
			return in, err
		}
		if existing != nil {
			if _, bound := scope.BindingOf(existing); bound && !execute.Recallable(existing) {
				continue // a policy propagates the namespace there, and decides
			}
			in.Existing[c.Name] = existing
		}
		in.Clusters[c.Name] = c
	}
	return in, nil
}

// open reports whether a cluster can have Works: its execution space is there, and is not going.
func (r *reconciler) open(ctx context.Context, cluster string) (bool, error) {
	space := &corev1.Namespace{}
	err := r.client.Get(ctx, client.ObjectKey{Name: names.ExecutionSpace(cluster)}, space, client.UnsafeDisableDeepCopy)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("get the execution space of cluster %q: %w", cluster, err)
	}
	return err == nil && space.DeletionTimestamp == nil, nil
}

// withdraw deletes the Works of a deleted namespace, and so the namespace in the members where nothing in it stays.
func (r *reconciler) withdraw(ctx context.Context, name string) error {
	clusters, err := facts.Clusters(ctx, r.client)
	if err != nil {
		return err
	}
	var sent []*workv1alpha1.Work
	for cluster := range clusters {
		work, err := r.work(ctx, name, cluster)
		if err != nil {
			return err
		}
		if work == nil || work.DeletionTimestamp != nil {
			continue
		}
		if _, bound := scope.BindingOf(work); !bound {
			sent = append(sent, work)
		}
	}
	if len(sent) == 0 {
		return nil
	}
	if err := r.live.Get(ctx, client.ObjectKey{Name: name}, &corev1.Namespace{}); !apierrors.IsNotFound(err) {
		return err // it was created again: the cache shows it soon, which triggers this loop
	}
	return commit.DeleteEach(ctx, r.client, sent)
}

// named returns the fields that decide whether a namespace is sent.
func named(ns *corev1.Namespace) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetName(ns.Name)
	u.SetLabels(ns.Labels)
	return u
}

// work returns the Work of a namespace in a cluster, which must not be changed; nil if there is none.
func (r *reconciler) work(ctx context.Context, ns, cluster string) (*workv1alpha1.Work, error) {
	return scope.WorkOf(ctx, r.client, cluster, names.Work(namespaceKind.Kind, ns, ""), object(ns),
		client.UnsafeDisableDeepCopy)
}

func object(ns string) identity.Object { return identity.Object{Kind: namespaceKind.Kind, Name: ns} }

func (r *reconciler) allNamespaces(ctx context.Context, _ client.Object) []reconcile.Request {
	// Each cluster has an execution space: they must not be reconciled for each new one.
	return filter.Listed(ctx, r.client, &corev1.NamespaceList{}, func(o client.Object) bool {
		return dispatch.AutoPropagated(named(o.(*corev1.Namespace)))
	})
}

var namespaceKind = schema.GroupKind{Kind: "Namespace"}

// namespaceOf returns the namespace that a Work is for; not ok if it is for something else. One that a policy
// propagates counts: when that ends, the namespace is sent as all are.
func namespaceOf(w *workv1alpha1.Work) (string, bool) {
	if key, bound := scope.BindingOf(w); bound && key.Namespace != "" {
		return "", false
	}
	manifest, err := execute.Manifest(w)
	if err != nil || manifest.GroupVersionKind().GroupKind() != namespaceKind {
		return "", false
	}
	return manifest.GetName(), true
}
