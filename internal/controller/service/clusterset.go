package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	multiclusterv1alpha1 "github.com/argosy-io/argosy/api/multicluster/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/cluster/klusterlet"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/object/text"
	"github.com/argosy-io/argosy/internal/core/source/mcs"
	"github.com/argosy-io/argosy/internal/core/source/service"
	"github.com/argosy-io/argosy/internal/member"
)

// clusterSets reconciles the Services that clusters export themselves. The key of a request is the common name of
// Service, ServiceExport and ServiceImport. A ServiceImport of that name on the hub leaves it to policies.
type clusterSets struct {
	*exchanges

	mu sync.Mutex
	// known has the Services that a cluster exports or imports, and derived these by the name of the derived Service,
	// which clusters may export as well.
	known   sets.Set[types.NamespacedName]
	derived map[types.NamespacedName]types.NamespacedName
}

func setupClusterSets(mgr ctrl.Manager, x *exchanges) error {
	r := &clusterSets{exchanges: x, known: sets.New[types.NamespacedName](),
		derived: map[types.NamespacedName]types.NamespacedName{}}
	options := controller.Options{MaxConcurrentReconciles: concurrency,
		RateLimiter: commit.Backoff[reconcile.Request](firstRetry)}
	services := ctrl.NewControllerManagedBy(mgr).Named("clusterset-service").WithOptions(options).
		Watches(&workv1alpha1.Work{}, handler.EnqueueRequestsFromMapFunc(owner(service.ClusterSetOwner)),
			builder.WithPredicates(worked))
	if !x.ClusterSet {
		return services.Complete(r)
	}
	if err := services.
		Watches(&multiclusterv1alpha1.ServiceImport{}, handler.EnqueueRequestsFromMapFunc(itself)).
		Watches(&clusterv1alpha1.Cluster{}, handler.EnqueueRequestsFromMapFunc(func(context.Context,
			client.Object) []reconcile.Request {
			return r.requests("")
		}), builder.WithPredicates(moved)).
		WatchesRawSource(x.endpoints(service.ClusterSetOwner)).
		WatchesRawSource(source.Func(func(_ context.Context,
			q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			x.Members.OnShared(func(cluster string, of types.NamespacedName) {
				for _, req := range r.affected(cluster, of) {
					q.Add(req)
				}
			})
			return nil
		})).
		Complete(r); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).Named("clusterset-member").WithOptions(options).
		For(&clusterv1alpha1.Cluster{}, builder.WithPredicates(joined)).
		WatchesRawSource(source.Func(func(_ context.Context,
			q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			x.Members.OnAnswer(func(cluster string) {
				q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: cluster}})
			})
			return nil
		})).
		Complete(reconcile.Func(r.follow))
}

// follow sends the CRDs of the API to a cluster and starts to watch what it exports and imports. An agent beside a
// klusterlet has no right to do so.
func (r *clusterSets) follow(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	c := &clusterv1alpha1.Cluster{}
	if err := r.client.Get(ctx, req.NamespacedName, c, client.UnsafeDisableDeepCopy); err != nil ||
		klusterlet.Manages(c) {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	m, err := r.Members.Get(req.Name)
	if err != nil {
		return reconcile.Result{}, nil //nolint:nilerr // the next response of the cluster causes a request
	}
	m.FollowClusterSet()
	return outcome(errors.Join(r.define(ctx, multiclusterv1alpha1.ServiceExportKind, req.Name),
		r.define(ctx, multiclusterv1alpha1.ServiceImportKind, req.Name)))
}

// affected returns the Services that a change in a cluster concerns; see Members.OnShared.
func (r *clusterSets) affected(cluster string, of types.NamespacedName) []reconcile.Request {
	m := r.Members.Known(cluster)
	switch {
	case m == nil:
		return nil
	case of.Namespace == "":
		m.Exports(r.know)
		return r.requests("")
	case of.Name == "":
		return r.requests(of.Namespace)
	case m.Shared(of).Export != nil:
		r.know(of)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []reconcile.Request
	if r.known.Has(of) {
		all = append(all, reconcile.Request{NamespacedName: of})
	}
	if key, is := r.derived[of]; is {
		all = append(all, reconcile.Request{NamespacedName: key})
	}
	return all
}

func (r *clusterSets) know(key types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known.Insert(key)
	r.derived[types.NamespacedName{Namespace: key.Namespace, Name: names.DerivedService(key.Name)}] = key
}

func (r *clusterSets) forget(key types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known.Delete(key)
	delete(r.derived, types.NamespacedName{Namespace: key.Namespace, Name: names.DerivedService(key.Name)})
}

// requests returns the known Services of a namespace, or all if it is empty.
func (r *clusterSets) requests(namespace string) (all []reconcile.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key := range r.known {
		if namespace == "" || key.Namespace == namespace {
			all = append(all, reconcile.Request{NamespacedName: key})
		}
	}
	return all
}

// Reconcile sends the ServiceImport, the derived Service and the endpoints to the clusters with the namespace.
func (r *clusterSets) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	return r.result(r.reconcile(ctx, req.NamespacedName))
}

// reconcile also returns the time at which it must run again without an event; zero means never.
func (r *clusterSets) reconcile(ctx context.Context, key types.NamespacedName) (next time.Time, err error) {
	me := service.Owner{Kind: service.ClusterSetOwner, Namespace: key.Namespace, Name: key.Name}
	byPolicy := false
	if r.ClusterSet {
		err := r.client.Get(ctx, key, &multiclusterv1alpha1.ServiceImport{}, client.UnsafeDisableDeepCopy)
		if byPolicy = err == nil; client.IgnoreNotFound(err) != nil {
			return next, fmt.Errorf("get ServiceImport %s: %w", key, err)
		}
	}
	if !r.ClusterSet || byPolicy || names.OfSystem(key.Namespace) {
		return next, r.withdraw(ctx, me)
	}

	// 1. Collect what the clusters say. One that has not responded since the hub started counts as before.
	standing, err := r.worksOf(ctx, me)
	if err != nil {
		return next, err
	}
	clusters, err := r.clusters(ctx)
	if err != nil {
		return next, err
	}
	var exports []mcs.Export
	all, consumers := map[string]member.Shared{}, map[string]service.Consumer{}
	recalled, imported := service.Recalled(standing), service.Imported(standing)
	for _, c := range clusters {
		var s member.Shared
		if m := r.Members.Known(c.Name); m != nil {
			s = m.Shared(key)
		}
		all[c.Name] = s
		if before, was := recalled[c.Name]; s.Export != nil && s.Known {
			exports = append(exports, *s.Export)
		} else if was && !s.Known {
			exports = append(exports, before)
		}
		if s.HasNamespace || !s.NamespaceKnown && imported[c.Name] {
			consumers[c.Name] = service.Consumer{APIVersion: importVersion(c), Derived: s.Derived}
		}
	}
	if len(exports) == 0 {
		r.forget(key)
		return next, r.withdraw(ctx, me)
	}
	r.know(key)

	// 2. Write the Works.
	merged, refused := mcs.Merge(exports), ""
	if merged.Spec == nil {
		err = r.withdraw(ctx, me)
	} else {
		e, stuck, broken := service.ClusterSet(me, exports, merged, consumers, standing)
		if broken != nil {
			return next, broken
		}
		x, broken := r.exchangeEndpoints(ctx, e, e.Consumers)
		if broken != nil {
			return next, broken
		}
		next, err = x.next, x.failed
		lines := service.Refused(x.Decision, x.standing)
		for _, cluster := range stuck {
			lines = append(lines, fmt.Sprintf("cluster %q: Service %s cannot change between headless and not: delete the "+
				"ServiceExports of all clusters, and create them again", cluster, e.Service))
		}
		if why := obstacle(x.failed); why != "" {
			lines = append(lines, why)
		}
		refused = text.Lines(lines, 3)
	}

	// 3. Write the status of the exports and imports.
	errs := []error{err}
	for _, c := range clusters {
		if membership.IsReady(c) {
			errs = append(errs, r.report(ctx, c.Name, key, all[c.Name], merged, refused))
		}
	}
	return next, errors.Join(errs...)
}

// report writes the conditions of a cluster's ServiceExport and the exporting clusters in its ServiceImport.
func (r *clusterSets) report(ctx context.Context, cluster string, of types.NamespacedName, s member.Shared,
	merged mcs.Merged, refused string) error {
	patches := map[schema.GroupKind]any{}
	if s.Export != nil && s.Known {
		conditions, changed := mcs.Changed(*s.Export, merged.Conditions(cluster, refused), metav1.NewTime(r.Clock.Now()))
		if changed {
			patches[multiclusterv1alpha1.ServiceExportKind] = map[string]any{
				"metadata": map[string]any{"resourceVersion": s.Export.Version},
				"status":   map[string]any{"conditions": conditions}}
		}
	}
	if s.Imported && merged.Spec != nil && !slices.Equal(s.From, merged.Exporters) {
		from := []multiclusterv1alpha1.ClusterStatus{}
		for _, name := range merged.Exporters {
			from = append(from, multiclusterv1alpha1.ClusterStatus{Cluster: name})
		}
		patches[multiclusterv1alpha1.ServiceImportKind] = map[string]any{"status": map[string]any{"clusters": from}}
	}
	var errs []error
	m := r.Members.Known(cluster)
	for kind, patch := range patches {
		if m == nil {
			return nil
		}
		if brake, err := m.Brake(ctx, of.Namespace); err != nil || brake != "" {
			return err
		}
		raw, err := json.Marshal(patch)
		if err != nil {
			return fmt.Errorf("write the status of %s %s: %w", kind.Kind, of, err)
		}
		err = m.PatchClusterSetStatus(ctx, kind, of, raw)
		// A change of the object causes a request. An account that may not write the status still exports and imports.
		if !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) && !apierrors.IsForbidden(err) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// importVersion returns the version of ServiceImports in a cluster; empty if it serves none.
func importVersion(c *clusterv1alpha1.Cluster) string {
	for _, version := range importVersions {
		if c.Status.Serves(version, multiclusterv1alpha1.ServiceImportKind.Kind) {
			return version
		}
	}
	return ""
}

// importVersions are the versions of ServiceExports and ServiceImports, newest first.
var importVersions = []string{multiclusterv1alpha1.GroupVersion.Group + "/v1beta1",
	multiclusterv1alpha1.GroupVersion.String()}
