package propagate

import (
	"encoding/json"
	"fmt"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
)

// RecordedDependencies returns the dependencies in a binding's annotation.
func RecordedDependencies(b workv1alpha2.Binding) ([]configv1alpha1.DependentObjectReference, error) {
	raw := b.GetAnnotations()[workv1alpha2.DependenciesAnnotation]
	if raw == "" {
		return nil, nil
	}
	var deps []configv1alpha1.DependentObjectReference
	if err := json.Unmarshal([]byte(raw), &deps); err != nil {
		return nil, fmt.Errorf("read the dependencies of binding %s: %w", b.GetName(), err)
	}
	return deps, nil
}
