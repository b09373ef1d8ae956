package dispatch

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/object/fields"
)

// content returns the object for members before pruning: the template, or the object that it encloses.
func content(template *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if template.GroupVersionKind().GroupKind() != releasev1alpha1.EnclosedManifestKind {
		return template, nil
	}
	u := &unstructured.Unstructured{Object: fields.Object(template.Object, "spec", "manifest")}
	if u.GetAPIVersion() == "" || u.GetKind() == "" || u.GetName() == "" {
		return nil, fmt.Errorf("spec.manifest has no apiVersion, kind or metadata.name")
	}
	return u, nil
}
