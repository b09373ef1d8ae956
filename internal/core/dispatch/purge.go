package dispatch

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/object/names"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// Purging returns the existing Works that must be deleted before their replacements may start: b is leaving their
// clusters directly. A namespace has none: it starts nothing, and its deletion may wait for objects in it.
func Purging(b workv1alpha2.Binding, existing []workv1alpha1.Work) []workv1alpha1.Work {
	left := purged(b)
	ref := b.BindingSpec().Resource
	if len(left) == 0 || ref.APIVersion == "v1" && ref.Kind == "Namespace" {
		return nil
	}
	return filter(b, existing, func(cluster string) bool { return slices.Contains(left, cluster) })
}

// purged returns the clusters that b is leaving directly and that are no targets.
func purged(b workv1alpha2.Binding) []string {
	targets := Targets(b)
	return slices.DeleteFunc(leftDirectly(b), func(cluster string) bool {
		return workv1alpha2.HasTarget(targets, cluster)
	})
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
		if err != nil || !membership.KnownNotReady(get(cluster)) {
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
	divided := Divides(spec)
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

// sentTo returns the replicas in a cluster's Work; those of the target if the Work has none.
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

// completionsSent replaces the completions of a Job by those that each cluster was sent: members refuse other ones, and
// the copies that are still there run the rest.
func (in Input) completionsSent(completions map[string]int32) {
	for cluster := range completions {
		m, err := execute.Manifest(in.Existing[cluster])
		if err != nil {
			continue
		}
		if n, found, err := unstructured.NestedInt64(m.Object, "spec", "completions"); found && err == nil {
			completions[cluster] = int32(n)
		}
	}
}

// keepRecords adds to a decision without replacements what it must not remove: records, conditions and image pulls that
// may be about the clusters that it leaves out. The first decision after the purge removes what is obsolete.
func (in Input) keepRecords(d *Decision) {
	annotations := in.Binding.GetAnnotations()
	d.Record = cmp.Or(d.Record, annotations[wellknown.OrdinalsAnnotation])
	d.Progress = cmp.Or(d.Progress, annotations[wellknown.RolloutProgressAnnotation])
	d.Routed = cmp.Or(d.Routed, annotations[wellknown.RoutedToAnnotation])
	d.Approved = cmp.Or(d.Approved, annotations[wellknown.ApprovedStageAnnotation])
	d.Conditions = slices.Clip(d.Conditions)
	for _, kind := range fleet.ConditionTypes() {
		recorded := meta.FindStatusCondition(in.Binding.BindingStatus().Conditions, kind)
		if recorded != nil && !slices.ContainsFunc(d.Conditions, func(c fleet.Condition) bool { return c.Type == kind }) {
			d.Conditions = append(d.Conditions, fleet.Condition{Type: kind, Message: recorded.Message})
		}
	}
	targets := Targets(in.Binding)
	for _, cluster := range slices.Sorted(maps.Keys(in.Pulls)) {
		if !workv1alpha2.HasTarget(targets, cluster) {
			d.Pulls = append(d.Pulls, in.Pulls[cluster]...)
		}
	}
}
