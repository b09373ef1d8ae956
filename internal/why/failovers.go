package why

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/adjust/deschedule"
	"github.com/argosy-io/argosy/internal/core/adjust/failover"
	"github.com/argosy-io/argosy/internal/core/schedule"
	"github.com/argosy-io/argosy/internal/facts"
	"github.com/argosy-io/argosy/internal/scope"
)

// Failovers returns the workloads that should leave a cluster, are leaving it, or have left it recently. It plans like
// the hub. r must know the hub's own types. If room is nil, it uses the resource summaries of the clusters.
func Failovers(
	ctx context.Context, r client.Reader, s Scheduler, room Room, now time.Time,
) ([]failover.Move, error) {
	all, err := clusters(ctx, r)
	if err != nil {
		return nil, err
	}
	bindings, err := scope.Bindings.List(ctx, r)
	if err != nil {
		return nil, fmt.Errorf("list bindings: %w", err)
	}
	return moves(ctx, r, s, room, all, bindings, bindings, now), nil
}

// moves returns the moves of some bindings in the hub's failover plan for all.
func moves(ctx context.Context, r client.Reader, s Scheduler, room Room, fleet []*clusterv1alpha1.Cluster,
	some, all []workv1alpha2.Binding, now time.Time) []failover.Move {
	snapshot, o := s.Snapshot(fleet), cmp.Or(s.Failover, failover.Defaults)
	o.SchedulerName = s.Settings.Scheduler()
	in := facts.FailoverInput(ctx, r, facts.Templates(r), o, deschedule.Clusters{Snapshot: snapshot,
		Decide: func(b workv1alpha2.Binding, decide func(schedule.Capacity) ([]workv1alpha2.TargetCluster, bool)) {
			var known schedule.Capacity
			if room != nil {
				known = room(ctx, b)
			}
			if known == nil {
				known = snapshot.Room(b)
			}
			decide(known)
		}}, fleet, all, nil)
	return failover.Moves(some, failover.Make(in, now), now)
}

// policyIDs are the labels of a binding with the permanent ID of its policy.
var policyIDs = []string{
	policyv1alpha1.PropagationPolicyPermanentIDLabel, policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel}

// related returns the bindings of the affinity groups of a binding, and its moves in the hub's failover plan. Other
// bindings of its policy may leave first.
func related(ctx context.Context, r client.Reader, b workv1alpha2.Binding, fleet []*clusterv1alpha1.Cluster, q Query) (
	peers []workv1alpha2.Binding, leaves []failover.Move, err error) {
	if b == nil || len(fleet) == 0 {
		return nil, nil, nil
	}
	all := []workv1alpha2.Binding{b}
	read := func(opts ...client.ListOption) error {
		some, err := scope.Bindings.List(ctx, r, opts...)
		if err != nil {
			return fmt.Errorf("list the bindings that may move with it: %w", err)
		}
		for _, other := range some {
			if !slices.ContainsFunc(all, func(o workv1alpha2.Binding) bool { return o.GetUID() == other.GetUID() }) {
				all = append(all, other)
			}
		}
		return nil
	}
	if schedule.Grouped(b) {
		if err := read(client.InNamespace(b.GetNamespace())); err != nil {
			return nil, nil, err
		}
		peers = all[1:]
	}
	if failover.MayLeave(b, schedule.NewSnapshot(fleet).Cluster) {
		for _, label := range policyIDs {
			if id := b.GetLabels()[label]; id != "" {
				if err := read(client.MatchingLabels{label: id}); err != nil {
					return nil, nil, err
				}
			}
		}
	}
	of := b.BindingSpec().Resource
	return peers, slices.DeleteFunc(moves(ctx, r, q.Scheduler, q.Room, fleet, all[:1], all, time.Now()),
		func(m failover.Move) bool {
			return m.APIVersion != of.APIVersion || m.Kind != of.Kind || m.Namespace != of.Namespace || m.Name != of.Name
		}), nil
}
