package interpret

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// SuspendAnnotation on a member's object says that the template it was made from suspends it.
//
// Users of the member suspend and resume as users of the hub do, in the same field. Beside the field, the annotation
// tells who moved last: the template, if it says otherwise now than it did then; else the member, whose word stands.
const SuspendAnnotation = "argosy.io/template-suspends"

// workflows are the kinds of Argo whose objects are one piece: a spec.suspend that both sides write, and a status
// without a subresource.
var workflows = map[schema.GroupKind]bool{
	{Group: "argoproj.io", Kind: "Workflow"}:     true,
	{Group: "argoproj.io", Kind: "CronWorkflow"}: true,
}

// NoteSuspension writes the annotation onto what goes to a member, in place; one that is not suspended needs none.
func NoteSuspension(manifest *unstructured.Unstructured) {
	if !workflows[manifest.GroupVersionKind().GroupKind()] {
		return
	}
	suspended, _ := valueAt(manifest.Object, []string{"spec", "suspend"}).(bool)
	if noted := manifest.GetAnnotations()[SuspendAnnotation] != ""; suspended == noted {
		return
	}
	if suspended {
		notes := manifest.GetAnnotations()
		if notes == nil {
			notes = map[string]string{}
		}
		notes[SuspendAnnotation] = "true"
		manifest.SetAnnotations(notes)
		return
	}
	dropKeys(manifest.Object, func(key string) bool { return key == SuspendAnnotation }, "metadata", "annotations")
}
