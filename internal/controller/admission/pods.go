package admission

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/argosy-io/argosy/internal/core/admission/validate"
)

// adviseTemplate rejects settings that the hub cannot follow. It warns of changes that members ignore, and of mistakes
// in pods that the CRD accepts, unless they were there before or the client does not want warnings about unknown
// fields.
func adviseTemplate(ctx context.Context, r request) error {
	if err := r.refuse(validate.Template(r.obj)); err != nil {
		return err
	}
	advice := append(validate.PullSecretsAdvice(r.obj, r.old), validate.PodAdvice(r.obj)...)
	if len(advice) == 0 || r.fieldValidation() == metav1.FieldValidationIgnore {
		return nil
	}
	var known []string
	if r.old != nil {
		known = validate.PodAdvice(r.old)
	}
	warn(ctx, advice, known)
	return nil
}

// fieldValidation returns the client's setting for unknown fields; empty if unset.
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
