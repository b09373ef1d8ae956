package dispatch

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/interpret"
	"github.com/argosy-io/argosy/internal/core/membership"
	"github.com/argosy-io/argosy/internal/core/names"
)

// Purging are those of the existing Works that must be gone before the copies that replace them may start: b is leaving
// their clusters directly.
func Purging(b workv1alpha2.Binding, existing []workv1alpha1.Work) []workv1alpha1.Work {
	left := map[string]bool{}
	for _, cluster := range leftDirectly(b) {
		left[cluster] = true
	}
	if len(left) == 0 {
		return nil
	}
	for _, c := range Targets(b) {
		delete(left, c.Name)
	}
	return filter(b, existing, func(cluster string) bool { return left[cluster] })
}

// LeavesDirectly reports whether b is leaving the cluster directly.
func LeavesDirectly(b workv1alpha2.Binding, cluster string) bool {
	return slices.Contains(leftDirectly(b), cluster)
}

func leftDirectly(b workv1alpha2.Binding) (clusters []string) {
	for _, t := range b.BindingSpec().GracefulEvictionTasks {
		if t.PurgeMode == policyv1alpha1.PurgeModeDirectly {
			clusters = append(clusters, t.FromCluster)
		}
	}
	return clusters
}

// PurgeIsStuck reports whether none of the Works that Purging returns can be deleted now, because their clusters do not
// respond, or because the annotation hands-off keeps them. The binding's copies in other clusters then go on without
// them; see Input.Purging. get returns nil for a cluster that is not there.
func PurgeIsStuck(purging []workv1alpha1.Work, get func(cluster string) *clusterv1alpha1.Cluster) bool {
	for i := range purging {
		if handsOff(&purging[i]) {
			continue
		}
		cluster, err := names.ClusterOf(purging[i].Namespace)
		if err != nil || !membership.Silent(get(cluster)) {
			return false
		}
	}
	return len(purging) > 0
}

// handsOff reports whether the annotation hands-off keeps the hub from changing or deleting the object of w.
func handsOff(w *workv1alpha1.Work) bool {
	return meta.IsStatusConditionTrue(w.Status.Conditions, workv1alpha1.WorkHandsOff)
}

// withoutReplacements returns the input without what replaces copies that are still there: clusters that have no copy
// get none, and no other cluster gets more replicas than it was sent before. Subsets that would grow stay as they are.
func (in Input) withoutReplacements(ctx context.Context, i interpret.Interpreter) Input {
	b := in.Binding.DeepCopyObject().(workv1alpha2.Binding)
	spec := b.BindingSpec()
	divided := divides(spec)
	spec.Clusters = slices.DeleteFunc(spec.Clusters, func(t workv1alpha2.TargetCluster) bool {
		return in.Existing[t.Name] == nil || divided && len(t.Components) > 0 && in.sentTo(ctx, i, t) < t.Replicas
	})
	for c := range spec.Clusters {
		if t := &spec.Clusters[c]; divided {
			t.Replicas = min(t.Replicas, in.sentTo(ctx, i, *t))
		}
	}
	in.Binding = b
	return in
}

// sentTo are the replicas that a cluster was sent; those of the target if the Work does not say.
func (in Input) sentTo(ctx context.Context, i interpret.Interpreter, t workv1alpha2.TargetCluster) int32 {
	m, err := execute.Manifest(in.Existing[t.Name])
	if err != nil {
		return t.Replicas
	}
	n, _, scales, err := i.Replicas(ctx, m)
	if err != nil || !scales {
		return t.Replicas
	}
	return n
}
