package release

import (
	"fmt"
	"slices"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// Configuration returns the ConfigMaps and Secrets that the pods of a revision read, such as "ConfigMap web". A
// revision has their names alone, so they stay as they are when it is released again. exists reports whether a version
// of a ConfigMap exists. Versions are part of the revision, so only those that were deleted are returned.
func Configuration(r *releasev1alpha1.ReleaseRevision, exists func(version string) bool) ([]string, error) {
	u, err := podsOf(r)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, path := range interpret.PodTemplates(u) {
		template, err := interpret.PodTemplate(u, path)
		if err != nil {
			return nil, fmt.Errorf("read the pods of ReleaseRevision %s: %w", r.Name, err)
		}
		for _, d := range interpret.PodDependencies(template, r.Namespace) {
			switch {
			case d.Kind != "ConfigMap" && d.Kind != "Secret":
			case d.Kind == "Secret" || !slices.Contains(Versions(r), d.Name):
				names = append(names, d.Kind+" "+d.Name)
			case !exists(d.Name):
				names = append(names, d.Kind+" "+d.Name+" (deleted)")
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}
