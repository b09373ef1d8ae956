package dispatch

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/propagate"
	"github.com/argosy-io/argosy/internal/core/schedule"
)

// Lacking says what a SidecarSet lacks to be in force in a cluster that it goes to, by its Work there, nil for none;
// empty for nothing, and for what no waiting gives it: it was refused, is held back by its users, is going, or was
// applied for longer than patience without anybody in the cluster taking note. Pods are injected into when they are
// made, so that workloads wait for it.
func Lacking(sidecars *workv1alpha1.Work, now time.Time, patience time.Duration) string {
	if lacks := Pending(sidecars); lacks != "" || stays(sidecars) {
		return lacks
	}
	applied := meta.FindStatusCondition(sidecars.Status.Conditions, workv1alpha1.WorkApplied)
	if applied == nil || applied.Status != metav1.ConditionTrue || now.Sub(applied.LastTransitionTime.Time) >= patience {
		return ""
	}
	for _, m := range sidecars.Status.ManifestStatuses {
		var status struct {
			ObservedGeneration int64 `json:"observedGeneration"`
		}
		if m.Status != nil && json.Unmarshal(m.Status.Raw, &status) == nil && status.ObservedGeneration > 0 {
			return ""
		}
	}
	return "has not been observed by OpenKruise there yet"
}

// Pending says what keeps an object from being in a cluster that it goes to, by its Work there, nil for none; empty if
// it is there, and where no waiting brings it: it was refused, is held back by its users, or is going.
func Pending(work *workv1alpha1.Work) string {
	switch {
	case work == nil:
		return "has not been dispatched there yet"
	case stays(work):
		return ""
	case meta.FindStatusCondition(work.Status.Conditions, workv1alpha1.WorkApplied) == nil:
		return "has not been applied there yet"
	}
	return ""
}

// stays returns whether nothing more is sent of a Work: it is going, or held back by its users.
func stays(work *workv1alpha1.Work) bool {
	return work.DeletionTimestamp != nil || work.Spec.SuspendDispatching != nil && *work.Spec.SuspendDispatching
}

// Coming returns whether a SidecarSet that a policy holds is about to go to a cluster, by its binding, nil as long as
// none is made: it goes there by now, or does when the scheduler of that name has looked at the binding and at the
// fleet as they are, or it follows the workload, which was evicted from a cluster that the SidecarSet has still to
// leave.
func Coming(b, workload workv1alpha2.Binding, cluster string, fleet schedule.Snapshot, scheduler string) bool {
	if b == nil {
		return true
	}
	in := func(targets []workv1alpha2.TargetCluster) bool {
		return workv1alpha2.HasTarget(targets, cluster)
	}
	switch {
	case b.GetDeletionTimestamp() != nil:
		return false
	case in(Targets(b)) || follows(b, workload):
		return true
	case !schedule.PlacedBy(b, scheduler):
		return false // nobody here knows
	}
	if _, due := schedule.Due(b, fleet); !due {
		return false
	}
	// It has no replicas, so that room does not matter.
	result, err := schedule.Schedule(b, fleet, nil)
	return err == nil && in(result.Clusters)
}

// follows returns whether configuration is about to move with a workload: both are bound by one policy, and the
// workload was evicted from a cluster that the configuration goes to.
func follows(b, workload workv1alpha2.Binding) bool {
	holder, claimed := propagate.Claimed(b)
	if other, ok := propagate.Claimed(workload); !claimed || !ok || holder != other {
		return false
	}
	targets := Targets(b)
	return slices.ContainsFunc(workload.BindingSpec().GracefulEvictionTasks,
		func(task workv1alpha2.GracefulEvictionTask) bool {
			return workv1alpha2.HasTarget(targets, task.FromCluster)
		})
}

// Awaited returns a line of the message of the condition SidecarsInForce: the workload waits in a cluster for what a
// SidecarSet lacks, for patience at most.
func Awaited(cluster, lacking string, patience time.Duration) string {
	return fmt.Sprintf("%s%s; the workload is dispatched when it is in effect, or %s after it was due",
		lineOf(cluster), lacking, patience)
}

// lineOf returns the beginning of a line about a cluster in the message of a condition.
func lineOf(cluster string) string { return fmt.Sprintf("cluster %q: ", cluster) }
