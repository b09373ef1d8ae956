package template

import (
	"context"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/release"
)

// VersionGetter returns a version of a ConfigMap, and whether it exists.
type VersionGetter func(ctx context.Context, namespace, name string) (*unstructured.Unstructured, bool, error)

// DeletedVersions returns the names of the versions of ConfigMaps that stored revisions of a namespace use and that do
// not exist, sorted. Without versions, it reads nothing.
func DeletedVersions(ctx context.Context, version VersionGetter, namespace string,
	revisions map[string]*releasev1alpha1.ReleaseRevision) ([]string, error) {
	used := map[string]bool{}
	for _, r := range revisions {
		for _, name := range release.Versions(r) {
			used[name] = true
		}
	}
	var deleted []string
	for _, name := range slices.Sorted(maps.Keys(used)) {
		_, found, err := version(ctx, namespace, name)
		if err != nil {
			return nil, err
		}
		if !found {
			deleted = append(deleted, name)
		}
	}
	return deleted, nil
}
