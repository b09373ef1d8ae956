package validate

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apimachineryvalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	"github.com/argosy-io/argosy/internal/core/execute"
	"github.com/argosy-io/argosy/internal/core/override"
)

// Override validates an override policy.
func Override(o policyv1alpha1.Override) field.ErrorList {
	spec, path := o.OverrideSpec(), field.NewPath("spec")
	errs := selectors(spec.ResourceSelectors, o.GetNamespace(), path.Child("resourceSelectors"))
	if spec.OverrideRules != nil {
		if spec.TargetCluster != nil {
			errs = append(errs, field.Invalid(path.Child("targetCluster"), "", "overrideRules and targetCluster can't co-exist"))
		}
		if !spec.Overriders.Empty() {
			errs = append(errs, field.Invalid(path.Child("overriders"), "", "overrideRules and overriders can't co-exist"))
		}
	}
	if spec.TargetCluster != nil {
		errs = append(errs, clusterAffinity(spec.TargetCluster, path.Child("targetCluster"))...)
	}
	errs = append(errs, overriders(&spec.Overriders, spec.ResourceSelectors, path.Child("overriders"))...)
	for i := range spec.OverrideRules {
		rule, at := &spec.OverrideRules[i], path.Child("overrideRules").Index(i)
		if rule.TargetCluster != nil {
			errs = append(errs, clusterAffinity(rule.TargetCluster, at.Child("targetCluster"))...)
		}
		errs = append(errs, overriders(&rule.Overriders, spec.ResourceSelectors, at.Child("overriders"))...)
	}
	return errs
}

// OverrideAdvice warns about likely mistakes in an override policy: adding a list where the template has one replaces
// it, as JSON patches do; and fields that members keep are not sent.
func OverrideAdvice(o policyv1alpha1.Override) (advice []string) {
	lists := func(o *policyv1alpha1.Overriders, path *field.Path) {
		for i, p := range o.Plaintext {
			if own := override.NeverSent(p.Path); own != "" {
				advice = append(advice, fmt.Sprintf("%s: %s is never sent to members, so this has no effect there",
					path.Child("plaintext").Index(i), own))
			}
			if p.Operator == policyv1alpha1.OverriderOpAdd && bytes.HasPrefix(bytes.TrimSpace(p.Value.Raw), []byte("[")) &&
				!strings.HasSuffix(p.Path, "/-") {
				advice = append(advice, fmt.Sprintf(
					"%s: add with a list replaces the whole list if a template has one at %s; to keep its entries, add each of yours at %s/-",
					path.Child("plaintext").Index(i), p.Path, p.Path))
			}
		}
	}
	spec, path := o.OverrideSpec(), field.NewPath("spec")
	lists(&spec.Overriders, path.Child("overriders"))
	for i := range spec.OverrideRules {
		lists(&spec.OverrideRules[i].Overriders, path.Child("overrideRules").Index(i).Child("overriders"))
	}
	return advice
}

// overriders validates those of one rule, for templates that the selectors select; none select any.
func overriders(o *policyv1alpha1.Overriders, selectors []policyv1alpha1.ResourceSelector,
	path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, image := range o.ImageOverrider {
		if image.Predicate != nil {
			at := path.Child("imageOverrider").Index(i).Child("predicate", "path")
			errs = append(errs, jsonPointer(image.Predicate.Path, at)...)
			errs = append(errs, reaches(image.Predicate.Path, at)...)
		}
	}
	for i, l := range o.LabelsOverrider {
		at := path.Child("labelsOverrider").Index(i).Child("value")
		errs = append(errs, metav1validation.ValidateLabels(l.Value, at)...)
		errs = append(errs, marks(at, slices.Sorted(maps.Keys(l.Value))...)...)
	}
	for i, a := range o.AnnotationsOverrider {
		at := path.Child("annotationsOverrider").Index(i).Child("value")
		errs = append(errs, apimachineryvalidation.ValidateAnnotations(a.Value, at)...)
		errs = append(errs, marks(at, slices.Sorted(maps.Keys(a.Value))...)...)
	}
	for i := range o.ResourcesOverrider {
		errs = append(errs, resourcesOverrider(&o.ResourcesOverrider[i], path.Child("resourcesOverrider").Index(i))...)
	}
	for i := range o.FieldOverrider {
		at := path.Child("fieldOverrider").Index(i)
		errs = append(errs, fieldOverrider(&o.FieldOverrider[i], at)...)
		errs = append(errs, reaches(o.FieldOverrider[i].FieldPath, at.Child("fieldPath"))...)
	}
	for i, p := range o.Plaintext {
		if at := path.Child("plaintext").Index(i).Child("path"); !override.KeepsGroup(p, selectors) {
			errs = append(errs, reaches(p.Path, at)...)
		}
	}
	return errs
}

// reaches rejects a path that would change the identity of a template, or a field that only the hub sets.
func reaches(pointer string, path *field.Path) field.ErrorList {
	if what := override.Reaches(pointer); what != "" {
		why := "an override cannot change the group, kind, namespace or name of an object"
		if what == "apiVersion" {
			why += "; to use another version, replace it with one of the same group, in a policy whose resourceSelectors specify that group"
		}
		return field.ErrorList{field.Forbidden(path, fmt.Sprintf("%q reaches %s: %s", pointer, what, why))}
	}
	if key := override.Key(pointer); key != "" {
		return marks(path, key)
	}
	return nil
}

// marks rejects labels and annotations that only the hub sets on what it sends.
func marks(path *field.Path, keys ...string) field.ErrorList {
	var errs field.ErrorList
	for _, key := range keys {
		switch {
		case key == wellknown.HandsOffAnnotation:
			errs = append(errs, field.Forbidden(path, fmt.Sprintf("%s stops the hub: set it on objects in members, or on Works",
				key)))
		case execute.Marks(key):
			errs = append(errs, field.Forbidden(path,
				fmt.Sprintf("%s identifies the hub's own objects in a member, so overrides cannot change it", key)))
		}
	}
	return errs
}

func resourcesOverrider(r *policyv1alpha1.ResourcesOverrider, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	errs = append(errs, required(path.Child("containerName"), r.ContainerName,
		"the name of the container, in every pod template of the kind")...)
	if len(r.Value.Limits)+len(r.Value.Requests) == 0 {
		errs = append(errs, field.Required(path.Child("value"), "limits or requests"))
	}
	for _, list := range []struct {
		name      string
		resources corev1.ResourceList
	}{{"limits", r.Value.Limits}, {"requests", r.Value.Requests}} {
		for _, name := range slices.Sorted(maps.Keys(list.resources)) {
			if q := list.resources[name]; q.Sign() < 0 {
				errs = append(errs, field.Invalid(path.Child("value", list.name).Key(string(name)), q.String(),
					"must be greater than or equal to 0"))
			}
		}
	}
	return errs
}

func fieldOverrider(o *policyv1alpha1.FieldOverrider, path *field.Path) field.ErrorList {
	errs := jsonPointer(o.FieldPath, path.Child("fieldPath"))
	switch {
	case len(o.JSON) > 0 && len(o.YAML) > 0:
		errs = append(errs, field.Invalid(path, o.FieldPath, "json and yaml cannot be set at the same time"))
	case len(o.JSON) == 0 && len(o.YAML) == 0:
		errs = append(errs, field.Invalid(path, o.FieldPath, "one of json and yaml must be set"))
	}
	for _, list := range []struct {
		name string
		ops  []policyv1alpha1.FieldPatchOperation
	}{{"json", o.JSON}, {"yaml", o.YAML}} {
		for i, op := range list.ops {
			at := path.Child(list.name).Index(i)
			errs = append(errs, jsonPointer(op.SubPath, at.Child("subPath"))...)
			switch has := given(op.Value); {
			case op.Operator == policyv1alpha1.OverriderOpRemove && has:
				errs = append(errs, field.Invalid(at.Child("value"), string(op.Value.Raw),
					"value is not allowed for remove operation"))
			case op.Operator != policyv1alpha1.OverriderOpRemove && !has:
				errs = append(errs, field.Invalid(at.Child("value"), "", "value is required for add or replace operation"))
			}
		}
	}
	return errs
}

// given reports whether a value is there; clients that marshal an empty one send null.
func given(value apiextensionsv1.JSON) bool { return len(value.Raw) > 0 && string(value.Raw) != "null" }

// jsonPointer validates RFC 6901 syntax, without the empty pointer: the whole document is never one field.
func jsonPointer(pointer string, path *field.Path) field.ErrorList {
	if !strings.HasPrefix(pointer, "/") {
		return field.ErrorList{field.Invalid(path, pointer, "path should be start with / character")}
	}
	for i := 0; i < len(pointer); i++ {
		if pointer[i] == '~' && (i+1 == len(pointer) || pointer[i+1] != '0' && pointer[i+1] != '1') {
			return field.ErrorList{field.Invalid(path, pointer, "~ must be followed by 0 or 1")}
		}
	}
	return nil
}
