package klusterlet

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	clusterv1 "github.com/argosy-io/argosy/api/ocm/cluster/v1"
	"github.com/argosy-io/argosy/internal/commit"
	core "github.com/argosy-io/argosy/internal/core/cluster/klusterlet"
	"github.com/argosy-io/argosy/internal/definition"
)

// pairer keeps the Cluster and the ManagedCluster of a cluster alike. The one that was registered is the source of the
// other, which the hub writes.
type pairer struct{ base }

func (p *pairer) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	c, mc := &clusterv1alpha1.Cluster{}, &clusterv1.ManagedCluster{}
	if err := p.client.Get(ctx, req.NamespacedName, c); apierrors.IsNotFound(err) {
		c = nil
	} else if err != nil {
		return reconcile.Result{}, err
	}
	if err := p.client.Get(ctx, req.NamespacedName, mc); apierrors.IsNotFound(err) {
		mc = nil
	} else if err != nil {
		return reconcile.Result{}, err
	}
	switch {
	case c != nil && core.Manages(c):
		return reconcile.Result{}, p.follow(ctx, mc, c)
	case c != nil && c.DeletionTimestamp == nil:
		if mc != nil && mc.DeletionTimestamp != nil {
			return reconcile.Result{}, nil // when it is gone, the hub writes another one
		}
		return reconcile.Result{}, p.write(ctx, object(mc), core.ManagedFrom(c, mc, p.Clock.Now()))
	case mc == nil:
		return reconcile.Result{}, nil
	case core.Derived(mc):
		return reconcile.Result{}, p.drop(ctx, mc)
	case c == nil && mc.Spec.HubAcceptsClient && mc.DeletionTimestamp == nil:
		return reconcile.Result{}, p.write(ctx, nil, core.ClusterFrom(mc, nil, p.Clock.Now()))
	}
	return reconcile.Result{}, nil
}

// follow writes a Cluster from its ManagedCluster, and deletes it when that is being deleted. If the ManagedCluster is
// missing, no user asked for a deletion, and the Cluster stays.
func (p *pairer) follow(ctx context.Context, mc *clusterv1.ManagedCluster, c *clusterv1alpha1.Cluster) error {
	switch {
	case c.DeletionTimestamp != nil:
		return nil
	case mc == nil:
		return p.orphan(ctx, c)
	case mc.DeletionTimestamp != nil:
		if went, err := p.Definitions.WentNow(ctx, definition.ManagedClusters, mc); err != nil || went {
			return err // it is deleted with its CRD
		}
		return commit.Delete(ctx, p.client, c)
	}
	asked, err := p.kindsWork(ctx, c.Name)
	if err != nil {
		return err
	}
	want := core.ClusterFrom(mc, c, p.Clock.Now())
	p.setKinds(want, asked)
	return p.write(ctx, c, want)
}

// orphan reports that the ManagedCluster of a Cluster is missing, unless the cache is behind.
func (p *pairer) orphan(ctx context.Context, c *clusterv1alpha1.Cluster) error {
	if err := p.live.Get(ctx, client.ObjectKeyFromObject(c), &clusterv1.ManagedCluster{}); !commit.Absent(err) {
		return err
	}
	want := c.DeepCopy()
	core.SetMissing(want, p.Clock.Now())
	_, err := commit.Status(ctx, p.client, c, want)
	return client.IgnoreNotFound(err)
}

// drop deletes the ManagedCluster that the hub wrote from a Cluster, when that leaves or is gone.
func (p *pairer) drop(ctx context.Context, mc *clusterv1.ManagedCluster) error {
	if p.Definitions.Going(definition.Clusters) || len(p.Definitions.Broken()) > 0 {
		return nil
	}
	c := &clusterv1alpha1.Cluster{}
	switch err := p.live.Get(ctx, client.ObjectKeyFromObject(mc), c); {
	case err == nil && c.DeletionTimestamp == nil:
		return nil // the cache is behind
	case err != nil && !commit.Absent(err):
		return fmt.Errorf("read cluster %q: %w", mc.Name, err)
	}
	return commit.Delete(ctx, p.client, mc)
}

// object is nil for a nil ManagedCluster.
func object(mc *clusterv1.ManagedCluster) client.Object {
	if mc == nil {
		return nil
	}
	return mc
}

// write creates want, or writes what differs from was: the object first, then its status.
func (p *pairer) write(ctx context.Context, was, want client.Object) error {
	status := want.DeepCopyObject().(client.Object)
	if was == nil {
		if err := p.client.Create(ctx, want); err != nil {
			if apierrors.IsAlreadyExists(err) {
				return nil // its creation causes an event
			}
			return fmt.Errorf("create %s: %w", commit.Name(want), err)
		}
		was = want
	}
	wrote, refused := commit.Update(ctx, p.client, was, withStatusOf(want, was))
	if wrote || refused != nil && !apierrors.IsInvalid(refused) {
		return client.IgnoreNotFound(refused) // the write causes an event
	}
	// What the hub cannot write does not hide that the cluster is lost.
	status.SetResourceVersion(was.GetResourceVersion())
	status.SetUID(was.GetUID())
	_, err := commit.Status(ctx, p.client, was, status)
	return errors.Join(refused, client.IgnoreNotFound(err))
}

// withStatusOf returns want with the status of was, for a write of the rest.
func withStatusOf(want, was client.Object) client.Object {
	switch w := want.DeepCopyObject().(type) {
	case *clusterv1alpha1.Cluster:
		w.Status = *was.(*clusterv1alpha1.Cluster).Status.DeepCopy()
		return w
	case *clusterv1.ManagedCluster:
		w.Status = *was.(*clusterv1.ManagedCluster).Status.DeepCopy()
		return w
	}
	return want
}
