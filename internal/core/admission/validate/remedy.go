package validate

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	remedyv1alpha1 "github.com/argosy-io/argosy/api/remedy/v1alpha1"
)

// Remedy validates a Remedy.
func Remedy(r *remedyv1alpha1.Remedy) field.ErrorList {
	var errs field.ErrorList
	spec := field.NewPath("spec")
	if a := r.Spec.ClusterAffinity; a != nil {
		named := map[string]bool{}
		for i, name := range a.ClusterNames {
			at := spec.Child("clusterAffinity", "clusterNames").Index(i)
			errs = append(errs, required(at, name, "the name of a cluster; remove clusterAffinity to select all clusters")...)
			if name != "" && named[name] {
				errs = append(errs, field.Duplicate(at, name))
			}
			named[name] = true
		}
	}
	for i, m := range r.Spec.DecisionMatches {
		at := spec.Child("decisionMatches").Index(i).Child("clusterConditionMatch")
		c := m.ClusterConditionMatch
		if c == nil {
			errs = append(errs, field.Required(at,
				"the condition to compare, such as {conditionType: Ready, operator: NotEqual, conditionStatus: \"True\"}"))
			continue
		}
		errs = append(errs, required(at.Child("conditionType"), c.ConditionType,
			"the type of a condition of the cluster, such as Ready")...)
		errs = append(errs, supported(at.Child("operator"), c.Operator, remedyv1alpha1.ClusterConditionEqual,
			remedyv1alpha1.ClusterConditionNotEqual)...)
		errs = append(errs, required(at.Child("conditionStatus"), c.ConditionStatus,
			"the status of the condition, such as True, False or Unknown")...)
	}
	for i, a := range r.Spec.Actions {
		errs = append(errs, supported(spec.Child("actions").Index(i), a, remedyv1alpha1.TrafficControl)...)
	}
	return errs
}

// RemedyAdvice returns warnings for the author of a valid Remedy.
func RemedyAdvice(r *remedyv1alpha1.Remedy) (advice []string) {
	if a := r.Spec.ClusterAffinity; a != nil && len(a.ClusterNames) == 0 {
		advice = append(advice, "spec.clusterAffinity: names no cluster, so the Remedy has no effect; "+
			"name clusters, or remove clusterAffinity to select all clusters")
	}
	if len(r.Spec.Actions) == 0 {
		advice = append(advice, "spec.actions: without an action the Remedy has no effect; the action is TrafficControl")
	}
	return advice
}

// NamesOfRemedy returns the names in a Remedy.
func NamesOfRemedy(r *remedyv1alpha1.Remedy) (n Names) {
	if r.Spec.ClusterAffinity != nil {
		n.clusters(r.Spec.ClusterAffinity.ClusterNames, field.NewPath("spec", "clusterAffinity", "clusterNames"))
	}
	return n
}
