package klusterlet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	addonv1beta1 "github.com/argosy-io/argosy/api/ocm/addon/v1beta1"
	clusterv1 "github.com/argosy-io/argosy/api/ocm/cluster/v1"
	ocmv1 "github.com/argosy-io/argosy/api/ocm/work/v1"
	"github.com/argosy-io/argosy/api/wellknown"
	"github.com/argosy-io/argosy/internal/commit"
	core "github.com/argosy-io/argosy/internal/core/cluster/klusterlet"
	"github.com/argosy-io/argosy/internal/definition"
)

const (
	// eventDenied: the klusterlet of a cluster lost its rights.
	//
	//reference:event Normal on ManagedCluster
	eventDenied = "ManagedClusterDenied"
	// eventCleaned: the add-ons and ManifestWorks of a deleted ManagedCluster are gone.
	//
	//reference:event Normal on ManagedCluster
	eventCleaned = "ResourceCleanupCompleted"
	// eventCleanupFailed: an add-on or a ManifestWork of a deleted ManagedCluster cannot be deleted.
	//
	//reference:event Warning on ManagedCluster
	eventCleanupFailed = "ResourceCleanupFail"
	// eventForced: ManifestWorks of a silent cluster were given up on request, and their objects stay there.
	//
	//reference:event Warning on ManagedCluster
	eventForced = "ManifestWorksGivenUp"
)

// lookAgain is the delay before what remains in the namespace of a cluster is counted again.
const lookAgain = 5 * time.Second

// registrar gives the klusterlet of an accepted cluster its rights, takes them from a denied one, and cleans up after a
// deleted one:
//
//	deleted → its Cluster is gone → its add-ons and ManifestWorks are gone → its rights are gone → finalizers removed
type registrar struct{ base }

func accepted(mc *clusterv1.ManagedCluster) *metav1.Condition {
	return meta.FindStatusCondition(mc.Status.Conditions, clusterv1.HubAccepted)
}

func (r *registrar) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	mc := &clusterv1.ManagedCluster{}
	if err := r.client.Get(ctx, req.NamespacedName, mc); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if core.Derived(mc) {
		// A Push join took its name before it was accepted: what it had goes, its ManifestWorks are the Cluster's.
		if !controllerutil.ContainsFinalizer(mc, clusterv1.RightsFinalizer) {
			return reconcile.Result{}, nil
		}
		return reconcile.Result{}, errors.Join(r.removeRights(ctx, mc), r.release(ctx, mc))
	}
	if mc.DeletionTimestamp != nil {
		return r.leave(ctx, mc)
	}
	if mc.Spec.HubAcceptsClient {
		want := mc.DeepCopy()
		controllerutil.AddFinalizer(want, clusterv1.CleanupFinalizer)
		controllerutil.AddFinalizer(want, clusterv1.RightsFinalizer)
		if wrote, err := commit.Update(ctx, r.client, mc, want); err != nil || wrote {
			return reconcile.Result{}, err // the write causes an event
		}
	} else if had, err := r.hadRights(ctx, mc); err != nil || !had {
		return reconcile.Result{}, err
	}
	waits, failed := r.grant(ctx, mc)
	if waits && failed == nil {
		return reconcile.Result{RequeueAfter: lookAgain}, nil
	}
	wrote, err := r.setCondition(ctx, mc, core.Acceptance(mc, failed, r.Clock.Now()))
	if wrote && failed == nil && !mc.Spec.HubAcceptsClient {
		r.events.Eventf(mc, corev1.EventTypeNormal, eventDenied, "cluster %q is denied by the hub", mc.Name)
	}
	return reconcile.Result{}, errors.Join(err, failed)
}

// hadRights reports whether a cluster was accepted before, or rights of an earlier one with its name are left. Its
// conditions say nothing: the klusterlet writes them.
func (r *registrar) hadRights(ctx context.Context, mc *clusterv1.ManagedCluster) (bool, error) {
	if controllerutil.ContainsFinalizer(mc, clusterv1.RightsFinalizer) {
		return true, nil
	}
	role := core.GrantsOf(mc.Name, false).ClusterRole
	err := r.client.Get(ctx, client.ObjectKeyFromObject(role), role)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("read ClusterRole %s: %w", role.Name, err)
	}
	return err == nil, nil
}

// release removes the finalizers of the hub from a ManagedCluster.
func (r *registrar) release(ctx context.Context, mc *clusterv1.ManagedCluster) error {
	return commit.RemoveFinalizer(ctx, r.client, mc, clusterv1.RightsFinalizer, clusterv1.CleanupFinalizer)
}

// removeRights removes all rights of the klusterlet of a cluster but the one to clean up after ManifestWorks.
func (r *registrar) removeRights(ctx context.Context, mc *clusterv1.ManagedCluster) error {
	grants := core.GrantsOf(mc.Name, true)
	return commit.DeleteAll(ctx, r.client, []client.Object{grants.ClusterRoleBinding, grants.ClusterRole,
		grants.Registration})
}

// grant writes what the klusterlet of an accepted cluster needs, and removes from a denied one what it must not have.
// waits is true while a denied one keeps a right, because ManifestWorks that it must still clean up exist.
func (r *registrar) grant(ctx context.Context, mc *clusterv1.ManagedCluster) (waits bool, err error) {
	c := &clusterv1alpha1.Cluster{}
	switch err := r.client.Get(ctx, types.NamespacedName{Name: mc.Name}, c); {
	case err == nil && !core.Manages(c):
		return false, fmt.Errorf("cluster %q is joined without a klusterlet", mc.Name)
	case client.IgnoreNotFound(err) != nil:
		return false, fmt.Errorf("read cluster %q: %w", mc.Name, err)
	}
	grants := core.GrantsOf(mc.Name, mc.Spec.HubAcceptsClient)
	if mc.Spec.HubAcceptsClient {
		if err := r.keep(ctx, grants.Namespace, func(client.Object) {}); err != nil {
			return false, errors.Join(err, r.freeTerminating(ctx, mc))
		}
		for _, shared := range core.SharedRoles() {
			if err := r.keep(ctx, &shared, setRules(shared.Rules)); err != nil {
				return false, err
			}
		}
	}
	if err := r.keep(ctx, grants.ClusterRole, setRules(grants.ClusterRole.Rules)); err != nil {
		return false, err
	}
	binding := *grants.ClusterRoleBinding
	if err := r.keep(ctx, grants.ClusterRoleBinding, func(obj client.Object) {
		obj.(*rbacv1.ClusterRoleBinding).Subjects = binding.Subjects
	}); err != nil {
		return false, err
	}
	if !mc.Spec.HubAcceptsClient {
		return r.withdraw(ctx, mc)
	}
	for _, binding := range []*rbacv1.RoleBinding{grants.Registration, grants.Work} {
		subjects := binding.Subjects
		if err := r.keep(ctx, binding, func(obj client.Object) {
			obj.(*rbacv1.RoleBinding).Subjects = subjects
		}); err != nil {
			return false, err
		}
	}
	return false, nil
}

func setRules(rules []rbacv1.PolicyRule) func(client.Object) {
	return func(obj client.Object) { obj.(*rbacv1.ClusterRole).Rules = rules }
}

// withdraw removes the rights in the namespace of a cluster. The right on ManifestWorks stays while some exist, so that
// the klusterlet can clean up after those that are deleted.
func (r *registrar) withdraw(ctx context.Context, mc *clusterv1.ManagedCluster) (waits bool, err error) {
	grants := core.GrantsOf(mc.Name, true)
	if err := commit.DeleteAll(ctx, r.client, []client.Object{grants.Registration}); err != nil {
		return false, err
	}
	works, err := r.objectsIn(ctx, &ocmv1.ManifestWorkList{}, mc.Name)
	if err != nil || len(works) > 0 {
		return true, err
	}
	if err := r.freeWork(ctx, mc); err != nil {
		return false, err
	}
	return false, commit.DeleteAll(ctx, r.client, []client.Object{grants.Work})
}

// freeWork removes the finalizer from the right on ManifestWorks.
func (r *registrar) freeWork(ctx context.Context, mc *clusterv1.ManagedCluster) error {
	work := core.GrantsOf(mc.Name, true).Work
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(work), work); err != nil {
		return client.IgnoreNotFound(err)
	}
	return commit.RemoveFinalizer(ctx, r.client, work, ocmv1.ManifestWorkFinalizer)
}

// freeTerminating lets the namespace of a cluster that is being deleted go when it has no ManifestWorks.
func (r *registrar) freeTerminating(ctx context.Context, mc *clusterv1.ManagedCluster) error {
	space := &corev1.Namespace{}
	if err := r.live.Get(ctx, types.NamespacedName{Name: mc.Name}, space); err != nil || space.DeletionTimestamp == nil {
		return client.IgnoreNotFound(err)
	}
	if works, err := r.objectsIn(ctx, &ocmv1.ManifestWorkList{}, mc.Name); err != nil || len(works) > 0 {
		return err
	}
	return r.freeWork(ctx, mc)
}

// keep creates an object or sets back what others changed of it. Labels and finalizers of others stay.
func (r *registrar) keep(ctx context.Context, want client.Object, set func(client.Object)) error {
	current := want.DeepCopyObject().(client.Object)
	err := r.live.Get(ctx, client.ObjectKeyFromObject(want), current)
	if apierrors.IsNotFound(err) {
		set(want)
		if err = r.client.Create(ctx, want); apierrors.IsAlreadyExists(err) {
			return nil // its creation causes an event
		}
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", commit.Name(want), err)
	}
	if current.GetUID() == "" {
		return nil
	}
	if space, ok := current.(*corev1.Namespace); ok && space.DeletionTimestamp != nil {
		return fmt.Errorf("namespace %s is being deleted: the cluster is accepted when it is gone", space.Name)
	}
	before := current.DeepCopyObject()
	labels := current.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	for key, value := range want.GetLabels() {
		labels[key] = value
	}
	current.SetLabels(labels)
	for _, finalizer := range want.GetFinalizers() {
		controllerutil.AddFinalizer(current, finalizer)
	}
	set(current)
	if equality.Semantic.DeepEqual(before, current) {
		return nil
	}
	if err := r.client.Update(ctx, current); err != nil {
		return fmt.Errorf("write %s: %w", commit.Name(want), err)
	}
	return nil
}

// leave cleans up after a ManagedCluster that is being deleted, as far as possible.
func (r *registrar) leave(ctx context.Context, mc *clusterv1.ManagedCluster) (reconcile.Result, error) {
	if went, err := r.Definitions.WentNow(ctx, definition.ManagedClusters, mc); err != nil {
		return reconcile.Result{}, err
	} else if went {
		return reconcile.Result{}, r.release(ctx, mc) // it is deleted with its CRD, not on request: its ManifestWorks stay
	}
	if had, err := r.hadRights(ctx, mc); err != nil || !had {
		return reconcile.Result{}, errors.Join(err, r.release(ctx, mc)) // what is in the namespace of its name is not its own
	}
	if len(r.Definitions.Broken()) > 0 {
		return reconcile.Result{RequeueAfter: lookAgain}, nil
	}
	if !mc.Spec.HubAcceptsClient {
		if _, err := r.grant(ctx, mc); err != nil {
			return reconcile.Result{}, err
		}
	}
	c := &clusterv1alpha1.Cluster{}
	switch err := r.live.Get(ctx, types.NamespacedName{Name: mc.Name}, c); {
	case err == nil && core.Manages(c):
		return reconcile.Result{}, nil // the pairer deletes it; that it is gone causes an event
	case err == nil:
		return reconcile.Result{}, errors.Join(r.removeRights(ctx, mc), r.release(ctx, mc)) // the rest is the Cluster's
	case !commit.Absent(err):
		return reconcile.Result{}, fmt.Errorf("read cluster %q: %w", mc.Name, err)
	}
	if done, err := r.clean(ctx, mc); err != nil || !done {
		return reconcile.Result{RequeueAfter: lookAgain}, err
	}
	if err := r.removeRights(ctx, mc); err != nil {
		return reconcile.Result{}, err
	}
	if waits, err := r.withdraw(ctx, mc); err != nil || waits {
		return reconcile.Result{RequeueAfter: lookAgain}, err
	}
	return reconcile.Result{}, r.release(ctx, mc)
}

// clean deletes the add-ons, then the ManifestWorks of a cluster, and reports whether none is left.
func (r *registrar) clean(ctx context.Context, mc *clusterv1.ManagedCluster) (done bool, err error) {
	for _, of := range []struct {
		plural string
		list   client.ObjectList
	}{{"managedclusteraddons", &addonv1beta1.ManagedClusterAddOnList{}}, {"manifestworks", &ocmv1.ManifestWorkList{}}} {
		objects, err := r.objectsIn(ctx, of.list, mc.Name)
		if err == nil && len(objects) == 0 {
			continue
		}
		pending := 0
		for _, obj := range objects {
			if obj.GetDeletionTimestamp() != nil {
				pending++
			}
		}
		if err == nil {
			err = r.deleteNext(ctx, mc, objects)
		}
		condition := core.Deletion(of.plural, len(objects), pending, mc.Name, err, r.Clock.Now())
		_, wrote := r.setCondition(ctx, mc, condition)
		if err != nil {
			r.events.Event(mc, corev1.EventTypeWarning, eventCleanupFailed, condition.Message)
		}
		return false, errors.Join(err, wrote)
	}
	wrote, err := r.setCondition(ctx, mc, core.Deletion("", 0, 0, mc.Name, nil, r.Clock.Now()))
	if wrote {
		r.events.Eventf(mc, corev1.EventTypeNormal, eventCleaned, "the add-ons and ManifestWorks of cluster %q are gone",
			mc.Name)
	}
	return err == nil && !wrote, err // the write causes an event
}

// deleteNext deletes the objects that are next by their priority. If a user asks for it, it gives up the ManifestWorks
// of a silent cluster.
func (r *registrar) deleteNext(ctx context.Context, mc *clusterv1.ManagedCluster, objects []client.Object) error {
	force := mc.Annotations[wellknown.ForceRemovalAnnotation] == "true" &&
		!meta.IsStatusConditionTrue(mc.Status.Conditions, clusterv1.ClusterAvailable)
	next := slices.DeleteFunc(core.NextDeletions(objects), func(obj client.Object) bool {
		mw, is := obj.(*ocmv1.ManifestWork)
		return is && !force && !core.GivenUp(mw)
	})
	if err := commit.DeleteEach(ctx, r.client, next); err != nil || !force {
		return err
	}
	var failed []error
	for _, obj := range objects {
		if mw, ok := obj.(*ocmv1.ManifestWork); ok && mw.DeletionTimestamp != nil {
			failed = append(failed, commit.RemoveFinalizer(ctx, r.client, mw, ocmv1.ManifestWorkFinalizer))
			r.events.Eventf(mc, corev1.EventTypeWarning, eventForced,
				"ManifestWork %s is given up: its %d objects stay in cluster %q", mw.Name, len(mw.Spec.Workload.Manifests), mc.Name)
		}
	}
	return errors.Join(failed...)
}

// objectsIn returns the objects of a list in a namespace, read past the cache: an object that it misses would stay.
func (r *registrar) objectsIn(ctx context.Context, list client.ObjectList, namespace string) ([]client.Object, error) {
	if err := r.live.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("list what remains of cluster %q: %w", namespace, err)
	}
	var objects []client.Object
	err := meta.EachListItem(list, func(obj runtime.Object) error {
		objects = append(objects, obj.(client.Object))
		return nil
	})
	return objects, err
}
