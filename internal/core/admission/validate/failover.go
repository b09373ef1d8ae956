package validate

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	failoverplan "github.com/argosy-io/argosy/internal/core/adjust/failover"
	"github.com/argosy-io/argosy/internal/core/execute"
)

func failover(f *policyv1alpha1.FailoverBehavior, propagateDeps bool, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if a := f.Application; a != nil {
		at := path.Child("application")
		if !propagateDeps {
			errs = append(errs, field.Invalid(field.NewPath("spec", "propagateDeps"), propagateDeps,
				"application failover is set, propagateDeps must be true"))
		}
		if s := a.DecisionConditions.TolerationSeconds; s != nil && *s < 0 {
			errs = append(errs, field.Invalid(at.Child("decisionConditions", "tolerationSeconds"), *s,
				"must be greater than or equal to 0"))
		}
		if s := a.GracePeriodSeconds; s != nil {
			if a.PurgeMode != policyv1alpha1.PurgeModeGracefully {
				errs = append(errs, field.Invalid(at.Child("gracePeriodSeconds"), *s,
					"only takes effect when purgeMode is Gracefully"))
			}
			if *s <= 0 {
				errs = append(errs, field.Invalid(at.Child("gracePeriodSeconds"), *s, "must be greater than 0"))
			}
		}
		errs = append(errs, statePreservation(a.StatePreservation, at.Child("statePreservation"))...)
	}
	if c := f.Cluster; c != nil {
		errs = append(errs, statePreservation(c.StatePreservation, path.Child("cluster", "statePreservation"))...)
	}
	return errs
}

func statePreservation(s *policyv1alpha1.StatePreservation, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if s == nil {
		return nil
	}
	for i, rule := range s.Rules {
		at := path.Child("rules").Index(i)
		errs = append(errs, labelKey(rule.AliasLabelName, at.Child("aliasLabelName"))...)
		if rule.JSONPath == "" {
			errs = append(errs, field.Required(at.Child("jsonPath"), "must name a value below .status"))
		} else if _, err := failoverplan.ParsePath(rule.JSONPath); err != nil {
			errs = append(errs, field.Invalid(at.Child("jsonPath"), rule.JSONPath,
				fmt.Sprintf("is not a JSONPath such as {.jobStatus.jobID}: %v", err)))
		}
	}
	return errs
}

// PropagationAdvice returns warnings for the author of a valid policy.
func PropagationAdvice(p policyv1alpha1.Propagation) (advice []string) {
	annotations := p.GetAnnotations()
	if value, ok := annotations[wellknown.MoveVolumesAnnotation]; ok && value != "true" && value != "false" {
		advice = append(advice, fmt.Sprintf(
			"metadata.annotations[%s]: %q is neither true nor false, so workloads with persistent volumes do not move",
			wellknown.MoveVolumesAnnotation, value))
	}
	if value, ok := annotations[wellknown.FailbackAfterAnnotation]; ok {
		if after, err := time.ParseDuration(value); err != nil || after <= 0 {
			advice = append(advice, fmt.Sprintf(
				"metadata.annotations[%s]: %q is not a duration such as 10m, so workloads do not return to their clusters",
				wellknown.FailbackAfterAnnotation, value))
		}
	}
	f := p.PropagationSpec().Failover
	if f == nil {
		return advice
	}
	if f.Application != nil {
		advice = append(advice, stateAdvice("application", f.Application.StatePreservation)...)
	}
	if f.Cluster != nil {
		advice = append(advice, stateAdvice("cluster", f.Cluster.StatePreservation)...)
	}
	if f.Cluster != nil && f.Cluster.PurgeMode == policyv1alpha1.PurgeModeDirectly {
		advice = append(advice, "spec.failover.cluster.purgeMode: with Directly, nothing runs twice: replicas stay in a lost cluster until it responds again or is removed; use Gracefully to replace them at once")
	}
	if f.Application != nil && f.Application.PurgeMode == policyv1alpha1.PurgeModeNever {
		advice = append(advice, "spec.failover.application.purgeMode: with Never, the old copy stays until suppressDeletion of its task in the binding is set to false")
	}
	if s := f.Application; s != nil && s.DecisionConditions.TolerationSeconds != nil &&
		*s.DecisionConditions.TolerationSeconds == 0 {
		advice = append(advice, "spec.failover.application.decisionConditions.tolerationSeconds: with 0, the application moves as soon as it is unhealthy")
	}
	return advice
}

// stateAdvice returns a warning for each label that the replacement does not get, because it is reserved for the hub.
func stateAdvice(section string, s *policyv1alpha1.StatePreservation) (advice []string) {
	if s == nil {
		return nil
	}
	for i, rule := range s.Rules {
		if execute.Marks(rule.AliasLabelName) {
			advice = append(advice, fmt.Sprintf(
				"spec.failover.%s.statePreservation.rules[%d].aliasLabelName: the rule has no effect, because the label %s is reserved for the hub",
				section, i, rule.AliasLabelName))
		}
	}
	return advice
}
