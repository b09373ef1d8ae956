package kruise

import (
	"fmt"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func (d Defaulter) unitedDeployment(spec map[string]any) error {
	setDefault(spec, int64(10), "revisionHistoryLimit")
	setDefault(spec, "Manual", "updateStrategy", "type")
	setDefault(spec, map[string]any{}, "updateStrategy", "manualUpdate")
	setDefault(spec, "Fixed", "topology", "scheduleStrategy", "type")
	for name := range childTemplates {
		path := []string{"template", name, "spec", "template"}
		template, found, err := unstructured.NestedMap(spec, path...)
		if err != nil || !found {
			continue // what is wrong, validation says
		}
		filled, err := refill(template, d.Template)
		if err != nil {
			return fmt.Errorf("spec.template.%s.spec.template: %w", name, err)
		}
		if err := unstructured.SetNestedMap(spec, filled, path...); err != nil {
			return err
		}
	}
	return nil
}

func validateUnitedDeployment(u, old *unstructured.Unstructured) field.ErrorList {
	spec := field.NewPath("spec")
	ud, err := read[UnitedDeployment](u)
	if err != nil {
		return field.ErrorList{field.Invalid(spec, nil, err.Error())}
	}
	var errs field.ErrorList
	if name, workload, err := ud.Spec.embedded(); err != nil {
		errs = append(errs, field.Required(spec.Child("template"), err.Error()))
	} else {
		labels, _, _ := unstructured.NestedStringMap(workload, "metadata", "labels")
		errs = append(errs, validateSelector(ud.Spec.Selector, labels, spec.Child("template", name))...)
		podLabels, _, _ := unstructured.NestedStringMap(workload, "spec", "template", "metadata", "labels")
		errs = append(errs, validateSelector(ud.Spec.Selector, podLabels, spec.Child("template", name, "spec"))...)
	}
	errs = append(errs, ud.Spec.validateSubsets(spec)...)
	if old == nil {
		return errs
	}
	before, err := read[UnitedDeployment](old)
	if err != nil {
		return append(errs, field.Invalid(spec, nil, err.Error()))
	}
	if !apiequality.Semantic.DeepEqual(before.Spec.Selector, ud.Spec.Selector) {
		errs = append(errs, field.Invalid(spec.Child("selector"), nil, "field is immutable"))
	}
	had := map[string]*Subset{}
	for i := range before.Spec.Topology.Subsets {
		had[before.Spec.Topology.Subsets[i].Name] = &before.Spec.Topology.Subsets[i]
	}
	for i, s := range ud.Spec.Topology.Subsets {
		b, path := had[s.Name], spec.Child("topology", "subsets").Index(i)
		if b == nil {
			continue
		}
		if !apiequality.Semantic.DeepEqual(b.NodeSelectorTerm, s.NodeSelectorTerm) {
			errs = append(errs, field.Forbidden(path.Child("nodeSelectorTerm"), "may not be changed in an update"))
		}
		if !apiequality.Semantic.DeepEqual(b.Tolerations, s.Tolerations) {
			errs = append(errs, field.Forbidden(path.Child("tolerations"), "may not be changed in an update"))
		}
	}
	return errs
}

// validateSubsets checks names and sums.
func (spec *UnitedDeploymentSpec) validateSubsets(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	subsets := path.Child("topology", "subsets")
	names := map[string]bool{}
	var sum, least, most int32
	set, bounded, unlimited := 0, 0, false
	for i, s := range spec.Topology.Subsets {
		at := subsets.Index(i)
		if s.Name == "" {
			errs = append(errs, field.Required(at.Child("name"), ""))
		}
		if names[s.Name] {
			errs = append(errs, field.Invalid(at.Child("name"), s.Name, fmt.Sprintf("duplicated subset name %s", s.Name)))
		}
		names[s.Name] = true
		if s.Replicas != nil && (s.MinReplicas != nil || s.MaxReplicas != nil) {
			errs = append(errs, field.Invalid(at.Child("replicas"), s.Replicas.String(),
				"replicas and minReplicas/maxReplicas are mutually exclusive in a subset"))
		}
		if s.Replicas != nil {
			n, err := share(s.Replicas, orDefault(spec.Replicas, 0), halfUp)
			if err != nil || n < 0 {
				errs = append(errs, field.Invalid(at.Child("replicas"), s.Replicas.String(),
					fmt.Sprintf("invalid replicas: %v", err)))
				continue
			}
			set++
			sum += n
			continue
		}
		lower, err1 := spec.bound(s.MinReplicas, 0)
		upper, err2 := spec.bound(s.MaxReplicas, lower)
		if err1 != nil || err2 != nil || lower < 0 || upper < lower {
			errs = append(errs, field.Invalid(at, s.Name, "minReplicas must not be negative or greater than maxReplicas"))
			continue
		}
		if s.MinReplicas != nil || s.MaxReplicas != nil {
			bounded++
		}
		unlimited = unlimited || s.MaxReplicas == nil
		least += lower
		most += upper
	}
	if len(errs) > 0 {
		return errs
	}
	switch {
	case len(spec.Topology.Subsets) == 0:
	case spec.Replicas == nil:
		if _, err := spec.allocate(); err != nil {
			errs = append(errs, field.Invalid(path.Child("replicas"), nil,
				fmt.Sprintf("if replicas is nil, every subset must have a number of replicas: %v", err)))
		}
	case sum > *spec.Replicas:
		errs = append(errs, field.Invalid(subsets, sum,
			fmt.Sprintf("sum of indicated subset replicas %d should not be greater than UnitedDeployment replicas %d", sum,
				*spec.Replicas)))
	case set == len(spec.Topology.Subsets) && sum != *spec.Replicas:
		errs = append(errs, field.Invalid(subsets, sum,
			fmt.Sprintf("if replicas of all subsets are provided, the sum of indicated subset replicas %d should equal UnitedDeployment replicas %d", sum, *spec.Replicas)))
	case bounded > 0 && !unlimited:
		errs = append(errs, field.Invalid(subsets, most, "at least one subset must have no maxReplicas"))
	case bounded > 0 && least > *spec.Replicas:
		errs = append(errs, field.Invalid(subsets, least,
			fmt.Sprintf("sum of minReplicas %d should not be greater than UnitedDeployment replicas %d", least, *spec.Replicas)))
	}
	return errs
}
