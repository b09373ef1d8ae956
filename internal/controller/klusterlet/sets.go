package klusterlet

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "github.com/argosy-io/argosy/api/ocm/cluster/v1"
	setv1beta2 "github.com/argosy-io/argosy/api/ocm/cluster/v1beta2"
	"github.com/argosy-io/argosy/internal/commit"
	core "github.com/argosy-io/argosy/internal/core/cluster/klusterlet"
)

// sizer reports the number of clusters of each set.
type sizer struct{ base }

func (s *sizer) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	set := &setv1beta2.ManagedClusterSet{}
	if err := s.client.Get(ctx, req.NamespacedName, set); err != nil || set.DeletionTimestamp != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	var clusters clusterv1.ManagedClusterList
	if err := s.client.List(ctx, &clusters, client.UnsafeDisableDeepCopy); err != nil {
		return reconcile.Result{}, fmt.Errorf("list ManagedClusters: %w", err)
	}
	selects, err := core.Selector(set)
	if err != nil {
		return reconcile.Result{}, reconcile.TerminalError(err)
	}
	n := 0
	for i := range clusters.Items {
		if selects(&clusters.Items[i]) {
			n++
		}
	}
	want := set.DeepCopy()
	meta.SetStatusCondition(&want.Status.Conditions, core.SetCondition(n, s.Clock.Now()))
	_, err = commit.Status(ctx, s.client, set, want)
	return reconcile.Result{}, client.IgnoreNotFound(err)
}

// namespacer lists in each cluster the namespaces that its sets require.
type namespacer struct{ base }

func (n *namespacer) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	mc, err := n.managed(ctx, req.Name)
	if err != nil || mc == nil || mc.DeletionTimestamp != nil {
		return reconcile.Result{}, err
	}
	var sets setv1beta2.ManagedClusterSetList
	if err := n.client.List(ctx, &sets, client.UnsafeDisableDeepCopy); err != nil {
		return reconcile.Result{}, fmt.Errorf("list ManagedClusterSets: %w", err)
	}
	want := mc.DeepCopy()
	want.Status.ManagedNamespaces = core.ManagedNamespaces(mc, sets.Items)
	_, err = commit.Status(ctx, n.client, mc, want)
	return reconcile.Result{}, client.IgnoreNotFound(err)
}

// binder reports whether the set of a binding exists.
type binder struct{ base }

func (b *binder) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	binding := &setv1beta2.ManagedClusterSetBinding{}
	if err := b.client.Get(ctx, req.NamespacedName, binding); err != nil || binding.DeletionTimestamp != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	err := b.client.Get(ctx, types.NamespacedName{Name: binding.Spec.ClusterSet}, &setv1beta2.ManagedClusterSet{})
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("read ManagedClusterSet %s: %w", binding.Spec.ClusterSet, err)
	}
	want := binding.DeepCopy()
	meta.SetStatusCondition(&want.Status.Conditions, core.Bound(err == nil, b.Clock.Now()))
	_, err = commit.Status(ctx, b.client, binding, want)
	return reconcile.Result{}, client.IgnoreNotFound(err)
}

// keepPeriod is the interval at which the sets default and global are restored.
const keepPeriod = 10 * time.Second

// keeper restores the sets default and global, unless an annotation forbids it.
type keeper struct{ base }

// Start implements manager.Runnable.
func (k *keeper) Start(ctx context.Context) error {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		for _, want := range core.KeptSets() {
			if err := k.keep(ctx, &want); err != nil && ctx.Err() == nil {
				ctrl.Log.WithName("klusterlets").Error(err, "cannot restore a ManagedClusterSet; retrying", "set", want.Name)
			}
		}
	}, keepPeriod)
	return nil
}

func (k *keeper) keep(ctx context.Context, want *setv1beta2.ManagedClusterSet) error {
	current := &setv1beta2.ManagedClusterSet{}
	switch err := k.client.Get(ctx, types.NamespacedName{Name: want.Name}, current); {
	case apierrors.IsNotFound(err):
		return client.IgnoreAlreadyExists(k.client.Create(ctx, want))
	case err != nil:
		return err
	case current.Annotations[clusterv1.AutoUpdateAnnotation] == "false" || current.DeletionTimestamp != nil ||
		equality.Semantic.DeepEqual(current.Spec.ClusterSelector, want.Spec.ClusterSelector):
		return nil
	}
	restored := current.DeepCopy()
	restored.Spec.ClusterSelector = want.Spec.ClusterSelector
	_, err := commit.Update(ctx, k.client, current, restored)
	return err
}
