package template

import (
	"cmp"
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/internal/commit"
	"github.com/argosy-io/argosy/internal/core/release"
)

// Getter reads an object and reports whether it exists, as Store.Get and Store.Live do.
type Getter func(ctx context.Context, gk schema.GroupKind, namespace, name string) (*unstructured.Unstructured, bool,
	error)

// SetCurrent sets the current revision of a target that has a Template. If its release versions ConfigMaps, it sets
// those too. stored has the ReleaseRevision that its Binding names.
func SetCurrent(ctx context.Context, get Getter, t *release.Target, versioned bool, overrides []policyv1alpha1.Override,
	stored []releasev1alpha1.ReleaseRevision) (err error) {
	if versioned {
		if t.ConfigMaps, err = ConfigMaps(ctx, get, t.Template); err != nil {
			return err
		}
	}
	t.Current = release.CurrentRevision(t.Template, overrides, t.ConfigMaps, t.EffectiveOf(stored))
	return nil
}

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

// Version reads a version of a ConfigMap. It asks the server if the cache lacks it, because it may have been created
// just now.
func (s *Store) Version(ctx context.Context, namespace, name string) (*unstructured.Unstructured, bool, error) {
	if obj, found, err := s.Get(ctx, release.ConfigMapKind, namespace, name); found || err != nil {
		return obj, found, err
	}
	return s.Live(ctx, release.ConfigMapKind, namespace, name)
}

// byConfigMap is the index of ReleaseRevisions by release.ConfigNames.
const byConfigMap = "template.configmap"

// IndexRevisions lets Readers read from a cache; once per cache, before it starts.
func IndexRevisions(ctx context.Context, indexer client.FieldIndexer) error {
	err := indexer.IndexField(ctx, &releasev1alpha1.ReleaseRevision{}, byConfigMap, func(obj client.Object) []string {
		return release.ConfigNames(obj.(*releasev1alpha1.ReleaseRevision))
	})
	if err != nil {
		return fmt.Errorf("index ReleaseRevisions by ConfigMap: %w", err)
	}
	return nil
}

// Readers returns the ReleaseRevisions with a ConfigMap or version of the name, or with release.AnyConfigMap. An empty
// namespace is any. They are the cache's own: not to be changed.
func Readers(ctx context.Context, r client.Reader, namespace, name string) ([]releasev1alpha1.ReleaseRevision, error) {
	var revisions releasev1alpha1.ReleaseRevisionList
	if err := r.List(ctx, &revisions, client.InNamespace(namespace), client.MatchingFields{byConfigMap: name},
		client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the ReleaseRevisions that read ConfigMap %s/%s: %w", namespace, name, err)
	}
	return revisions.Items, nil
}

// WorkloadsReading returns the workloads of Readers, for events. An error is logged.
func WorkloadsReading(ctx context.Context, r client.Reader, namespace, name string) []release.Workload {
	revisions, err := Readers(ctx, r, namespace, name)
	if err != nil {
		log.FromContext(ctx).Error(err, "find the workloads that read a ConfigMap")
	}
	return release.WorkloadsOf(revisions)
}

// CreateVersions creates versions of ConfigMaps. They belong to the ReleaseRevisions that use them, if there are any. A
// version that exists is an error: who decides next sees what it is.
func CreateVersions(ctx context.Context, c client.Client, versions []*unstructured.Unstructured) error {
	for _, version := range versions {
		revisions, err := Readers(ctx, c, version.GetNamespace(), version.GetName())
		if err != nil {
			return err
		}
		for i := range revisions {
			version = cmp.Or(release.OwnedBy(version, &revisions[i]), version)
		}
		if err := c.Create(ctx, version); err != nil {
			return fmt.Errorf("create %s: %w", commit.Name(version), err)
		}
	}
	return nil
}
