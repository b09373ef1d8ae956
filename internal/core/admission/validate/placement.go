package validate

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
)

func placement(p *policyv1alpha1.Placement, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if p.ClusterAffinity != nil {
		errs = append(errs, clusterAffinity(p.ClusterAffinity, path.Child("clusterAffinity"))...)
		if p.ClusterAffinities != nil {
			names := joined(p.ClusterAffinities, func(t policyv1alpha1.ClusterAffinityTerm) string { return t.AffinityName })
			errs = append(errs, field.Invalid(path.Child("clusterAffinities"), names,
				"clusterAffinities cannot co-exist with clusterAffinity"))
		}
	}
	errs = append(errs, affinityTerms(p, path.Child("clusterAffinities"))...)
	for i, t := range p.ClusterTolerations {
		if t.Operator != "" {
			errs = append(errs, supported(path.Child("clusterTolerations").Index(i).Child("operator"), t.Operator,
				corev1.TolerationOpEqual, corev1.TolerationOpExists)...)
		}
	}
	errs = append(errs, spreadConstraints(p.SpreadConstraints, path.Child("spreadConstraints"))...)
	if s := p.ReplicaScheduling; s != nil && s.WeightPreference != nil {
		for i := range s.WeightPreference.StaticWeightList {
			errs = append(errs, clusterAffinity(&s.WeightPreference.StaticWeightList[i].TargetCluster,
				path.Child("replicaScheduling", "weightPreference", "staticWeightList").Index(i).Child("targetCluster"))...)
		}
	}
	if p.WorkloadAffinity != nil {
		errs = append(errs, workloadAffinity(p.WorkloadAffinity, path.Child("workloadAffinity"))...)
	}
	return errs
}

func affinityTerms(p *policyv1alpha1.Placement, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := map[string]bool{}
	for i := range p.ClusterAffinities {
		term, at := &p.ClusterAffinities[i], path.Index(i)
		errs = append(errs, labelKey(term.AffinityName, at.Child("affinityName"))...)
		if seen[term.AffinityName] {
			errs = append(errs, field.Invalid(at.Child("affinityName"), term.AffinityName,
				"each affinity term in a policy must have a unique name"))
		}
		seen[term.AffinityName] = true
		errs = append(errs, clusterAffinity(&term.ClusterAffinity, at)...)
		errs = append(errs, overflow(p, term, at.Child("overflowAffinities"))...)
	}
	return errs
}

func overflow(p *policyv1alpha1.Placement, term *policyv1alpha1.ClusterAffinityTerm, path *field.Path) field.ErrorList {
	if len(term.OverflowAffinities) == 0 {
		return nil
	}
	var errs field.ErrorList
	if !dividesByRoom(p) {
		errs = append(errs, field.Forbidden(path,
			"overflowAffinities need replicaDivisionPreference Aggregated or a dynamicWeight"))
	}
	seen := map[string]bool{term.AffinityName: true}
	for i := range term.OverflowAffinities {
		tier, at := &term.OverflowAffinities[i], path.Index(i)
		errs = append(errs, labelKey(tier.AffinityName, at.Child("affinityName"))...)
		if seen[tier.AffinityName] {
			errs = append(errs, field.Invalid(at.Child("affinityName"), tier.AffinityName,
				"each overflow affinity must have a unique name, different from that of its term"))
		}
		seen[tier.AffinityName] = true
		if a := tier.ClusterAffinity; a.LabelSelector == nil && a.FieldSelector == nil && len(a.ClusterNames) == 0 &&
			len(a.ExcludeClusters) == 0 {
			errs = append(errs, field.Required(at, "an overflow affinity must restrict the clusters"))
		}
		errs = append(errs, clusterAffinity(&tier.ClusterAffinity, at)...)
	}
	return errs
}

// dividesByRoom reports whether replicas are divided by available capacity: only then can replicas overflow.
func dividesByRoom(p *policyv1alpha1.Placement) bool {
	if !p.DividesReplicas() {
		return false
	}
	s := p.ReplicaScheduling
	return s.ReplicaDivisionPreference == policyv1alpha1.ReplicaDivisionPreferenceAggregated ||
		s.WeightPreference != nil && s.WeightPreference.DynamicWeight != ""
}

func clusterAffinity(a *policyv1alpha1.ClusterAffinity, path *field.Path) field.ErrorList {
	errs := labelSelector(a.LabelSelector, path.Child("labelSelector"))
	if a.FieldSelector == nil {
		return errs
	}
	for i, r := range a.FieldSelector.MatchExpressions {
		at := path.Child("fieldSelector", "matchExpressions").Index(i)
		switch r.Key {
		case "provider", "region", "zone":
		default:
			errs = append(errs, field.Invalid(at.Child("key"), r.Key,
				fmt.Sprintf("unsupported key %q, must be provider, region, or zone", r.Key)))
		}
		switch r.Operator {
		case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn:
		default:
			errs = append(errs, field.Invalid(at.Child("operator"), r.Operator,
				fmt.Sprintf("unsupported operator %q, must be In or NotIn", r.Operator)))
		}
	}
	return errs
}

func spreadConstraints(list []policyv1alpha1.SpreadConstraint, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	count := map[policyv1alpha1.SpreadFieldValue]int{}
	for i, c := range list {
		at := path.Index(i)
		if c.SpreadByField != "" {
			count[c.SpreadByField]++
			if c.SpreadByLabel != "" {
				errs = append(errs, field.Invalid(at.Child("spreadByLabel"), c.SpreadByLabel,
					"spreadByLabel should not co-exist with spreadByField"))
			}
		}
		if c.MinGroups < 0 {
			errs = append(errs, field.Invalid(at.Child("minGroups"), c.MinGroups, "minGroups lower than 0 is not allowed"))
		}
		switch {
		case c.MaxGroups < 0:
			errs = append(errs, field.Invalid(at.Child("maxGroups"), c.MaxGroups, "maxGroups lower than 0 is not allowed"))
		case c.MaxGroups > 0 && c.MaxGroups < c.MinGroups:
			errs = append(errs, field.Invalid(at.Child("maxGroups"), c.MaxGroups,
				"maxGroups lower than minGroups is not allowed"))
		}
	}
	for _, f := range []policyv1alpha1.SpreadFieldValue{
		policyv1alpha1.SpreadByFieldCluster, policyv1alpha1.SpreadByFieldRegion, policyv1alpha1.SpreadByFieldZone,
		policyv1alpha1.SpreadByFieldProvider,
	} {
		if count[f] > 1 {
			errs = append(errs, field.Invalid(path, f, fmt.Sprintf("multiple %s spread constraints are not allowed", f)))
		}
	}
	if len(count) > 0 && count[policyv1alpha1.SpreadByFieldCluster] == 0 {
		names := joined(list, func(c policyv1alpha1.SpreadConstraint) string { return string(c.SpreadByField) })
		errs = append(errs, field.Invalid(path, names,
			"the cluster spread constraint must be enabled in one of the constraints in case of SpreadByField is enabled"))
	}
	return errs
}

func workloadAffinity(w *policyv1alpha1.WorkloadAffinity, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if w.Affinity != nil {
		errs = append(errs, labelKey(w.Affinity.GroupByLabelKey, path.Child("affinity", "groupByLabelKey"))...)
	}
	if w.AntiAffinity != nil {
		at := path.Child("antiAffinity", "groupByLabelKey")
		errs = append(errs, labelKey(w.AntiAffinity.GroupByLabelKey, at)...)
		if w.Affinity != nil && w.Affinity.GroupByLabelKey == w.AntiAffinity.GroupByLabelKey {
			errs = append(errs, field.Invalid(at, w.AntiAffinity.GroupByLabelKey,
				"affinity and antiAffinity must not group by the same label"))
		}
	}
	return errs
}

func labelSelector(s *metav1.LabelSelector, path *field.Path) field.ErrorList {
	return metav1validation.ValidateLabelSelector(s, metav1validation.LabelSelectorValidationOptions{}, path)
}

func labelKey(key string, path *field.Path) field.ErrorList {
	return valid(path, key, validation.IsQualifiedName)
}

func labelValue(value string, path *field.Path) field.ErrorList {
	return valid(path, value, validation.IsValidLabelValue)
}
