// Package agents registers the agents of clusters in Pull mode: it approves and denies their certificate requests and
// keeps their permissions. core/cluster/pull decides both.
package agents

import (
	"context"
	"fmt"
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/cluster/klusterlet"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
	"github.com/argosy-io/argosy/internal/core/cluster/pull"
)

// Setup registers the controllers with the manager.
func Setup(mgr ctrl.Manager) error {
	a := &approver{client: mgr.GetClient(), live: mgr.GetAPIReader(), events: commit.Recorder(mgr, "agent-csr-approver")}
	if err := ctrl.NewControllerManagedBy(mgr).Named("agent-csr-approver").
		For(&certificatesv1.CertificateSigningRequest{}).Complete(a); err != nil {
		return fmt.Errorf("set up the approver of agents' certificate requests: %w", err)
	}
	g := &granter{client: mgr.GetClient(), live: mgr.GetAPIReader()}
	if err := ctrl.NewControllerManagedBy(mgr).Named("agent-permissions").
		For(&clusterv1alpha1.Cluster{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Complete(g); err != nil {
		return fmt.Errorf("set up the controller of agents' permissions: %w", err)
	}
	return nil
}

// granter keeps the permissions of the agent of each cluster in Pull mode, also of one beside a klusterlet, and removes
// those in the name of a cluster in Push mode. The Cluster owns them, so that they end with it. Until then, the agent
// needs them to delete what it created.
type granter struct {
	client client.Client
	// live reads past the cache: roles are read seldom.
	live client.Reader
}

func (g *granter) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	cluster := &clusterv1alpha1.Cluster{}
	if err := g.client.Get(ctx, req.NamespacedName, cluster); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	switch {
	case cluster.DeletionTimestamp != nil:
		return reconcile.Result{}, nil
	case !membership.Pulls(cluster):
		grants := pull.GrantsOf(cluster.Name)
		return reconcile.Result{}, commit.DeleteAll(ctx, g.client, grants.Objects())
	}
	if klusterlet.Manages(cluster) { // another registration of this name may have granted more
		all := pull.GrantsOf(cluster.Name)
		if err := commit.DeleteAll(ctx, g.client, all.InNamespaces()); err != nil {
			return reconcile.Result{}, err
		}
	}
	return reconcile.Result{}, g.grant(ctx, cluster)
}

// grantsFor returns the permissions of the agent of a cluster; nil is one that is being registered.
func grantsFor(name string, cluster *clusterv1alpha1.Cluster) pull.Grants {
	if cluster != nil && klusterlet.Manages(cluster) {
		return pull.TunnelGrantsOf(name)
	}
	return pull.GrantsOf(name)
}

func (g *granter) grant(ctx context.Context, cluster *clusterv1alpha1.Cluster) error {
	want := grantsFor(cluster.Name, cluster)
	role := &rbacv1.ClusterRole{ObjectMeta: want.ClusterRole.ObjectMeta}
	err := g.keep(ctx, cluster, role, func() {
		role.Rules, role.AggregationRule = want.ClusterRole.Rules, nil
		known := slices.ContainsFunc(role.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == cluster.UID })
		// No token registered this Cluster: earlier certificates in its name are not valid. That of a klusterlet exists
		// before its agent is registered.
		if !known && (klusterlet.Manages(cluster) || !pull.Pending(role)) {
			pull.RecordKeys(role, nil)
		}
	})
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: want.ClusterRoleBinding.ObjectMeta}
	if err == nil {
		err = g.keep(ctx, cluster, binding, func() {
			binding.RoleRef, binding.Subjects = want.ClusterRoleBinding.RoleRef, want.ClusterRoleBinding.Subjects
		})
	}
	for i := range want.Roles {
		if err != nil {
			return err
		}
		role := &rbacv1.Role{ObjectMeta: want.Roles[i].ObjectMeta}
		if err = g.keep(ctx, cluster, role, func() { role.Rules = want.Roles[i].Rules }); err != nil {
			return err
		}
		binding := &rbacv1.RoleBinding{ObjectMeta: want.RoleBindings[i].ObjectMeta}
		err = g.keep(ctx, cluster, binding, func() {
			binding.RoleRef, binding.Subjects = want.RoleBindings[i].RoleRef, want.RoleBindings[i].Subjects
		})
	}
	return err
}

// keep creates an object, or updates it if set changes it.
func (g *granter) keep(ctx context.Context, cluster *clusterv1alpha1.Cluster, obj client.Object, set func()) error {
	labels := obj.GetLabels()
	err := g.live.Get(ctx, client.ObjectKeyFromObject(obj), obj)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read %s: %w", commit.Name(obj), err)
	}
	missing := apierrors.IsNotFound(err)
	before := obj.DeepCopyObject()
	obj.SetLabels(labels)
	set()
	if err := controllerutil.SetOwnerReference(cluster, obj, g.client.Scheme()); err != nil {
		return fmt.Errorf("set the owner of %s: %w", commit.Name(obj), err)
	}
	switch {
	case missing:
		err = g.client.Create(ctx, obj)
	case !equality.Semantic.DeepEqual(before, obj):
		err = g.client.Update(ctx, obj)
	default:
		return nil
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", commit.Name(obj), err)
	}
	return nil
}
