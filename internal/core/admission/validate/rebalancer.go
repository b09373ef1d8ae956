package validate

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	appsv1alpha1 "github.com/argosy-io/argosy/api/apps/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/match"
	"github.com/argosy-io/argosy/internal/core/propagate"
)

// Rebalancer validates a WorkloadRebalancer. scoped reports whether a kind is namespaced, if the kind is known.
// References that can never name a workload are rejected; those to missing objects are not.
func Rebalancer(r *appsv1alpha1.WorkloadRebalancer,
	scoped func(schema.GroupKind) (namespaced, known bool)) field.ErrorList {
	var errs field.ErrorList
	spec := field.NewPath("spec")
	for i, w := range r.Spec.Workloads {
		path := spec.Child("workloads").Index(i)
		errs = append(errs, required(path.Child("apiVersion"), w.APIVersion,
			"the apiVersion of the workload, such as apps/v1")...)
		errs = append(errs, required(path.Child("kind"), w.Kind, "the kind of the workload, such as Deployment")...)
		errs = append(errs, required(path.Child("name"), w.Name, "the name of the workload")...)
		if wrong := apiVersion(path.Child("apiVersion"), w.APIVersion); wrong != nil {
			errs = append(errs, wrong...)
			continue
		}
		gk := match.GroupKind(w.APIVersion, w.Kind)
		if !propagate.Propagable(gk) {
			errs = append(errs, field.Invalid(path.Child("kind"), w.Kind,
				fmt.Sprintf("a %s is not propagated by policies: specify the workload itself", gk)))
			continue
		}
		switch namespaced, known := scoped(gk); {
		case !known:
		case namespaced && w.Namespace == "":
			errs = append(errs, field.Required(path.Child("namespace"),
				fmt.Sprintf("a %s is namespaced: specify its namespace", w.Kind)))
		case !namespaced && w.Namespace != "":
			errs = append(errs, field.Invalid(path.Child("namespace"), w.Namespace,
				fmt.Sprintf("a %s is cluster-scoped: must not be set", w.Kind)))
		}
	}
	if ttl := r.Spec.TTLSecondsAfterFinished; ttl != nil && *ttl < 0 {
		errs = append(errs, field.Invalid(spec.Child("ttlSecondsAfterFinished"), *ttl,
			"must be greater than or equal to 0 (0 deletes it immediately); omit it to keep the rebalancer"))
	}
	return errs
}
