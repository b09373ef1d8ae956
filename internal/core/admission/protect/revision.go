package protect

import (
	"fmt"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/dispatch"
	"github.com/argosy-io/argosy/internal/core/release"
)

// Revision returns why a ReleaseRevision may not be deleted; nil if it may. A version of a ConfigMap that pods read
// must not be deleted with it. all are the revisions of its namespace, and bindings those of its namespace.
func Revision(r *releasev1alpha1.ReleaseRevision, all []*releasev1alpha1.ReleaseRevision,
	bindings []workv1alpha2.Binding) error {
	for _, b := range bindings {
		if slices.Contains(dispatch.RevisionsOf(b), r.Name) || release.LastOwner(b, r, all) {
			return fmt.Errorf("ReleaseRevision %[1]s cannot be deleted: clusters have pods of %[2]s from it, or return to it in a "+
				"rollback. Release another revision of %[2]s first; the hub deletes old ReleaseRevisions itself", r.Name,
				workloadOf(b))
		}
	}
	return nil
}

// VersionAnnotation returns why a user may not write these annotations of a ConfigMap; nil if they may. was is nil for
// a new ConfigMap.
func VersionAnnotation(was, is map[string]string) error {
	const key = wellknown.VersionOfAnnotation
	switch {
	case release.IsVersion(was) == release.IsVersion(is) && was[key] == is[key]:
		return nil
	case !release.IsVersion(is):
		return fmt.Errorf("only the hub removes the annotation %s, which marks a version of ConfigMap %s", key, was[key])
	}
	return fmt.Errorf("only the hub sets the annotation %s, on the immutable versions of ConfigMaps that releases make: "+
		"leave it out", key)
}

// ChangesVersion reports whether an update changes what pods read of a version, or when it is deleted.
func ChangesVersion(was, is *unstructured.Unstructured) bool {
	return !reflect.DeepEqual(was.GetOwnerReferences(), is.GetOwnerReferences()) ||
		slices.ContainsFunc([]string{"data", "binaryData", "immutable"}, func(field string) bool {
			return !reflect.DeepEqual(was.Object[field], is.Object[field])
		})
}

// Version returns why a version of a ConfigMap may not be changed or deleted; nil if it may. bindings are those of its
// namespace.
func Version(version metav1.Object, bindings []workv1alpha2.Binding) error {
	for _, b := range bindings {
		if !needsVersion(b, version) {
			continue
		}
		of := version.GetAnnotations()[wellknown.VersionOfAnnotation]
		return fmt.Errorf("pods of %[1]s read ConfigMap %[2]s, a version of ConfigMap %[3]s, or get it in a rollback: it cannot "+
			"be changed, and is deleted with the last ReleaseRevision that uses it. To change what pods read, change ConfigMap "+
			"%[3]s and release %[1]s", workloadOf(b), version.GetName(), of)
	}
	return nil
}

// needsVersion reports whether a revision that a binding names uses a version, or the version is in clusters with its
// workload: they may have pods of revisions that the binding no longer names.
func needsVersion(b workv1alpha2.Binding, version metav1.Object) bool {
	names := dispatch.RevisionsOf(b)
	return slices.ContainsFunc(version.GetOwnerReferences(), func(o metav1.OwnerReference) bool {
		return o.Kind == "ReleaseRevision" && slices.Contains(names, o.Name)
	}) || release.Attached(b, version.GetNamespace(), version.GetName())
}

// workloadOf names the workload of a binding.
func workloadOf(b workv1alpha2.Binding) string {
	ref := b.BindingSpec().Resource
	return ref.Kind + " " + ref.Name
}
