package schedule

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

// Affects reports whether a change of a cluster may concern a binding, so that Due must be checked. old is nil for a
// new cluster, and now for a removed one. It may return true without need, but never false wrongly:
//
//	divided and scheduled       a target leaves, or stops or starts to match the affinity
//	duplicated, not a workload  the cluster starts or stops to fit: labels, fields, taints, kinds served
//	spread over groups          the cluster goes into another group, or no replicas, and its static weight changes
//	not scheduled               the same, and a change of the served versions that can express the template, or of the
//	                            reason for a rejection; with division by capacity, also more free capacity
func Affects(b workv1alpha2.Binding, old, now *clusterv1alpha1.Cluster, plugins Plugins) bool {
	spec := b.BindingSpec()
	was, is := seen(old), seen(now)
	if spec.Placement == nil || was == nil && is == nil {
		return false
	}
	name := nameOf(was, is)
	target := workv1alpha2.HasTarget(spec.Clusters, name)
	if target && (was == nil) != (is == nil) {
		return true
	}

	strategy := strategyOf(spec)
	scheduled := meta.IsStatusConditionTrue(b.BindingStatus().Conditions, workv1alpha2.Scheduled) && fits(b)
	if strategy.divided() && scheduled && !target {
		return false
	}
	if PartsOf(b).affected(was, is) {
		return true
	}
	var candidate bool
	for i := range terms(spec.Placement) {
		q := newQuestion(spec, i, plugins)
		answer := q.reject
		if strategy.divided() && scheduled {
			answer = q.rejectByAffinity
		}
		before, after := answerOf(answer, was, target), answerOf(answer, is, target)
		if before != after {
			return true
		}
		candidate = candidate || !after.refuses()
	}
	switch {
	case strategyFor(spec.Placement) == static && (!scheduled || spreads(spec) && besideReplicas(spec)) &&
		staticWeight(spec, was) != staticWeight(spec, is):
		return true
	case !candidate:
		return false
	case !scheduled && versions(b) != nil &&
		otherVersions(schema.FromAPIVersionAndKind(spec.Resource.APIVersion, spec.Resource.Kind).GroupKind(), old, now):
		return true
	case spreads(spec) && regrouped(spec, old, now):
		return true
	}
	return !scheduled && NeedsRoom(b) && gained(old, now)
}

// Urgency orders waiting bindings for slices.SortFunc: by priority, the highest first, then by age, then by name.
func Urgency(a, b workv1alpha2.Binding) int {
	return cmp.Or(
		cmp.Compare(Priority(b), Priority(a)),
		a.GetCreationTimestamp().Compare(b.GetCreationTimestamp().Time),
		strings.Compare(a.GetNamespace(), b.GetNamespace()),
		strings.Compare(a.GetName(), b.GetName()),
	)
}

// Priority returns the value of the binding's priority class; 0 without one.
func Priority(b workv1alpha2.Binding) int32 {
	if p := b.BindingSpec().SchedulePriority; p != nil {
		return p.Priority
	}
	return 0
}

// seen returns a cluster as filters see it; nil if it is not in the fleet or is leaving.
func seen(c *clusterv1alpha1.Cluster) *member {
	if c == nil || c.DeletionTimestamp != nil {
		return nil
	}
	m := briefMember(c)
	return &m
}

func nameOf(was, is *member) string {
	if is != nil {
		return is.cluster.Name
	}
	return was.cluster.Name
}

// answerOf returns the answer for a cluster. A cluster that is not in the fleet gets the same answer as one that does
// not match.
func answerOf(answer func(m *member, target bool) Cause, m *member, target bool) Cause {
	if m == nil {
		return because(ReasonAffinity)
	}
	return answer(m, target)
}

// regrouped reports whether the cluster is in other groups than it was.
func regrouped(spec *workv1alpha2.ResourceBindingSpec, old, now *clusterv1alpha1.Cluster) bool {
	return slices.ContainsFunc(boundsOf(spec.Placement).groupings, func(g grouping) bool {
		return !slices.Equal(slices.Collect(g.groupsOf(old)), slices.Collect(g.groupsOf(now)))
	})
}

// gained reports whether the cluster has more free of any resource, or started or stopped to report its capacity.
func gained(old, now *clusterv1alpha1.Cluster) bool {
	was, is := freeOf(old.Status.ResourceSummary), freeOf(now.Status.ResourceSummary)
	if (was == nil) != (is == nil) {
		return true
	}
	for name, n := range is {
		if n > was[name] {
			return true
		}
	}
	return false
}
