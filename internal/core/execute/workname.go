package execute

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/core/object/identity"
	"github.com/argosy-io/argosy/internal/core/object/names"
)

// sameWork reports whether two names are of one Work of obj, which is a manifest or a member's object: in a store that
// was restored, the Work may have the longer name that it did not need before, or the other way around.
func sameWork(a, b string, obj *unstructured.Unstructured) bool {
	if a == b {
		return true
	}
	of := identity.FromManifest(obj)
	binding := field(obj, "annotations", workv1alpha2.ClusterResourceBindingNameAnnotation)
	if enclosing, is := strings.CutSuffix(binding, enclosed); is {
		of = identity.Object{Group: releasev1alpha1.GroupVersion.Group, Kind: releasev1alpha1.EnclosedManifestKind.Kind,
			Name: enclosing}
	}
	return names.Longer(a, of.GroupKind(), of.Name, of.Namespace) == b ||
		names.Longer(b, of.GroupKind(), of.Name, of.Namespace) == a
}

// MarkedWork returns the Work that the marks of an object name; empty for none.
func MarkedWork(obj *unstructured.Unstructured) types.NamespacedName {
	return types.NamespacedName{Namespace: field(obj, "annotations", workv1alpha2.WorkNamespaceAnnotation),
		Name: field(obj, "annotations", workv1alpha2.WorkNameAnnotation)}
}

// Renamed returns a copy of w with another name, which its manifest has, too.
func Renamed(w *workv1alpha1.Work, name string) (*workv1alpha1.Work, error) {
	m, err := Manifest(w)
	if err != nil {
		return nil, err
	}
	out := w.DeepCopy()
	out.Name = name
	return out, Seal(out, m)
}
