package admission

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/argosy-io/argosy/internal/core/admission/validate"
)

// adviseTemplate refuses what the hub itself cannot follow, and warns of what members will refuse, and of mistakes in
// pods that the definition of the kind lets pass, unless that was there before or the client does not want to know of
// such.
func adviseTemplate(ctx context.Context, r request) error {
	if err := r.refuse(validate.Template(r.obj)); err != nil {
		return err
	}
	advice := append(validate.MemberAdvice(r.obj, r.old), validate.PodAdvice(r.obj)...)
	if len(advice) == 0 || r.fieldValidation() == metav1.FieldValidationIgnore {
		return nil
	}
	var known []string
	if r.old != nil {
		known = append(validate.MemberAdvice(r.old, nil), validate.PodAdvice(r.old)...)
	}
	warn(ctx, advice, known)
	return nil
}

// fieldValidation is the client's setting for unknown fields; empty if unset.
func (r request) fieldValidation() string {
	switch o := r.GetOperationOptions().(type) {
	case *metav1.CreateOptions:
		return o.FieldValidation
	case *metav1.UpdateOptions:
		return o.FieldValidation
	case *metav1.PatchOptions:
		return o.FieldValidation
	}
	return ""
}
