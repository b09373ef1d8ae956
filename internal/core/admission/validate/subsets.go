package validate

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	values "github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
)

// Template validates the settings in a template that only the hub reads, and that no member can validate.
func Template(obj *unstructured.Unstructured) field.ErrorList {
	if !fleet.NamesClusters(obj) {
		return nil
	}
	// 1. Each affinity.
	path := field.NewPath("spec", "topology", "subsets")
	var errs field.ErrorList
	open, limited := false, false
	for i, s := range values.Objects(obj.Object, "spec", "topology", "subsets") {
		if s[fleet.AffinityField] == nil {
			open, limited = open || s["maxReplicas"] == nil, limited || s["maxReplicas"] != nil
			continue
		}
		at := path.Index(i).Child(fleet.AffinityField)
		var a policyv1alpha1.ClusterAffinity
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(values.Object(s, fleet.AffinityField),
			&a); err != nil {
			errs = append(errs, field.Invalid(at, s[fleet.AffinityField], err.Error()))
			continue
		}
		errs = append(errs, clusterAffinity(&a, at)...)
		if len(a.ClusterNames) > 0 && !slices.ContainsFunc(a.ClusterNames, func(name string) bool {
			return !slices.Contains(a.ExcludeClusters, name)
		}) {
			errs = append(errs, field.Invalid(at.Child("exclude"), a.ExcludeClusters,
				"excludes all of clusterNames, so the subset could not be scheduled anywhere"))
		}
	}
	// 2. What members would refuse of the part that they get.
	if limited && !open {
		errs = append(errs, field.Invalid(path, "maxReplicas",
			"one of the subsets without clusterAffinity must not have maxReplicas: some clusters only get these subsets"))
	}
	if replicas, set := values.Whole(values.Value(obj.Object, "spec", "replicas")); set && len(errs) == 0 {
		if _, _, err := fleet.Homes(obj, replicas); err != nil {
			errs = append(errs, field.Invalid(path, replicas, err.Error()))
		}
	}
	return errs
}
