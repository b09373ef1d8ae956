package why

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/deschedule"
	"github.com/argosy-io/argosy/internal/core/failover"
	"github.com/argosy-io/argosy/internal/core/names"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/core/schedule"
	"github.com/argosy-io/argosy/internal/scope"
)

// Failovers returns the workloads that should leave a cluster, are leaving it, or have left it lately. It plans as the hub does, but
// for applications that are unhealthy: only the hub knows since when. r must know the hub's own types; a nil room is what the
// summaries of the clusters say.
func Failovers(ctx context.Context, r client.Reader, s Scheduler, room Room, now time.Time) ([]failover.Move, error) {
	all, err := clusters(ctx, r)
	if err != nil {
		return nil, err
	}
	bindings, err := scope.Bindings.List(ctx, r)
	if err != nil {
		return nil, fmt.Errorf("list bindings: %w", err)
	}
	snapshot := schedule.NewSnapshot(all).With(s.Plugins)
	in := failover.Input{Options: cmp.Or(s.Failover, failover.Defaults), Registered: map[string]bool{}, Bindings: bindings,
		Fleet: deschedule.Fleet{Snapshot: snapshot, Decide: func(b workv1alpha2.Binding, decide func(schedule.Capacity) ([]workv1alpha2.TargetCluster, bool)) {
			var known schedule.Capacity
			if room != nil {
				known = room(ctx, b)
			}
			if known == nil {
				known = snapshot.Room(b)
			}
			decide(known)
		}},
		Facts:   func(b workv1alpha2.Binding) (failover.Facts, error) { return failoverFacts(ctx, r, b) },
		HasWork: func(b workv1alpha2.Binding, cluster string) bool { return hasWork(ctx, r, b, cluster) },
	}
	in.SchedulerName = cmp.Or(s.Name, policyv1alpha1.DefaultSchedulerName)
	for _, c := range all {
		in.Registered[c.Name] = true
	}
	return failover.Moves(bindings, failover.Make(in, now), now), nil
}

// failoverFacts reads the template and the policy of a binding.
func failoverFacts(ctx context.Context, r client.Reader, b workv1alpha2.Binding) (failover.Facts, error) {
	of := b.BindingSpec().Resource
	template := &unstructured.Unstructured{}
	template.SetAPIVersion(of.APIVersion)
	template.SetKind(of.Kind)
	if err := r.Get(ctx, types.NamespacedName{Namespace: of.Namespace, Name: of.Name}, template); err != nil {
		return failover.Facts{}, fmt.Errorf("get the template %s %s: %w", of.Kind, of.Name, err)
	}
	holder, held := propagate.Claimed(b)
	if !held {
		return failover.FactsOf(template, nil), nil
	}
	policy, err := scope.Propagations.Get(ctx, r, holder.NamespacedName)
	if apierrors.IsNotFound(err) {
		return failover.FactsOf(template, nil), nil
	}
	if err != nil {
		return failover.Facts{}, fmt.Errorf("get policy %s: %w", holder.NamespacedName, err)
	}
	return failover.FactsOf(template, policy.GetAnnotations()), nil
}

// hasWork says whether a Work of the binding exists in the cluster; yes where that cannot be read.
func hasWork(ctx context.Context, r client.Reader, b workv1alpha2.Binding, cluster string) bool {
	of := b.BindingSpec().Resource
	name := names.WorkFor(b.GetName(), propagate.GroupKind(of.APIVersion, of.Kind), of.Name, of.Namespace)
	err := r.Get(ctx, types.NamespacedName{Namespace: names.ExecutionSpace(cluster), Name: name}, &workv1alpha1.Work{})
	return !apierrors.IsNotFound(err)
}

// peers are the other bindings of the policy of a binding that should leave a cluster, or is leaving one: they may go first.
func peers(ctx context.Context, r client.Reader, b workv1alpha2.Binding, fleet []*clusterv1alpha1.Cluster) ([]workv1alpha2.Binding, error) {
	if b == nil || !mayLeave(b, fleet) {
		return nil, nil
	}
	var its client.MatchingLabels
	for _, label := range []string{policyv1alpha1.PropagationPolicyPermanentIDLabel, policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel} {
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
	return slices.DeleteFunc(all, func(other workv1alpha2.Binding) bool { return other.GetUID() == b.GetUID() }), nil
}

// mayLeave says whether a binding is leaving a cluster, or is in one with a NoExecute taint.
func mayLeave(b workv1alpha2.Binding, fleet []*clusterv1alpha1.Cluster) bool {
	return len(b.BindingSpec().GracefulEvictionTasks) > 0 || slices.ContainsFunc(fleet, func(c *clusterv1alpha1.Cluster) bool {
		return slices.ContainsFunc(c.Spec.Taints, func(t corev1.Taint) bool { return t.Effect == corev1.TaintEffectNoExecute }) &&
			slices.ContainsFunc(b.BindingSpec().Clusters, func(t workv1alpha2.TargetCluster) bool { return t.Name == c.Name })
	})
}
