package execute

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
)

// HandsOffAnnotation "true" on an object in a member, or on its Work, is a brake: the hub neither writes nor deletes
// the object. It works without a healthy hub, because whoever may write the object in the member can set it there.
//
// The hub never sends it: the author of a template could use it to keep an object that policies change or remove.
const HandsOffAnnotation = "argosy.io/hands-off"

// HandsOff says why the hub must not touch the object of w; empty if it may. observed is the object in the member, nil
// for none.
func HandsOff(w *workv1alpha1.Work, observed *unstructured.Unstructured) string {
	const message = "the annotation %s is set on the %s: the hub neither writes nor deletes the object until it is removed"
	switch {
	case observed != nil && field(observed, "annotations", HandsOffAnnotation) == "true":
		return fmt.Sprintf(message, HandsOffAnnotation, "object in the member")
	case w.Annotations[HandsOffAnnotation] == "true":
		return fmt.Sprintf(message, HandsOffAnnotation, "Work")
	}
	return ""
}
