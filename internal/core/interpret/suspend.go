package interpret

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// SuspendAnnotation on a member's object records that the template suspends it. Users of member and hub change the same
// field. The annotation tells which changed last: the template, if its value differs from the annotation; otherwise the
// member, whose value is kept.
const SuspendAnnotation = "argosy.io/template-suspends"

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
