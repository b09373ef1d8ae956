package why

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/adjust/failover"
	"github.com/argosy-io/argosy/internal/core/hub/roles"
	"github.com/argosy-io/argosy/internal/core/schedule"
	"github.com/argosy-io/argosy/internal/facts"
	"github.com/argosy-io/argosy/internal/scope"
)

// Failovers returns the workloads of a namespace, or of all, that should leave a cluster, are leaving it, or have left
// it recently. It plans like the hub, with the bindings that the user may list. Of a namespace, it returns what the
// bindings record if the user may not list clusters, and names that right. r must know the hub's own types. If room is
// nil, it uses the resource summaries of the clusters.
func Failovers(ctx context.Context, r client.Reader, s Scheduler, room Room, namespace string, now time.Time) (
	all []failover.Move, missing []roles.Missing, err error) {
	may := &permitted{Reader: r, strict: true}
	fleet, err := facts.ClusterList(ctx, may)
	if err != nil {
		return nil, nil, err
	}
	lacked, everywhere := len(may.missing), []roles.Missing(nil)
	bindings, err := scope.Bindings.List(ctx, may)
	some := bindings
	if err == nil && namespace != "" {
		if len(may.missing) > lacked {
			everywhere = slices.Clone(may.missing[lacked:])
			may.missing = may.missing[:lacked]
			bindings, err = scope.Bindings.List(ctx, may, client.InNamespace(namespace))
		}
		some = slices.DeleteFunc(slices.Clone(bindings), func(b workv1alpha2.Binding) bool {
			return b.GetNamespace() != namespace
		})
	}
	switch {
	case err != nil:
		return nil, nil, fmt.Errorf("list bindings: %w", err)
	case len(may.missing) > lacked, namespace == "" && lacked > 0:
		return nil, nil, fail(metav1.StatusReasonForbidden, "%s", roles.Needed(may.missing))
	case lacked > 0:
		return failover.Recorded(some, now), may.missing, nil
	}
	return slices.DeleteFunc(moves(ctx, r, s, room, fleet, some, bindings, now), func(m failover.Move) bool {
		return namespace != "" && m.Namespace != namespace
	}), everywhere, nil
}

// moves returns the moves of some bindings in the hub's failover plan for all. Of the others, neither the template nor
// the policy is read, nor are the estimators of the scheduler asked: there may be thousands.
func moves(ctx context.Context, r client.Reader, s Scheduler, room Room, fleet []*clusterv1alpha1.Cluster,
	some, all []workv1alpha2.Binding, now time.Time) []failover.Move {
	snapshot, o := s.Snapshot(fleet), cmp.Or(s.Failover, failover.Defaults)
	o.SchedulerName = s.Settings.Scheduler()
	asked := map[types.UID]bool{}
	for _, b := range some {
		asked[b.GetUID()] = true
	}
	var free schedule.Room
	if room != nil {
		free = reported{snapshot.Summaries(), func(b workv1alpha2.Binding) schedule.Capacity {
			if !asked[b.GetUID()] {
				return nil
			}
			known, _ := room(ctx, b)
			return known
		}, map[string]bool{}}
	}
	in := facts.FailoverInput(ctx, r, facts.Templates(r), o, snapshot, free, fleet, all, nil)
	read := in.Facts
	in.Facts = func(b workv1alpha2.Binding) (failover.Facts, error) {
		if !asked[b.GetUID()] {
			return failover.Facts{}, nil
		}
		return read(b)
	}
	return failover.Moves(some, failover.Make(in, now), now)
}

// reported is the room that the hub reports for a binding, or else the room by the summaries of the clusters. In a
// cluster of which the plan has taken room, the lower of both counts.
type reported struct {
	schedule.Room
	ask   func(workv1alpha2.Binding) schedule.Capacity
	taken map[string]bool
}

func (r reported) Free(b workv1alpha2.Binding) schedule.Capacity {
	known, rest := r.ask(b), r.Room.Free(b)
	if known == nil {
		return rest
	}
	return schedule.Least(known, func(cluster string) (int32, bool) {
		n, counts := rest(cluster)
		return n, counts && r.taken[cluster]
	})
}

func (r reported) Take(b workv1alpha2.Binding, clusters []workv1alpha2.TargetCluster) {
	r.Room.Take(b, clusters)
	for _, t := range clusters {
		r.taken[t.Name] = true
	}
}

// related returns the bindings of the affinity groups of a binding, and its moves in the hub's failover plan. Other
// bindings of its policy may leave first. The answer does without those in namespaces that the user may not read.
func related(ctx context.Context, r client.Reader, b workv1alpha2.Binding, fleet []*clusterv1alpha1.Cluster, q Query) (
	peers []workv1alpha2.Binding, leaves []failover.Move, err error) {
	if b == nil || len(fleet) == 0 {
		return nil, nil, nil
	}
	all, known := []workv1alpha2.Binding{b}, map[types.UID]bool{b.GetUID(): true}
	read := func(opts ...client.ListOption) error {
		some, err := scope.Bindings.List(ctx, r, opts...)
		if err != nil && !apierrors.IsForbidden(err) {
			return fmt.Errorf("list the bindings that may move with it: %w", err)
		}
		for _, other := range some {
			if !known[other.GetUID()] {
				all, known[other.GetUID()] = append(all, other), true
			}
		}
		return nil
	}
	if schedule.Grouped(b) {
		if err := read(client.InNamespace(b.GetNamespace())); err != nil {
			return nil, nil, err
		}
		peers = all[1:len(all):len(all)]
	}
	if failover.MayLeave(b, schedule.NewSnapshot(fleet).Cluster) {
		labels := b.GetLabels()
		if id := labels[policyv1alpha1.PropagationPolicyPermanentIDLabel]; id != "" {
			err = read(client.InNamespace(b.GetNamespace()),
				client.MatchingLabels{policyv1alpha1.PropagationPolicyPermanentIDLabel: id})
		} else if id := labels[policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel]; id != "" {
			err = read(client.MatchingLabels{policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel: id})
		}
		if err != nil {
			return nil, nil, err
		}
	}
	of := b.BindingSpec().Resource
	return peers, slices.DeleteFunc(moves(ctx, r, q.Scheduler, q.Room, fleet, all[:1], all, time.Now()),
		func(m failover.Move) bool {
			return m.APIVersion != of.APIVersion || m.Kind != of.Kind || m.Namespace != of.Namespace || m.Name != of.Name
		}), nil
}
