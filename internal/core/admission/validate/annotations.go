package validate

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/argosy-io/argosy/internal/core/workload/fleet"
)

// Choices refuses annotations that have a fixed set of values and another value. One that is stored already may stay.
func Choices(is, was map[string]string) (errs field.ErrorList) {
	for _, key := range slices.Sorted(maps.Keys(fleet.Choices)) {
		value, set := is[key]
		if before, had := was[key]; set && (!had || value != before) {
			errs = append(errs, supported(field.NewPath("metadata", "annotations").Key(key), value,
				fleet.Choices[key]...)...)
		}
	}
	return errs
}
