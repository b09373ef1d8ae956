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

// Lacking returns what a SidecarSet lacks in a cluster before it injects into new pods, by its Work there (nil for
// none). It is empty if it lacks nothing, and if waiting does not help: the Work was rejected, is suspended, is being
// deleted, or was applied longer than timeout ago without a reaction. Workloads wait for their SidecarSets because
// pods are injected into when they are created.
func Lacking(sidecars *workv1alpha1.Work, now time.Time, timeout time.Duration) string {
	if lacks := Pending(sidecars); lacks != "" || stays(sidecars) {
		return lacks
	}
	applied := meta.FindStatusCondition(sidecars.Status.Conditions, workv1alpha1.WorkApplied)
	if applied == nil || applied.Status != metav1.ConditionTrue || now.Sub(applied.LastTransitionTime.Time) >= timeout {
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

// Pending returns why an object is not yet in a cluster, by its Work there (nil for none). It is empty if the object
// is there, and if waiting does not help: the Work was rejected, is suspended, or is being deleted.
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

// stays reports whether a Work is no longer sent: it is being deleted or suspended.
func stays(work *workv1alpha1.Work) bool {
	return work.DeletionTimestamp != nil || work.Spec.SuspendDispatching != nil && *work.Spec.SuspendDispatching
}

// Coming reports whether a SidecarSet that a policy claims will be in a cluster. b is its binding, nil if it does not
// exist yet. It is true if the cluster is a target of b, if the scheduler of that name would now add the cluster, or if
// the SidecarSet follows the workload, which was evicted from another of its clusters.
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
		return false // not known here
	}
	if _, due := schedule.Due(b, fleet); !due {
		return false
	}
	// It has no replicas, so that room does not matter.
	result, err := schedule.Schedule(b, fleet, nil)
	return err == nil && in(result.Clusters)
}

// follows reports whether configuration is about to move with a workload: both are bound by one policy, and the
// workload was evicted from a cluster that the configuration goes to.
func follows(b, workload workv1alpha2.Binding) bool {
	claim, claimed := propagate.Claimed(b)
	if other, ok := propagate.Claimed(workload); !claimed || !ok || claim != other {
		return false
	}
	targets := Targets(b)
	return slices.ContainsFunc(workload.BindingSpec().GracefulEvictionTasks,
		func(task workv1alpha2.GracefulEvictionTask) bool {
			return workv1alpha2.HasTarget(targets, task.FromCluster)
		})
}

// Awaited returns a line of the message of the condition SidecarsInForce: the workload waits in a cluster for its
// SidecarSet, for at most timeout.
func Awaited(cluster, lacking string, timeout time.Duration) string {
	return fmt.Sprintf("%s%s; the workload is dispatched when it is in effect, or %s after it was due",
		lineOf(cluster), lacking, timeout)
}

// lineOf returns the beginning of a line about a cluster in the message of a condition.
func lineOf(cluster string) string { return fmt.Sprintf("cluster %q: ", cluster) }
