package service

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/dispatch"
	"github.com/argosy-io/argosy/internal/core/membership"
	"github.com/argosy-io/argosy/internal/filter"
)

// placed passes bindings that are new, gone, or go to other clusters or are another's than before, or of which the
// scheduler says something else.
var placed = filter.Changes(func(was, is *workv1alpha2.ResourceBinding) bool {
	return was.UID != is.UID || (was.DeletionTimestamp == nil) != (is.DeletionTimestamp == nil) ||
		!slices.EqualFunc(dispatch.Targets(was), dispatch.Targets(is),
			func(a, b workv1alpha2.TargetCluster) bool { return a.Name == b.Name }) ||
		claimed(was) != claimed(is) || scheduled(was) != scheduled(is)
})

// scheduled is what the scheduler says of a binding, and whether of the binding as it is.
func scheduled(b *workv1alpha2.ResourceBinding) (s struct {
	settled bool
	status  metav1.ConditionStatus
	message string
}) {
	s.settled = b.Status.SchedulerObservedGeneration >= b.Generation
	if c := meta.FindStatusCondition(b.Status.Conditions, workv1alpha2.Scheduled); c != nil {
		s.status, s.message = c.Status, c.Message
	}
	return s
}

// worked passes Works that are new, gone, no longer what was written, or of which the cluster says something else.
var worked = filter.Changes(func(was, is *workv1alpha1.Work) bool {
	return was.UID != is.UID || was.Generation != is.Generation ||
		(was.DeletionTimestamp == nil) != (is.DeletionTimestamp == nil) ||
		!maps.Equal(was.Labels, is.Labels) || !maps.Equal(was.Annotations, is.Annotations) || said(was) != said(is)
})

// said is what the cluster says of a Work.
func said(w *workv1alpha1.Work) (s struct {
	status  metav1.ConditionStatus
	message string
}) {
	if c := meta.FindStatusCondition(w.Status.Conditions, workv1alpha1.WorkApplied); c != nil {
		s.status, s.message = c.Status, c.Message
	}
	return s
}

// moved passes clusters that join, leave, become or cease to be ready, get or lose a loss taint, or serve other kinds
// than before. A start reconciles everything anyway.
var moved = predicate.And[client.Object](filter.AfterStart, filter.Changes(func(was, is *clusterv1alpha1.Cluster) bool {
	return was.UID != is.UID || (was.DeletionTimestamp == nil) != (is.DeletionTimestamp == nil) ||
		membership.IsReady(was) != membership.IsReady(is) ||
		slices.ContainsFunc(was.Spec.Taints, membership.IsLossTaint) != slices.ContainsFunc(is.Spec.Taints,
			membership.IsLossTaint) ||
		len(was.Status.APIEnablements) != len(is.Status.APIEnablements)
}))
