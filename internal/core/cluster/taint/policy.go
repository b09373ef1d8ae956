// Package taint decides the taints of a cluster: by ClusterTaintPolicies, and by a user's command.
package taint

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
	"github.com/argosy-io/argosy/internal/core/match"
)

// Step is one change of a cluster's taints by a policy.
type Step struct {
	// Policy is the name of the ClusterTaintPolicy.
	Policy string
	Taint  corev1.Taint
	// Removed is true for a taint that was removed, and false for one that was added.
	Removed bool
}

// String describes the step.
func (s Step) String() string {
	what := "added"
	if s.Removed {
		what = "removed"
	}
	return "policy " + s.Policy + " " + what + " " + s.Taint.ToString()
}

// Apply returns the cluster's taints after the policies, and what each policy changed. Older policies apply first. A
// policy that is being deleted changes nothing, and no policy changes the taints that follow from the condition Ready.
// A NoExecute taint without timeAdded, whoever set it, gets the time now, so that its tolerations end. Policies add
// NoExecute taints only if noExecute permits it, and never for the conditions of a lost cluster; admission rejects
// such policies, but older ones may be stored.
func Apply(
	c *clusterv1alpha1.Cluster, taints []corev1.Taint, policies []policyv1alpha1.ClusterTaintPolicy, noExecute bool,
	now time.Time,
) ([]corev1.Taint, []Step) {
	ordered := slices.SortedFunc(slices.Values(policies), func(a, b policyv1alpha1.ClusterTaintPolicy) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
	taints = slices.Clone(taints)
	var steps []Step
	for i := range ordered {
		p := &ordered[i]
		if p.DeletionTimestamp != nil || !Targets(p, c) {
			continue
		}
		add, remove := matches(p.Spec.AddOnConditions, c), matches(p.Spec.RemoveOnConditions, c)
		if add == remove {
			continue // neither is asked for, or both: then what is there stays
		}
		for _, of := range p.Spec.Taints {
			t := corev1.Taint{Key: of.Key, Value: of.Value, Effect: of.Effect}
			if membership.IsReadinessTaint(t) ||
				add && t.Effect == corev1.TaintEffectNoExecute && (!noExecute || AddsByLoss(p)) {
				continue
			}
			at := slices.IndexFunc(taints, func(has corev1.Taint) bool { return has.MatchTaint(&t) })
			switch {
			case add && at < 0:
				taints = append(taints, t)
				steps = append(steps, Step{Policy: p.Name, Taint: t})
			case remove && at >= 0:
				steps = append(steps, Step{Policy: p.Name, Taint: taints[at], Removed: true})
				taints = slices.Delete(taints, at, at+1)
			}
		}
	}
	for i := range taints {
		if t := &taints[i]; t.Effect == corev1.TaintEffectNoExecute && t.TimeAdded.IsZero() {
			t.TimeAdded = new(metav1.NewTime(now).Rfc3339Copy())
		}
	}
	return taints, steps
}

// Targets reports whether the policy selects the cluster.
func Targets(p *policyv1alpha1.ClusterTaintPolicy, c *clusterv1alpha1.Cluster) bool {
	return p.Spec.TargetClusters == nil || match.Affinity(p.Spec.TargetClusters, c)
}

// Evicts reports whether the policy adds a NoExecute taint to the cluster in its present condition.
func Evicts(p *policyv1alpha1.ClusterTaintPolicy, c *clusterv1alpha1.Cluster) bool {
	return Targets(p, c) && matches(p.Spec.AddOnConditions, c) && !matches(p.Spec.RemoveOnConditions, c) &&
		AddsNoExecute(p)
}

// AddsNoExecute reports whether one of the policy's taints is NoExecute.
func AddsNoExecute(p *policyv1alpha1.ClusterTaintPolicy) bool {
	return slices.ContainsFunc(p.Spec.Taints, func(t policyv1alpha1.Taint) bool {
		return t.Effect == corev1.TaintEffectNoExecute
	})
}

// AddsByLoss reports whether the policy adds its taints by a condition that changes when the hub loses the cluster.
// With NoExecute, such a taint would evict workloads although failover is paused because too many clusters are lost.
func AddsByLoss(p *policyv1alpha1.ClusterTaintPolicy) bool {
	return slices.ContainsFunc(p.Spec.AddOnConditions, func(m policyv1alpha1.MatchCondition) bool {
		return m.ConditionType == clusterv1alpha1.ClusterConditionReady ||
			m.ConditionType == clusterv1alpha1.ClusterConditionFailoverPaused
	})
}

// matches reports whether all conditions match, and there are any. A condition that the cluster does not have matches
// nothing.
func matches(conditions []policyv1alpha1.MatchCondition, c *clusterv1alpha1.Cluster) bool {
	for _, want := range conditions {
		has := meta.FindStatusCondition(c.Status.Conditions, want.ConditionType)
		if has == nil || slices.Contains(want.StatusValues,
			has.Status) != (want.Operator == policyv1alpha1.MatchConditionOpIn) {
			return false
		}
	}
	return len(conditions) > 0
}
