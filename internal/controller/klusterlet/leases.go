package klusterlet

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "github.com/argosy-io/argosy/api/ocm/cluster/v1"
	"github.com/argosy-io/argosy/internal/commit"
	core "github.com/argosy-io/argosy/internal/core/cluster/klusterlet"
)

// eventUnknown: the klusterlet of a cluster stopped renewing its Lease.
//
//reference:event Warning on ManagedCluster
const eventUnknown = "AvailableUnknown"

// leases creates the Leases that klusterlets renew, reports silent ones, and keeps the taints that follow.
type leases struct {
	base
	seen map[string]renewal // for the one worker alone
}

// renewal is the last observed version of a Lease, and when the hub observed it first, by its own clock. After a start,
// that is the start: a hub that was away does not take its fleet for silent.
type renewal struct {
	cluster types.UID
	renewed metav1.MicroTime
	since   time.Time
}

func (l *leases) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	mc, err := l.managed(ctx, req.Name)
	if err != nil || mc == nil || !controllerutil.ContainsFinalizer(mc, clusterv1.RightsFinalizer) {
		delete(l.seen, req.Name)
		return reconcile.Result{}, err
	}
	lease := &coordinationv1.Lease{}
	key := types.NamespacedName{Namespace: mc.Name, Name: clusterv1.LeaseName}
	switch err := l.client.Get(ctx, key, lease, client.UnsafeDisableDeepCopy); {
	case apierrors.IsNotFound(err):
		lease = nil
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("read the Lease of the klusterlet of cluster %q: %w", mc.Name, err)
	}
	if lease == nil && mc.DeletionTimestamp == nil && mc.Spec.HubAcceptsClient {
		if err := l.client.Create(ctx, core.LeaseOf(mc.Name, l.Clock.Now())); err != nil && !apierrors.IsAlreadyExists(err) {
			return reconcile.Result{}, fmt.Errorf("create the Lease of the klusterlet of cluster %q: %w", mc.Name, err)
		}
		return reconcile.Result{}, nil // it causes an event
	}
	since, renewed := l.lastRenewal(mc, lease)
	silent, next := core.Silent(mc, lease, since, l.Clock.Now())
	if err := l.report(ctx, mc, lease, silent, renewed); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: next}, nil
}

// lastRenewal returns when the hub saw the last renewal, and whether it saw it only now.
func (l *leases) lastRenewal(mc *clusterv1.ManagedCluster,
	lease *coordinationv1.Lease) (since time.Time, renewed bool) {
	last, known := l.seen[mc.Name]
	known = known && last.cluster == mc.UID
	next := renewal{cluster: mc.UID, since: l.Clock.Now()}
	if lease != nil && lease.Spec.RenewTime != nil {
		next.renewed = *lease.Spec.RenewTime
	}
	if known && last.renewed.Equal(&next.renewed) {
		return last.since, false
	}
	l.seen[mc.Name] = next
	return next.since, known
}

// report writes the conditions and the taints that follow from a Lease. The klusterlet reports itself when it is back.
func (l *leases) report(ctx context.Context, mc *clusterv1.ManagedCluster, lease *coordinationv1.Lease, silent,
	renewed bool) error {
	now, want := l.Clock.Now(), mc.DeepCopy()
	if silent {
		meta.SetStatusCondition(&want.Status.Conditions, core.Unavailability(now))
	}
	if lease != nil && (renewed || meta.FindStatusCondition(mc.Status.Conditions, clusterv1.ClockSynced) == nil) {
		meta.SetStatusCondition(&want.Status.Conditions, core.Clock(mc, lease, now))
	}
	wrote, err := commit.Status(ctx, l.client, mc, want)
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	was := meta.FindStatusCondition(mc.Status.Conditions, clusterv1.ClusterAvailable)
	if wrote && silent && (was == nil || was.Status != metav1.ConditionUnknown) {
		l.events.Eventf(mc, corev1.EventTypeWarning, eventUnknown,
			"the klusterlet of cluster %q has stopped renewing its Lease: check that it runs and reaches the hub", mc.Name)
	}
	if wrote || mc.DeletionTimestamp != nil {
		return nil // the write causes an event
	}
	tainted := mc.DeepCopy()
	tainted.Spec.Taints = core.Taints(mc, now)
	_, err = commit.Update(ctx, l.client, mc, tainted)
	return client.IgnoreNotFound(err)
}
