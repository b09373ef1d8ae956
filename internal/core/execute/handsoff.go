package execute

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/argosy-io/argosy/api/wellknown"
	workv1alpha1 "github.com/argosy-io/argosy/api/work/v1alpha1"
)

// HandsOff says why the hub must not touch the object of w; empty if it may. observed is the object in the member, nil
// for none.
func HandsOff(w *workv1alpha1.Work, observed *unstructured.Unstructured) string {
	const message = "the annotation %s is set on the %s: the hub neither writes nor deletes the object until it is removed"
	switch {
	case observed != nil && field(observed, "annotations", wellknown.HandsOffAnnotation) == "true":
		return fmt.Sprintf(message, wellknown.HandsOffAnnotation, "object in the member")
	case w.Annotations[wellknown.HandsOffAnnotation] == "true":
		return fmt.Sprintf(message, wellknown.HandsOffAnnotation, "Work")
	}
	return ""
}
