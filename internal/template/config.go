package template

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/argosy-io/argosy/internal/core/release"
)

// Getter reads an object and reports whether it exists, as Store.Get and Store.Live do.
type Getter func(ctx context.Context, gk schema.GroupKind, namespace, name string) (*unstructured.Unstructured, bool,
	error)

// ConfigMaps returns the ConfigMaps that the pods of a template read, and their versions with the present content, as
// far as they exist.
func ConfigMaps(ctx context.Context, get Getter, tmpl *unstructured.Unstructured) (release.ConfigMaps, error) {
	all := release.ConfigMaps{}
	read := func(name string) (*unstructured.Unstructured, error) {
		obj, found, err := get(ctx, release.ConfigMapKind, tmpl.GetNamespace(), name)
		if err != nil || !found {
			return nil, err
		}
		all[name] = obj
		return obj, nil
	}
	for _, name := range release.ReadConfigMaps(tmpl) {
		configMap, err := read(name)
		if err != nil {
			return nil, err
		}
		if configMap == nil {
			continue
		}
		if version := release.VersionOf(configMap); version != "" {
			if _, err := read(version); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}
