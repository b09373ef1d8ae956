package why

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/adjust/deschedule"
	"github.com/argosy-io/argosy/internal/core/adjust/failover"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/core/schedule"
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
	policies, err := scope.Propagations.List(ctx, r)
	if err != nil {
		return nil, fmt.Errorf("list propagation policies: %w", err)
	}
	annotations := map[types.NamespacedName]map[string]string{}
	for _, p := range policies {
		annotations[client.ObjectKeyFromObject(p)] = p.GetAnnotations()
	}
	snapshot := s.Snapshot(all)
	in := failover.Input{
		Options: cmp.Or(s.Failover, failover.Defaults), Registered: map[string]bool{}, Bindings: bindings,
		Fleet: deschedule.Clusters{Snapshot: snapshot, Decide: func(b workv1alpha2.Binding, decide chooser) {
			var known schedule.Capacity
			if room != nil {
				known = room(ctx, b)
			}
			if known == nil {
				known = snapshot.Room(b)
			}
			decide(known)
		}},
		Facts: func(b workv1alpha2.Binding) (failover.Facts, error) {
			template, err := templateOf(ctx, r, b)
			if err != nil {
				return failover.Facts{}, err
			}
			holder, _ := propagate.Claimed(b)
			return failover.FactsOf(template, annotations[holder.NamespacedName]), nil
		},
		HasWork: func(b workv1alpha2.Binding, cluster string) bool { return hasWork(ctx, r, b, cluster) },
	}
	in.SchedulerName = s.Settings.Scheduler()
	for _, c := range all {
		in.Registered[c.Name] = true
	}
	return failover.Moves(bindings, failover.Make(in, now), now), nil
}

// chooser selects clusters by their room.
type chooser = func(schedule.Capacity) (clusters []workv1alpha2.TargetCluster, ok bool)

// templateOf reads the template of a binding.
func templateOf(ctx context.Context, r client.Reader, b workv1alpha2.Binding) (*unstructured.Unstructured, error) {
	of := b.BindingSpec().Resource
	template := &unstructured.Unstructured{}
	template.SetAPIVersion(of.APIVersion)
	template.SetKind(of.Kind)
	if err := r.Get(ctx, types.NamespacedName{Namespace: of.Namespace, Name: of.Name}, template); err != nil {
		return nil, fmt.Errorf("get the template %s %s: %w", of.Kind, of.Name, err)
	}
	return template, nil
}

// hasWork reports whether a Work of the binding exists in the cluster. It is true if Works cannot be read.
func hasWork(ctx context.Context, r client.Reader, b workv1alpha2.Binding, cluster string) bool {
	work, err := scope.WorkFor(ctx, r, b, cluster)
	return work != nil || err != nil
}

// policyIDs are the labels of a binding with the permanent ID of its policy.
var policyIDs = []string{
	policyv1alpha1.PropagationPolicyPermanentIDLabel, policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel}

// peers returns the other bindings of the policy of a binding that should leave a cluster or is leaving one. They may
// leave first.
func peers(
	ctx context.Context, r client.Reader, b workv1alpha2.Binding, fleet []*clusterv1alpha1.Cluster,
) ([]workv1alpha2.Binding, error) {
	if b == nil || !failover.MayLeave(b, schedule.NewSnapshot(fleet).Cluster) {
		return nil, nil
	}
	var its client.MatchingLabels
	for _, label := range policyIDs {
		if id := b.GetLabels()[label]; id != "" {
			its = client.MatchingLabels{label: id}
		}
	}
	if its == nil {
		return nil, nil
	}
	all, err := scope.Bindings.List(ctx, r, its)
	if apierrors.IsForbidden(err) {
		return nil, nil // the answer does without them
	}
	if err != nil {
		return nil, fmt.Errorf("list the bindings of the policy: %w", err)
	}
	return slices.DeleteFunc(all, func(o workv1alpha2.Binding) bool { return o.GetUID() == b.GetUID() }), nil
}
