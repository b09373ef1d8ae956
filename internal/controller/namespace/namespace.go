// Package namespace sends the hub's namespaces to every member, so that what is placed there finds its namespace.
// What the Works say is decided by core/dispatch; which namespaces are kept back is decided by names.Reserved and the skip label.
package namespace

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
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
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/names"
	"github.com/argosy-io/argosy/internal/scope"
)

type reconciler struct {
	client client.Client
}

// retrySoon is when a write over an old read is tried again.
const retrySoon = 50 * time.Millisecond

// Setup registers the controller with the manager.
func Setup(mgr ctrl.Manager) error {
	r := &reconciler{client: mgr.GetClient()}
	all := handler.EnqueueRequestsFromMapFunc(r.all)
	return ctrl.NewControllerManagedBy(mgr).Named("namespace").
		For(&corev1.Namespace{}).
		Watches(&clusterv1alpha1.Cluster{}, all, builder.WithPredicates(comesOrGoes)).
		Watches(&policyv1alpha1.ClusterOverridePolicy{}, all, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&workv1alpha1.Work{}, handler.EnqueueRequestsFromMapFunc(func(_ context.Context, obj client.Object) []reconcile.Request {
			if ns, ok := namespaceOf(obj.(*workv1alpha1.Work)); ok {
				return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: ns}}}
			}
			return nil
		}), builder.WithPredicates(workGone)).
		Complete(r)
}

// comesOrGoes passes clusters that are new, leave, or get their execution space: that is when a finalizer is set.
var comesOrGoes = predicate.Funcs{
	GenericFunc: func(event.GenericEvent) bool { return false },
	UpdateFunc: func(e event.UpdateEvent) bool {
		return len(e.ObjectOld.GetFinalizers()) != len(e.ObjectNew.GetFinalizers()) ||
			!e.ObjectOld.GetDeletionTimestamp().Equal(e.ObjectNew.GetDeletionTimestamp())
	},
}

// workGone passes Works that somebody deleted or changed, and at the start all: their namespace may have gone meanwhile.
var workGone = predicate.Funcs{
	CreateFunc:  func(e event.CreateEvent) bool { return e.IsInInitialList },
	GenericFunc: func(event.GenericEvent) bool { return false },
	UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration()
	},
}

// Reconcile makes the Works of one namespace what they should be, or has them go.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	ns := &corev1.Namespace{}
	if err := r.client.Get(ctx, req.NamespacedName, ns); client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, err
	}
	gone := ns.UID == ""
	if !gone && (ns.DeletionTimestamp != nil || !dispatch.AutoPropagated(named(ns))) {
		// Terminating, its templates go first; skipped, what was sent before stays where it is: a label deletes nothing.
		return ctrl.Result{}, nil
	}
	var clusters clusterv1alpha1.ClusterList
	err := r.client.List(ctx, &clusters)
	if err != nil {
		return ctrl.Result{}, err
	}
	if gone {
		err = r.withdraw(ctx, req.Name, clusters.Items)
	} else {
		err = r.send(ctx, ns, clusters.Items)
	}
	if commit.Stale(err) {
		return ctrl.Result{RequeueAfter: retrySoon}, nil
	}
	return ctrl.Result{}, err
}

func (r *reconciler) send(ctx context.Context, ns *corev1.Namespace, clusters []clusterv1alpha1.Cluster) error {
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(ns)
	if err != nil {
		return err
	}
	in := dispatch.Input{
		Template: &unstructured.Unstructured{Object: object},
		Clusters: map[string]*clusterv1alpha1.Cluster{}, Existing: map[string]*workv1alpha1.Work{},
		NewID: uuid.NewString,
	}
	in.Template.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if in.Overrides, err = scope.Overrides.List(ctx, r.client); err != nil {
		return err
	}
	for i := range clusters {
		c := &clusters[i]
		if !controllerutil.ContainsFinalizer(c, workv1alpha2.ClusterFinalizer) {
			continue // its execution space comes first; then its finalizer is an event
		}
		in.Clusters[c.Name] = c
		existing := &workv1alpha1.Work{}
		err := r.client.Get(ctx, workKey(ns.Name, c.Name), existing)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		if err == nil {
			in.Existing[c.Name] = existing
		}
	}
	var errs []error
	for _, res := range dispatch.Namespaces(in) {
		err := res.Err
		if existing := in.Existing[res.Cluster]; err == nil && existing == nil {
			err = r.client.Create(ctx, res.Work)
		} else if err == nil && existing.DeletionTimestamp == nil && dispatch.Differs(existing, res.Work) {
			_, err = commit.Update(ctx, r.client, existing, dispatch.Onto(existing, res.Work))
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("send namespace %q to cluster %q: %w", ns.Name, res.Cluster, err))
		}
	}
	return errors.Join(errs...)
}

func (r *reconciler) withdraw(ctx context.Context, ns string, clusters []clusterv1alpha1.Cluster) error {
	var errs []error
	for i := range clusters {
		work := &workv1alpha1.Work{}
		err := r.client.Get(ctx, workKey(ns, clusters[i].Name), work)
		if err == nil {
			err = commit.Delete(ctx, r.client, work)
		}
		errs = append(errs, client.IgnoreNotFound(err))
	}
	return errors.Join(errs...)
}

// named is what decides whether a namespace is sent.
func named(ns *corev1.Namespace) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetName(ns.Name)
	u.SetLabels(ns.Labels)
	return u
}

// workKey is the Work of a namespace in a cluster.
func workKey(ns, cluster string) client.ObjectKey {
	return client.ObjectKey{Namespace: names.ExecutionSpace(cluster), Name: names.Work("Namespace", ns, "")}
}

func (r *reconciler) all(ctx context.Context, _ client.Object) []reconcile.Request {
	var all corev1.NamespaceList
	if err := r.client.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "list namespaces")
		return nil
	}
	var out []reconcile.Request
	for i := range all.Items {
		out = append(out, reconcile.Request{NamespacedName: client.ObjectKey{Name: all.Items[i].Name}})
	}
	return out
}

// namespaceOf is the namespace that a Work was made for; not ok if for something else.
func namespaceOf(w *workv1alpha1.Work) (string, bool) {
	if _, bound := scope.BindingOf(w); bound {
		return "", false
	}
	manifest, err := execute.Manifest(w)
	if err != nil || manifest.GetKind() != "Namespace" || manifest.GetAPIVersion() != "v1" {
		return "", false
	}
	return manifest.GetName(), true
}
