package validate

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

// Binding validates the fields of a binding that controllers use without another check.
func Binding(b workv1alpha2.Binding) field.ErrorList {
	var errs field.ErrorList
	if text, ok := b.GetAnnotations()[workv1alpha2.DependenciesAnnotation]; ok {
		var refs []configv1alpha1.DependentObjectReference
		if err := json.Unmarshal([]byte(text), &refs); err != nil {
			errs = append(errs, field.Invalid(field.NewPath("metadata", "annotations").Key(workv1alpha2.DependenciesAnnotation),
				text,
				fmt.Sprintf("annotation value must be a valid JSON: %v", err)))
		}
	}
	seen := map[string]bool{}
	for i, c := range b.BindingSpec().Components {
		path := field.NewPath("spec", "components").Index(i).Child("name")
		switch {
		case c.Name == "":
			errs = append(errs, field.Required(path, "component name must not be empty"))
		case seen[c.Name]:
			errs = append(errs, field.Duplicate(path, c.Name))
		}
		seen[c.Name] = true
	}
	return errs
}
