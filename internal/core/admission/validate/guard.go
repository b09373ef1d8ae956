package validate

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/object/crontab"
	"github.com/argosy-io/argosy/internal/core/workload/fleet"
)

// ReleaseGuard validates the spec of a ReleaseGuard.
func ReleaseGuard(s *releasev1alpha1.ReleaseGuardSpec) field.ErrorList {
	var errs field.ErrorList
	spec := field.NewPath("spec")
	if s.Selector.Clusters != nil {
		errs = append(errs, labelSelector(s.Selector.Clusters, spec.Child("selector", "clusters"))...)
	}
	for i, w := range s.Windows {
		errs = append(errs, releaseWindow(w, spec.Child("windows").Index(i))...)
	}
	if l := s.Limits; l != nil {
		if l.Per != "" {
			errs = append(errs, labelKey(l.Per, spec.Child("limits", "per"))...)
		}
	}
	required := s.Require == releasev1alpha1.RequireEnforce || s.Require == releasev1alpha1.RequireRecord
	if required && (s.Selector.Clusters != nil || len(s.Selector.Environments) > 0) {
		errs = append(errs, field.Invalid(spec.Child("require"), s.Require,
			"a template is for all clusters and environments of its workload: select only namespaces, in a guard of its own"))
	}
	return errs
}

// releaseWindow validates a window.
func releaseWindow(w releasev1alpha1.ReleaseWindow, path *field.Path) field.ErrorList {
	once := w.From != nil || w.To != nil
	switch {
	case (w.Schedule != "") == once:
		return field.ErrorList{field.Invalid(path, w.Schedule, "set either schedule and duration, or from and to")}
	case once && (w.Duration != nil || w.TimeZone != ""):
		return field.ErrorList{field.Forbidden(path, "duration and timeZone are for schedule, not for from and to")}
	case once && w.From != nil && w.To != nil && !w.From.Before(w.To):
		return field.ErrorList{field.Invalid(path.Child("to"), w.To.String(), "must be after from")}
	case once:
		return nil
	}
	var errs field.ErrorList
	if w.TimeZone != "" {
		if _, err := crontab.ParseZone(w.TimeZone); err != nil {
			errs = append(errs, field.Invalid(path.Child("timeZone"), w.TimeZone, err.Error()))
		}
	}
	if _, err := crontab.Parse(w.Schedule, ""); err != nil {
		errs = append(errs, field.Invalid(path.Child("schedule"), w.Schedule, err.Error()))
	}
	if w.Duration == nil {
		return append(errs, field.Required(path.Child("duration"), "how long the window is, such as 8h"))
	}
	return append(errs, positive(w.Duration, path.Child("duration"))...)
}

// ChangesDirectly reports whether a change of a template replaces pods without a release: the template names no
// ReleaseStrategy, with which the change would wait for one. What no release can update does not count.
func ChangesDirectly(old, template *unstructured.Unstructured) bool {
	if template.GetAnnotations()[releasev1alpha1.ReleaseStrategyAnnotation] != "" {
		return false
	}
	divided, _ := fleet.Staged(template, true)
	if whole, _ := fleet.Staged(template, false); !divided && !whole {
		return false
	}
	return fleet.RevisionOf(old) != fleet.RevisionOf(template)
}

// DirectChange returns why a change of a template is refused where the guard of that name requires releases.
func DirectChange(template *unstructured.Unstructured, guard string) string {
	return fmt.Sprintf("ReleaseGuard %s requires releases in namespace %q, and this change of the pods of %s %s would be "+
		"sent to clusters at once: name a ReleaseStrategy in the annotation %s of the template, then release the change "+
		"with `argosy release start`", guard, template.GetNamespace(), template.GetKind(), template.GetName(),
		releasev1alpha1.ReleaseStrategyAnnotation)
}
