package admission

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/admission/validate"
	"github.com/argosy-io/argosy/internal/core/release"
)

// validateReleaseCheck validates a ReleaseCheck whose spec has changed, and checks that its author may use what the
// hub will use for it.
func (o *objects) validateReleaseCheck(ctx context.Context, r request) error {
	if r.old != nil && equality.Semantic.DeepEqual(r.old.Object["spec"], r.obj.Object["spec"]) {
		return nil
	}
	c := &releasev1alpha1.ReleaseCheck{}
	if err := into(r.obj, c); err != nil {
		return r.invalid(err)
	}
	for _, right := range release.RightsForCheck(&c.Spec) {
		if err := o.mayUseInCheck(ctx, r, right); err != nil {
			return err
		}
	}
	return r.refuse(validate.ReleaseCheck(&c.Spec, field.NewPath("spec")))
}

// mayUseInCheck rejects a ReleaseCheck of a user who lacks a right.
func (o *objects) mayUseInCheck(ctx context.Context, r request, right release.CheckRight) error {
	namespace, where := r.GetNamespace(), fmt.Sprintf(" in the namespace %q", r.GetNamespace())
	if right.Cluster {
		namespace, where = "", ""
	}
	decision, _, err := o.authorizer.Authorize(ctx, authorizer.AttributesRecord{
		User: r.GetUserInfo(), Verb: right.Verb, ResourceRequest: true, Namespace: namespace, Name: right.Name,
		APIGroup: right.Group, APIVersion: right.Version, Resource: right.Resource, Subresource: right.Subresource,
	})
	if decision == authorizer.DecisionAllow {
		return nil
	}
	return admission.NewForbidden(r,
		errors.Join(fmt.Errorf("%s: you need permission to %s%s", right.For, right, where), err))
}
