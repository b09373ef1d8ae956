// Package addons installs the add-ons of Open Cluster Management in clusters. core/source/ocm/addons decides.
package addons

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	addonv1alpha1 "github.com/argosy-io/argosy/api/ocm/addon/v1alpha1"
	addonv1beta1 "github.com/argosy-io/argosy/api/ocm/addon/v1beta1"
	clusterv1 "github.com/argosy-io/argosy/api/ocm/cluster/v1"
	placementv1beta1 "github.com/argosy-io/argosy/api/ocm/cluster/v1beta1"
	ocmv1 "github.com/argosy-io/argosy/api/ocm/work/v1"
	"github.com/argosy-io/argosy/api/wellknown"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/cluster/klusterlet"
	core "github.com/argosy-io/argosy/internal/core/source/ocm/addons"
	"github.com/argosy-io/argosy/internal/core/source/ocm/rollout"
	"github.com/argosy-io/argosy/internal/definition"
	"github.com/argosy-io/argosy/internal/facts"
	"github.com/argosy-io/argosy/internal/filter"
)

// Options of the controllers.
type Options struct {
	// Definitions are the CRDs of the hub.
	Definitions *definition.Watch
	// Gather is the delay after a change of a ManifestWork or an add-on, to write one status after several changes.
	Gather time.Duration
	// Clock defaults to the real clock.
	Clock clock.PassiveClock
}

// firstRetry is the delay before the first retry after an error, see commit.Backoff.
const firstRetry = 100 * time.Millisecond

// byAddon indexes ManagedClusterAddOns by name, and ManifestWorks by the label of their add-on.
const byAddon = "ocm.addon"

type reconciler struct {
	Options
	client client.Client
	// live reads from the API server where a stale cache would leave objects behind.
	live client.Reader
}

// Setup registers the controllers with the manager.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	o.Clock = cmp.Or(o.Clock, clock.PassiveClock(clock.RealClock{}))
	r := &reconciler{Options: o, client: mgr.GetClient(), live: mgr.GetAPIReader()}
	for _, of := range []struct {
		obj client.Object
		key func(client.Object) string
	}{{&addonv1beta1.ManagedClusterAddOn{}, client.Object.GetName}, {&ocmv1.ManifestWork{}, addonOf}} {
		if err := mgr.GetFieldIndexer().IndexField(ctx, of.obj, byAddon, func(obj client.Object) []string {
			if key := of.key(obj); key != "" {
				return []string{key}
			}
			return nil
		}); err != nil {
			return fmt.Errorf("index objects of add-ons: %w", err)
		}
	}
	named := func(name func(client.Object) string) handler.MapFunc {
		return func(_ context.Context, obj client.Object) []reconcile.Request {
			if name := name(obj); name != "" {
				return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: name}}}
			}
			return nil
		}
	}
	// which enqueues the add-ons that pass.
	which := func(pass func(addon *addonv1beta1.ClusterManagementAddOn, obj client.Object) bool) handler.EventHandler {
		return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, obj client.Object) []reconcile.Request {
			return filter.Listed(ctx, r.client, &addonv1beta1.ClusterManagementAddOnList{}, func(addon client.Object) bool {
				return pass(addon.(*addonv1beta1.ClusterManagementAddOn), obj)
			})
		})
	}
	all := func(*addonv1beta1.ClusterManagementAddOn, client.Object) bool { return true }
	templated := func(addon *addonv1beta1.ClusterManagementAddOn, _ client.Object) bool { return core.Templated(addon) }
	naming := func(namespace, name string) func(addon *addonv1beta1.ClusterManagementAddOn) bool {
		return func(addon *addonv1beta1.ClusterManagementAddOn) bool {
			return slices.ContainsFunc(addon.Spec.InstallStrategy.Placements, func(p addonv1alpha1.PlacementStrategy) bool {
				return p.Namespace == namespace && p.Name == name
			})
		}
	}
	err := ctrl.NewControllerManagedBy(mgr).Named("clustermanagementaddon").
		Watches(&addonv1beta1.ClusterManagementAddOn{}, // managers of add-ons write hashes into its status
			filter.Delayed(o.Gather, named(client.Object.GetName))).
		Watches(&addonv1beta1.ManagedClusterAddOn{}, filter.Delayed(o.Gather, named(client.Object.GetName))).
		Watches(&ocmv1.ManifestWork{}, filter.Delayed(o.Gather, named(addonOf)),
			builder.WithPredicates(filter.AfterStart, reported)).
		Watches(&clusterv1.ManagedCluster{}, which(all), builder.WithPredicates(filter.AfterStart, matters)).
		Watches(&placementv1beta1.Placement{}, which(func(addon *addonv1beta1.ClusterManagementAddOn, p client.Object) bool {
			return naming(p.GetNamespace(), p.GetName())(addon)
		}), builder.WithPredicates(filter.AfterStart, filter.Chosen)).
		Watches(&placementv1beta1.PlacementDecision{}, which(func(addon *addonv1beta1.ClusterManagementAddOn,
			d client.Object) bool {
			return naming(d.GetNamespace(), d.GetLabels()[placementv1beta1.PlacementLabel])(addon)
		}), builder.WithPredicates(filter.AfterStart)).
		Watches(&addonv1alpha1.AddOnTemplate{}, which(templated), builder.WithPredicates(filter.AfterStart,
			filter.Respecified)).
		Watches(&addonv1alpha1.AddOnDeploymentConfig{}, which(templated), builder.WithPredicates(filter.AfterStart,
			filter.Respecified)).
		Watches(&rbacv1.RoleBinding{}, handler.EnqueueRequestsFromMapFunc(named(func(b client.Object) string {
			addon, _, _ := core.ClusterOfBinding(b)
			return addon
		})), builder.WithPredicates(filter.AfterStart)).
		WithOptions(controller.Options{RateLimiter: commit.Backoff[reconcile.Request](firstRetry)}).
		Complete(r)
	if err != nil {
		return err
	}
	if err := ctrl.NewControllerManagedBy(mgr).Named("addon-certificates").
		For(&certificatesv1.CertificateSigningRequest{}).Complete(&signer{r}); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).Named("managedcluster-addons").
		For(&clusterv1.ManagedCluster{}, builder.WithPredicates(matters)).
		Watches(&addonv1beta1.ManagedClusterAddOn{}, handler.EnqueueRequestsFromMapFunc(named(client.Object.GetNamespace))).
		Complete(&health{r})
}

func addonOf(obj client.Object) string { return obj.GetLabels()[clusterv1.AddonNameLabel] }

// reported passes ManifestWorks that are new or gone, changed, or have another status.
var reported = filter.Changes(func(was, is *ocmv1.ManifestWork) bool {
	return was.UID != is.UID || filter.Touched(event.UpdateEvent{ObjectOld: was, ObjectNew: is}) ||
		!equality.Semantic.DeepEqual(was.Status, is.Status)
})

// matters passes clusters that are new, gone or going, are accepted or denied, report or fall silent, or have other
// metadata.
var matters = filter.Changes(func(was, is *clusterv1.ManagedCluster) bool {
	return was.UID != is.UID || !was.DeletionTimestamp.Equal(is.DeletionTimestamp) ||
		was.Spec.HubAcceptsClient != is.Spec.HubAcceptsClient ||
		!equality.Semantic.DeepEqual(core.Silent(was), core.Silent(is)) ||
		!equality.Semantic.DeepEqual(was.Annotations, is.Annotations) || !equality.Semantic.DeepEqual(was.Labels, is.Labels)
})

// Reconcile installs an add-on.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	installed := &addonv1beta1.ManagedClusterAddOnList{}
	if err := r.client.List(ctx, installed, client.MatchingFields{byAddon: req.Name}); err != nil {
		return reconcile.Result{}, fmt.Errorf("list ManagedClusterAddOns %s: %w", req.Name, err)
	}
	var failures []error
	for i := range installed.Items {
		failures = append(failures, r.release(ctx, &installed.Items[i]))
	}
	addon := &addonv1beta1.ClusterManagementAddOn{}
	if err := r.client.Get(ctx, req.NamespacedName, addon); err != nil || addon.DeletionTimestamp != nil {
		return commit.Requeue(0, errors.Join(append(failures, client.IgnoreNotFound(err))...))
	}
	in, err := r.read(ctx, addon, installed.Items)
	if err != nil {
		return reconcile.Result{}, errors.Join(append(failures, err)...)
	}
	decision := core.Decide(in)
	if len(r.Definitions.Broken()) > 0 {
		decision.Deletes = nil // clusters and Placements may be gone with their definitions
	}
	if core.Templated(addon) {
		failures = append(failures, r.bind(ctx, addon.Name, &decision))
	}
	stale, err := r.carryOut(ctx, &decision)
	failures = append(failures, err)
	want := addon.DeepCopy()
	want.Status = decision.Status
	if _, err = commit.Status(ctx, r.client, addon, want); commit.Stale(err) {
		stale, err = true, nil
	}
	if err := errors.Join(append(failures, client.IgnoreNotFound(err))...); err != nil || !stale {
		return reconcile.Result{RequeueAfter: decision.After}, err
	}
	return reconcile.Result{RequeueAfter: commit.SlowRetry}, nil
}

// read returns what a decision depends on.
func (r *reconciler) read(ctx context.Context, addon *addonv1beta1.ClusterManagementAddOn,
	installed []addonv1beta1.ManagedClusterAddOn) (core.Input, error) {
	in := core.Input{Addon: addon, Installed: installed, Now: r.Clock.Now(),
		Placements: map[addonv1alpha1.PlacementRef]rollout.Placement{}, Clusters: map[string]*clusterv1.ManagedCluster{},
		Works: map[string][]ocmv1.ManifestWork{}, Templates: map[string]*addonv1alpha1.AddOnTemplate{},
		Settings: map[addonv1alpha1.ConfigReferent]*addonv1alpha1.AddOnDeploymentConfig{}}
	for _, strategy := range addon.Spec.InstallStrategy.Placements {
		p, err := facts.Placement(ctx, r.client, types.NamespacedName(strategy.PlacementRef))
		if err != nil {
			return in, err
		}
		in.Placements[strategy.PlacementRef] = p
	}
	var clusters clusterv1.ManagedClusterList
	var works ocmv1.ManifestWorkList
	var templates addonv1alpha1.AddOnTemplateList
	var settings addonv1alpha1.AddOnDeploymentConfigList
	for _, err := range []error{
		r.client.List(ctx, &clusters, client.UnsafeDisableDeepCopy),
		r.client.List(ctx, &works, client.MatchingFields{byAddon: addon.Name}, client.UnsafeDisableDeepCopy),
		r.client.List(ctx, &templates, client.UnsafeDisableDeepCopy),
		r.client.List(ctx, &settings, client.UnsafeDisableDeepCopy),
	} {
		if err != nil {
			return in, fmt.Errorf("list what ClusterManagementAddOn %s depends on: %w", addon.Name, err)
		}
	}
	for i := range clusters.Items {
		in.Clusters[clusters.Items[i].Name] = &clusters.Items[i]
	}
	for _, mw := range works.Items {
		cluster := cmp.Or(mw.Labels[addonv1alpha1.AddonNamespaceLabel], mw.Namespace)
		in.Works[cluster] = append(in.Works[cluster], mw)
	}
	for i := range templates.Items {
		in.Templates[templates.Items[i].Name] = &templates.Items[i]
	}
	for i := range settings.Items {
		of := &settings.Items[i]
		in.Settings[addonv1alpha1.ConfigReferent{Namespace: of.Namespace, Name: of.Name}] = of
	}
	return in, nil
}

// carryOut writes what was decided. An error for one cluster does not block the others, and is in the status of its
// add-on. stale reports that the cache was behind.
func (r *reconciler) carryOut(ctx context.Context, d *core.Decision) (stale bool, err error) {
	var failures []error
	failed := func(of client.Object, err error) {
		switch {
		case err == nil:
		case commit.Stale(err), commit.Absent(err):
			stale = true
		default:
			failures = append(failures, fmt.Errorf("write %s: %w", commit.Name(of), err))
		}
	}
	for _, addon := range d.Deletes {
		failed(addon, commit.Delete(ctx, r.client, addon))
	}
	for _, addon := range d.Creates {
		// Clusters without a klusterlet may have no namespace. That an add-on exists already is an event.
		failed(addon, commit.CreateInNamespace(ctx, r.client, addon, klusterlet.NamespaceOf(addon.Namespace)))
	}
	for _, work := range d.Works {
		err := error(nil)
		if work.Was == nil {
			err = r.client.Create(ctx, work.Want)
		} else {
			_, err = commit.Update(ctx, r.client, work.Was, work.Want)
		}
		if apierrors.IsAlreadyExists(err) {
			err = r.foreign(ctx, work.Want)
		}
		if err != nil && !commit.Stale(err) {
			d.Fail(work.Want.Namespace, false, err, r.Clock.Now())
		}
		failed(work.Want, err)
	}
	for _, change := range d.Changes {
		want := change.Want.DeepCopy()
		want.Status = change.Was.Status
		if _, err := commit.Update(ctx, r.client, change.Was, want); err != nil {
			failed(want, err)
			continue
		}
		want.Status = change.Want.Status
		was := change.Was.DeepCopy()
		was.ResourceVersion = want.ResourceVersion
		_, err := commit.Status(ctx, r.client, was, want)
		failed(want, err)
	}
	return stale, errors.Join(failures...)
}

// foreign returns an error if an object that exists already is not that of the add-on; otherwise the cache is behind.
func (r *reconciler) foreign(ctx context.Context, want client.Object) error {
	is := want.DeepCopyObject().(client.Object)
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(want), is); err != nil {
		return client.IgnoreNotFound(err)
	}
	if addonOf(is) != addonOf(want) {
		return errors.New("it exists, and is not of this add-on: rename or delete it")
	}
	return nil
}

// bind writes the RoleBindings of the agents of an add-on, and deletes others of it. Those of a cluster whose
// configuration waits or has a mistake stay.
func (r *reconciler) bind(ctx context.Context, addon string, d *core.Decision) error {
	var list rbacv1.RoleBindingList
	if err := r.client.List(ctx, &list, client.HasLabels{core.TemplateLabel},
		client.MatchingLabels{clusterv1.AddonNameLabel: addon}); err != nil {
		return fmt.Errorf("list the RoleBindings of add-on %s: %w", addon, err)
	}
	is := map[types.NamespacedName]*rbacv1.RoleBinding{}
	for i := range list.Items {
		is[client.ObjectKeyFromObject(&list.Items[i])] = &list.Items[i]
	}
	var failures []error
	for _, want := range d.Bindings {
		key, err := client.ObjectKeyFromObject(want), error(nil)
		if was := is[key]; was == nil {
			if err = r.client.Create(ctx, want); apierrors.IsAlreadyExists(err) {
				err = r.foreign(ctx, want)
			}
		} else {
			changed := was.DeepCopy()
			changed.Subjects, changed.RoleRef = want.Subjects, want.RoleRef // a role that others changed is an error
			_, err = commit.Update(ctx, r.client, was, changed)
		}
		delete(is, key)
		if _, cluster, _ := core.ClusterOfBinding(want); err != nil && !commit.Stale(err) {
			d.Fail(cluster, true, err, r.Clock.Now())
			failures = append(failures, fmt.Errorf("write RoleBinding %s: %w", key, err))
		}
	}
	if len(r.Definitions.Broken()) > 0 {
		return errors.Join(failures...)
	}
	for _, b := range is {
		if _, cluster, ok := core.ClusterOfBinding(b); ok && !slices.Contains(d.Kept, cluster) {
			failures = append(failures, commit.Delete(ctx, r.client, b))
		}
	}
	return errors.Join(failures...)
}

// release deletes what the hub installed for an add-on that is being deleted, and lets it go. What is in the cluster
// stays if the add-on goes with a definition.
func (r *reconciler) release(ctx context.Context, addon *addonv1beta1.ManagedClusterAddOn) error {
	if addon.DeletionTimestamp == nil || !controllerutil.ContainsFinalizer(addon, wellknown.AddonFinalizer) {
		return nil
	}
	went, err := r.Definitions.WentNow(ctx, definition.ManagedClusterAddOns, addon)
	if err == nil && !went { // it is deleted with its ClusterManagementAddOn
		went, err = r.Definitions.WentNow(ctx, definition.ClusterManagementAddOns, addon)
	}
	if err != nil {
		return err
	}
	if went {
		return commit.RemoveFinalizer(ctx, r.client, addon, wellknown.AddonFinalizer)
	}
	mw, mc := &ocmv1.ManifestWork{}, &clusterv1.ManagedCluster{}
	err = r.live.Get(ctx, types.NamespacedName{Namespace: addon.Namespace, Name: core.WorkName(addon.Name)}, mw)
	if err == nil && addonOf(mw) == addon.Name {
		if err := r.client.Get(ctx, types.NamespacedName{Name: addon.Namespace}, mc); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("read ManagedCluster %s: %w", addon.Namespace, err)
		}
		if mw.DeletionTimestamp == nil && !klusterlet.GivenUp(mw) &&
			mc.Annotations[wellknown.ForceRemovalAnnotation] != "true" {
			return nil // it must know first what stays; its report is an event
		}
		err = commit.Delete(ctx, r.client, mw)
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete the ManifestWork of add-on %s in cluster %q: %w", addon.Name, addon.Namespace, err)
	}
	var list rbacv1.RoleBindingList
	if err := r.live.List(ctx, &list, client.MatchingLabels{clusterv1.AddonNameLabel: addon.Name,
		clusterv1.ClusterNameLabel: addon.Namespace}); err != nil {
		return fmt.Errorf("list the RoleBindings of add-on %s: %w", addon.Name, err)
	}
	for i := range list.Items {
		if err := commit.Delete(ctx, r.client, &list.Items[i]); err != nil {
			return err
		}
	}
	return commit.RemoveFinalizer(ctx, r.client, addon, wellknown.AddonFinalizer)
}
