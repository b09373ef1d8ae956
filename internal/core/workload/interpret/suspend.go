package interpret

import (
	"github.com/argosy-io/argosy/api/wellknown"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argosy-io/argosy/internal/core/kind"
	"github.com/argosy-io/argosy/internal/core/object/fields"
)

// NoteSuspension sets the annotation on a manifest in place, if it is suspended.
func NoteSuspension(manifest *unstructured.Unstructured) {
	if !kind.Facts(manifest).StatusIsShared {
		return
	}
	suspended := fields.Yes(manifest.Object, "spec", "suspend")
	if noted := manifest.GetAnnotations()[wellknown.TemplateSuspendsAnnotation] != ""; suspended == noted {
		return
	}
	if suspended {
		notes := manifest.GetAnnotations()
		if notes == nil {
			notes = map[string]string{}
		}
		notes[wellknown.TemplateSuspendsAnnotation] = "true"
		manifest.SetAnnotations(notes)
		return
	}
	dropKeys(manifest.Object, func(key string) bool { return key == wellknown.TemplateSuspendsAnnotation }, "metadata",
		"annotations")
}
