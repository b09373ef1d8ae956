package service

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	multiclusterv1alpha1 "github.com/argosy-io/argosy/api/multicluster/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/source/service"
	"github.com/argosy-io/argosy/internal/scope"
)

// imports reconciles ServiceImports. The key of a request is the common name of Service, ServiceExport and
// ServiceImport.
type imports struct{ *exchanges }

func setupImports(mgr ctrl.Manager, x *exchanges) error {
	r := &imports{x}
	return ctrl.NewControllerManagedBy(mgr).Named("service-import").
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrency,
			RateLimiter: commit.Backoff[reconcile.Request](firstRetry)}).
		For(&multiclusterv1alpha1.ServiceImport{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&workv1alpha2.ResourceBinding{}, handler.EnqueueRequestsFromMapFunc(bound), builder.WithPredicates(placed)).
		Watches(&workv1alpha1.Work{}, handler.EnqueueRequestsFromMapFunc(owner(multiclusterv1alpha1.ServiceImportKind.Kind)),
			builder.WithPredicates(worked)).
		Watches(&clusterv1alpha1.Cluster{}, handler.EnqueueRequestsFromMapFunc(r.allImports), builder.WithPredicates(moved)).
		WatchesRawSource(x.endpoints(multiclusterv1alpha1.ServiceImportKind.Kind)).
		Complete(r)
}

// bound maps the binding of a ServiceExport or ServiceImport to the Service.
func bound(_ context.Context, b client.Object) []reconcile.Request {
	ref := b.(*workv1alpha2.ResourceBinding).Spec.Resource
	switch match.GroupKind(ref.APIVersion, ref.Kind) {
	case multiclusterv1alpha1.ServiceExportKind, multiclusterv1alpha1.ServiceImportKind:
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}}}
	}
	return nil
}

// owner maps a Work to its owner of the given kind.
func owner(kind string) handler.MapFunc {
	return func(_ context.Context, w client.Object) []reconcile.Request {
		if owner, ok := service.OwnerOf(w); ok && owner.Kind == kind {
			return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: owner.Namespace, Name: owner.Name}}}
		}
		return nil
	}
}

// allImports maps a cluster to the Services that it may export or import.
func (r *imports) allImports(ctx context.Context, cluster client.Object) []reconcile.Request {
	var list workv1alpha2.ResourceBindingList
	if err := r.client.List(ctx, &list, client.MatchingFields{byKind: multiclusterv1alpha1.GroupVersion.Group},
		client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "list the bindings of what a cluster exports", "cluster", cluster.GetName())
		return nil
	}
	var out []reconcile.Request
	for i := range list.Items {
		out = append(out, bound(ctx, &list.Items[i])...)
	}
	return out
}

// Reconcile sends the endpoints of the exporting clusters to the importing ones.
func (r *imports) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	return r.result(r.reconcile(ctx, req.NamespacedName))
}

// reconcile also returns the time at which it must run again without an event; zero means never.
func (r *imports) reconcile(ctx context.Context, key types.NamespacedName) (next time.Time, err error) {
	// Members need the CRDs. An error here must not block the endpoints.
	exporters, err := r.placed(ctx, multiclusterv1alpha1.ServiceExportKind, key)
	if err != nil {
		return next, err
	}
	importers, err := r.placed(ctx, multiclusterv1alpha1.ServiceImportKind, key)
	if err != nil {
		return next, err
	}
	defined := errors.Join(r.defineIn(ctx, multiclusterv1alpha1.ServiceExportKind, exporters),
		r.defineIn(ctx, multiclusterv1alpha1.ServiceImportKind, importers))
	next, err = r.exchange(ctx, key, exporters, importers, defined)
	return next, errors.Join(defined, err)
}

// exchange sends the endpoints to the importers, or withdraws them if there is no import. It reports defined, the error
// of the steps before. next is the time at which it must run again without an event; zero means never.
func (r *imports) exchange(ctx context.Context, key types.NamespacedName, exporters, importers []string,
	defined error) (next time.Time, err error) {
	// 1. Without an import withdraw everything.
	read := &multiclusterv1alpha1.ServiceImport{}
	err = r.client.Get(ctx, key, read)
	if client.IgnoreNotFound(err) != nil {
		return next, fmt.Errorf("get ServiceImport %s: %w", key, err)
	}
	me := service.Owner{Kind: multiclusterv1alpha1.ServiceImportKind.Kind, Namespace: key.Namespace, Name: key.Name}
	if err != nil {
		return next, r.gone(ctx, me, read, false, r.withdraw)
	}
	if read.DeletionTimestamp != nil {
		return next, r.withdraw(ctx, me)
	}

	// 2. Write the Works.
	e := service.Import(read, exporters, importers)
	x, err := r.exchangeEndpoints(ctx, e, e.Consumers)
	if err != nil {
		return next, err
	}

	// 3. Set the conditions.
	trouble := service.Refused(x.Decision, x.standing)
	if len(x.Portless) > 0 {
		trouble = append(trouble, fmt.Sprintf(
			"no cluster that exports Service %s has a port named %s: use the port names and protocols of the Service in the import",
			key, strings.Join(x.Portless, ", ")))
	}
	if why := obstacle(errors.Join(defined, x.failed)); why != "" {
		trouble = append(trouble, why)
	}
	r.warn(me, read, service.EventProviderLost, service.WithdrawnMessage(x.Decision))
	r.warn(me, read, service.EventSyncDerivedServiceFailed, strings.Join(trouble, "; "))
	want := read.DeepCopy()
	want.Status = service.ImportStatus(x.Decision)
	wrote, err := commit.Status(ctx, r.client, read, want)
	if wrote && err == nil && len(trouble)+len(x.Withdrawn) == 0 && len(want.Status.Clusters) > 0 {
		r.events.RecordSuccess(service.EventSyncDerivedServiceSucceed, "Sync derived service for serviceImport("+read.Name+
			") succeed.", read)
	}
	return x.next, errors.Join(x.failed, client.IgnoreNotFound(err))
}

// placed returns the clusters in which a policy places the object.
func (r *imports) placed(ctx context.Context, kind schema.GroupKind, key types.NamespacedName) ([]string, error) {
	b, _, err := scope.BindingFor(ctx, r.client, kind, key.Namespace, key.Name, client.UnsafeDisableDeepCopy)
	if err != nil || b == nil {
		return nil, err
	}
	return r.targets(ctx, b)
}

// defineIn sends the CRD to the clusters and joins the errors.
func (r *imports) defineIn(ctx context.Context, kind schema.GroupKind, clusters []string) error {
	var errs []error
	for _, cluster := range clusters {
		errs = append(errs, r.define(ctx, kind, cluster))
	}
	return errors.Join(errs...)
}
