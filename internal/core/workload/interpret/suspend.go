package interpret

import (
	"github.com/argosy-io/argosy/api/wellknown"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/argosy-io/argosy/internal/core/object/fields"
)

// workflows are Argo's kinds with a spec.suspend that both sides write, and a status without a subresource.
var workflows = map[schema.GroupKind]bool{
	{Group: "argoproj.io", Kind: "Workflow"}:     true,
	{Group: "argoproj.io", Kind: "CronWorkflow"}: true,
}

// NoteSuspension sets the annotation on a manifest in place, if it is suspended.
func NoteSuspension(manifest *unstructured.Unstructured) {
	if !workflows[manifest.GroupVersionKind().GroupKind()] {
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
