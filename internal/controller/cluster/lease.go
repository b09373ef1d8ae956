package cluster

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/cluster/klusterlet"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
	"github.com/argosy-io/argosy/internal/core/object/names"
)

// leases sets the condition Ready of clusters in Pull mode to Unknown when their agents stop reporting. The agents
// write all other statuses.
type leases struct {
	client client.Client
	clock  clock.PassiveClock
	seen   map[string]renewal // for the one worker alone
}

// renewal is the last observed version of a Lease, and when the hub observed it first. The clock of the member does not
// matter.
type renewal struct {
	cluster types.UID
	version string
	since   time.Time
	// reported is true after the hub reported that the agent is silent.
	reported bool
}

func setupLeases(mgr ctrl.Manager, o Options) error {
	l := &leases{client: mgr.GetClient(), clock: o.Clock, seen: map[string]renewal{}}
	err := ctrl.NewControllerManagedBy(mgr).Named("agent-leases").
		For(&clusterv1alpha1.Cluster{}).
		Watches(&coordinationv1.Lease{}, handler.EnqueueRequestsFromMapFunc(clusterOfLease)).
		Complete(l)
	if err != nil {
		return fmt.Errorf("set up the controller of the Leases of agents: %w", err)
	}
	return nil
}

func clusterOfLease(_ context.Context, lease client.Object) []reconcile.Request {
	if lease.GetNamespace() != names.Clusters {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: lease.GetName()}}}
}

func (l *leases) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	cluster := &clusterv1alpha1.Cluster{}
	err := l.client.Get(ctx, req.NamespacedName, cluster)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, err
	}
	if err != nil || !membership.Pulls(cluster) || klusterlet.Manages(cluster) {
		delete(l.seen, req.Name)
		return reconcile.Result{}, nil
	}
	unchanged, duration, err := l.unchanged(ctx, cluster)
	if err != nil {
		return reconcile.Result{}, err
	}
	now := l.clock.Now()
	ready, recheck := membership.AgentReadiness(cluster, unchanged, duration, now)
	if ready == nil {
		return reconcile.Result{RequeueAfter: recheck}, nil
	}
	want := cluster.DeepCopy()
	set(&want.Status, *ready)
	if _, err := commit.Status(ctx, l.client, cluster, want); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	last := l.seen[cluster.Name]
	last.reported = true
	l.seen[cluster.Name] = last
	ctrl.Log.WithName("agents").Info("the agent of a cluster is silent", "cluster", cluster.Name, "reason", ready.Reason)
	return reconcile.Result{}, nil
}

// unchanged returns how long the hub has seen no renewal of the Lease of a cluster, and its duration. A status that an
// agent writes after its silence was reported counts as a renewal, so that an agent that cannot renew the Lease causes
// few writes.
func (l *leases) unchanged(ctx context.Context,
	cluster *clusterv1alpha1.Cluster) (unchanged, duration time.Duration, err error) {
	lease := &coordinationv1.Lease{}
	key := types.NamespacedName{Namespace: names.Clusters, Name: cluster.Name}
	if err := l.client.Get(ctx, key, lease, client.UnsafeDisableDeepCopy); client.IgnoreNotFound(err) != nil {
		return 0, 0, fmt.Errorf("read the Lease of the agent of cluster %q: %w", cluster.Name, err)
	}
	now, last := l.clock.Now(), l.seen[cluster.Name]
	ready := membership.Readiness(cluster)
	answered := last.reported && ready != nil && ready.Status != metav1.ConditionUnknown
	if last.since.IsZero() || last.cluster != cluster.UID || last.version != lease.ResourceVersion || answered {
		last = renewal{cluster: cluster.UID, version: lease.ResourceVersion, since: now}
		l.seen[cluster.Name] = last
	}
	if lease.Spec.LeaseDurationSeconds != nil {
		duration = time.Duration(*lease.Spec.LeaseDurationSeconds) * time.Second
	}
	return now.Sub(last.since), duration, nil
}
