package dependency

import (
	"slices"

	configv1alpha1 "github.com/argosy-io/argosy/api/config/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/match"
)

// Merge adds to refs the named references of more that are missing.
func Merge(refs, more []configv1alpha1.DependentObjectReference) []configv1alpha1.DependentObjectReference {
	all := slices.Clip(refs)
	for _, ref := range more {
		if !slices.ContainsFunc(all, func(have configv1alpha1.DependentObjectReference) bool {
			return have.LabelSelector == nil && match.SameObject(have, ref)
		}) {
			all = append(all, ref)
		}
	}
	return all
}
