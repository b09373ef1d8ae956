package service

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	networkingv1alpha1 "github.com/argosy-io/argosy/api/networking/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
	"github.com/argosy-io/argosy/internal/core/dispatch"
	"github.com/argosy-io/argosy/internal/filter"
)

// placed selects bindings that were created or deleted, or whose clusters, owner or Scheduled condition changed.
var placed = filter.Changes(func(was, is *workv1alpha2.ResourceBinding) bool {
	return was.UID != is.UID || (was.DeletionTimestamp == nil) != (is.DeletionTimestamp == nil) ||
		!slices.EqualFunc(dispatch.Targets(was), dispatch.Targets(is),
			func(a, b workv1alpha2.TargetCluster) bool { return a.Name == b.Name }) ||
		claimed(was) != claimed(is) || settled(was) != settled(is) ||
		!sameCondition(was.Status.Conditions, is.Status.Conditions, workv1alpha2.Scheduled)
})

// settled reports whether the scheduler has seen the current generation.
func settled(b *workv1alpha2.ResourceBinding) bool {
	return b.Status.SchedulerObservedGeneration >= b.Generation
}

// sameCondition reports whether a condition has the same status and message in two lists.
func sameCondition(was, is []metav1.Condition, kind string) bool {
	a, b := meta.FindStatusCondition(was, kind), meta.FindStatusCondition(is, kind)
	return (a == nil) == (b == nil) && (a == nil || a.Status == b.Status && a.Message == b.Message)
}

// worked selects Works that were created or deleted, or whose content or reported status changed.
var worked = filter.Changes(func(was, is *workv1alpha1.Work) bool {
	return was.UID != is.UID || was.Generation != is.Generation ||
		(was.DeletionTimestamp == nil) != (is.DeletionTimestamp == nil) ||
		!maps.Equal(was.Labels, is.Labels) || !maps.Equal(was.Annotations, is.Annotations) ||
		!sameCondition(was.Status.Conditions, is.Status.Conditions, workv1alpha1.WorkApplied)
})

// restoreAfter is the time after which a status that another program wrote is restored. Two programs that always write
// their own one must not do so without a pause.
const restoreAfter = 10 * time.Second

// diverted selects MultiClusterIngresses whose reported traffic changed. An ingress controller writes the same status,
// and may write back what it read before.
var diverted = filter.Changes(func(was, is *networkingv1alpha1.MultiClusterIngress) bool {
	return !slices.Equal(was.Status.TrafficBlockClusters, is.Status.TrafficBlockClusters) ||
		!sameCondition(was.Status.Conditions, is.Status.Conditions, networkingv1alpha1.TrafficKept)
})

// isLost reports whether traffic leaves a cluster.
func isLost(c *clusterv1alpha1.Cluster) bool {
	_, lost := membership.LostSince(c)
	return lost
}

// statuses returns the status of each condition: Remedies may match any of them.
func statuses(all []metav1.Condition) map[string]metav1.ConditionStatus {
	out := make(map[string]metav1.ConditionStatus, len(all))
	for _, c := range all {
		out[c.Type] = c.Status
	}
	return out
}

// moved selects clusters that join or leave, are lost or found, or whose readiness, conditions or served kinds change.
// At startup everything is reconciled anyway.
var moved = predicate.And[client.Object](filter.AfterStart, filter.Changes(func(was, is *clusterv1alpha1.Cluster) bool {
	return was.UID != is.UID || (was.DeletionTimestamp == nil) != (is.DeletionTimestamp == nil) ||
		isLost(was) != isLost(is) || !maps.Equal(statuses(was.Status.Conditions), statuses(is.Status.Conditions)) ||
		len(was.Status.APIEnablements) != len(is.Status.APIEnablements)
}))

// joined selects clusters that join, and those whose readiness or served kinds change.
var joined = filter.Changes(func(was, is *clusterv1alpha1.Cluster) bool {
	return was.UID != is.UID || len(was.Status.APIEnablements) != len(is.Status.APIEnablements) ||
		membership.IsReady(was) != membership.IsReady(is)
})
