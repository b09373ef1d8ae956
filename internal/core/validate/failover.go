package validate

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
)

func failover(f *policyv1alpha1.FailoverBehavior, propagateDeps bool, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if a := f.Application; a != nil {
		at := path.Child("application")
		if !propagateDeps {
			errs = append(errs, field.Invalid(field.NewPath("spec", "propagateDeps"), propagateDeps, "application failover is set, propagateDeps must be true"))
		}
		if s := a.DecisionConditions.TolerationSeconds; s != nil && *s < 0 {
			errs = append(errs, field.Invalid(at.Child("decisionConditions", "tolerationSeconds"), *s, "must be greater than or equal to 0"))
		}
		if s := a.GracePeriodSeconds; s != nil {
			if a.PurgeMode != policyv1alpha1.PurgeModeGracefully {
				errs = append(errs, field.Invalid(at.Child("gracePeriodSeconds"), *s, "only takes effect when purgeMode is Gracefully"))
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
		}
	}
	return errs
}

// PropagationAdvice is what the author of a valid policy should know, for people.
func PropagationAdvice(p policyv1alpha1.Propagation) (advice []string) {
	f := p.PropagationSpec().Failover
	if f == nil {
		return nil
	}
	for _, part := range []struct {
		name string
		set  bool
	}{{"application", f.Application != nil}, {"cluster", f.Cluster != nil}} {
		if part.set {
			advice = append(advice, fmt.Sprintf("spec.failover.%s: stored, but has no effect: this hub does not support failover yet, so nothing moves when an application or a cluster fails; `argosy simulate --cluster-down` shows what happens instead", part.name))
		}
	}
	return advice
}
