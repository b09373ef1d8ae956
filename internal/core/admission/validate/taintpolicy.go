package validate

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
	"github.com/argosy-io/argosy/internal/core/cluster/taint"
)

// ClusterTaintPolicy validates a policy. noExecute reports whether its taints may have that effect.
func ClusterTaintPolicy(p *policyv1alpha1.ClusterTaintPolicy, noExecute bool) field.ErrorList {
	path := field.NewPath("spec")
	var errs field.ErrorList
	if p.Spec.TargetClusters != nil {
		errs = append(errs, clusterAffinity(p.Spec.TargetClusters, path.Child("targetClusters"))...)
	}
	errs = append(errs, matchConditions(p.Spec.AddOnConditions, path.Child("addOnConditions"))...)
	errs = append(errs, matchConditions(p.Spec.RemoveOnConditions, path.Child("removeOnConditions"))...)
	list := make([]corev1.Taint, len(p.Spec.Taints))
	for i, t := range p.Spec.Taints {
		list[i] = corev1.Taint{Key: t.Key, Value: t.Value, Effect: t.Effect}
		at := path.Child("taints").Index(i)
		switch {
		case membership.IsReadinessTaint(list[i]):
			errs = append(errs, field.Forbidden(at,
				fmt.Sprintf("the hub sets and removes the taint %s by the cluster's condition Ready", list[i].ToString())))
		case t.Effect == corev1.TaintEffectNoExecute && !noExecute:
			errs = append(errs, field.Forbidden(at.Child("effect"),
				"a NoExecute taint moves workloads out of every cluster that the policy taints; start the hub with --allow-no-execute-taint-policy to permit it, or use NoSchedule"))
		case t.Effect == corev1.TaintEffectNoExecute && taint.AddsByLoss(p):
			errs = append(errs, field.Forbidden(at.Child("effect"),
				"a NoExecute taint must not follow from the condition Ready or FailoverPaused, "+
					"because it would move workloads also while failover is paused; use NoSchedule, since failover moves workloads out of lost clusters"))
		}
	}
	return append(errs, taints(list, path.Child("taints"))...)
}

func matchConditions(list []policyv1alpha1.MatchCondition, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, m := range list {
		at := path.Index(i)
		errs = append(errs, required(at.Child("conditionType"), m.ConditionType,
			"name a condition of the cluster, such as Ready")...)
		errs = append(errs, supported(at.Child("operator"), m.Operator, policyv1alpha1.MatchConditionOpIn,
			policyv1alpha1.MatchConditionOpNotIn)...)
		if len(m.StatusValues) == 0 {
			errs = append(errs, field.Required(at.Child("statusValues"), "name at least one of True, False and Unknown"))
		}
		for j, s := range m.StatusValues {
			errs = append(errs, supported(at.Child("statusValues").Index(j), s, metav1.ConditionTrue, metav1.ConditionFalse,
				metav1.ConditionUnknown)...)
		}
	}
	return errs
}

// ClusterTaintPolicyAdvice returns warnings for the author of a valid policy; clusters are the fleet.
func ClusterTaintPolicyAdvice(p *policyv1alpha1.ClusterTaintPolicy,
	clusters []*clusterv1alpha1.Cluster) (advice []string) {
	if len(p.Spec.AddOnConditions)+len(p.Spec.RemoveOnConditions) == 0 {
		return []string{"spec: without addOnConditions and removeOnConditions the policy neither adds nor removes taints"}
	}
	spared := func(affects func(*policyv1alpha1.ClusterTaintPolicy, *clusterv1alpha1.Cluster) bool) bool {
		return slices.ContainsFunc(clusters, func(c *clusterv1alpha1.Cluster) bool { return !affects(p, c) })
	}
	switch {
	case !taint.AddsNoExecute(p) || len(p.Spec.AddOnConditions) == 0 || len(clusters) == 0:
	case !spared(taint.Evicts):
		advice = append(advice, fmt.Sprintf(
			"spec.addOnConditions: all clusters of the fleet (%d) match now, so each gets a NoExecute taint: no cluster is left for the workloads that do not tolerate it, and they stay where they are; "+
				"name fewer clusters in targetClusters, or use NoSchedule", len(clusters)))
	case !spared(taint.Targets):
		advice = append(advice, fmt.Sprintf(
			"spec.targetClusters: the policy is about all clusters of the fleet (%d), so one fault that all of them report adds a NoExecute taint to each; "+
				"workloads that then have no cluster to go to stay where they are", len(clusters)))
	}
	return advice
}

// TolerationAdvice returns warnings about the tolerations of a placement.
func TolerationAdvice(tolerations []corev1.Toleration) (advice []string) {
	for i, t := range tolerations {
		if t.TolerationSeconds == nil {
			continue
		}
		path := fmt.Sprintf("spec.placement.clusterTolerations[%d].tolerationSeconds", i)
		switch {
		case t.Effect == corev1.TaintEffectNoSchedule:
			advice = append(advice, path+": has no effect with NoSchedule, which moves nothing; only NoExecute taints are tolerated for a time")
		case *t.TolerationSeconds <= 0:
			advice = append(advice, fmt.Sprintf(
				"%s: %d tolerates the taint for no time, so workloads leave the cluster as soon as it has the taint; remove tolerationSeconds to tolerate it without limit", path, *t.TolerationSeconds))
		}
	}
	return advice
}
