package admission

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/admission/validate"
	"github.com/argosy-io/argosy/internal/core/release"
)

// validateReleaseCheck validates a ReleaseCheck whose spec has changed, and checks that its author may use what the
// hub will use for it.
func (o *objects) validateReleaseCheck(ctx context.Context, r request, c, _ *releasev1alpha1.ReleaseCheck) error {
	for _, right := range release.RightsForCheck(&c.Spec) {
		if err := o.mayUseInCheck(ctx, r, right); err != nil {
			return err
		}
	}
	return r.refuse(validate.ReleaseCheck(&c.Spec, field.NewPath("spec")))
}

// mayUseInCheck rejects a ReleaseCheck of a user who lacks a right.
func (o *objects) mayUseInCheck(ctx context.Context, r request, needed release.CheckRight) error {
	namespace, where := r.GetNamespace(), fmt.Sprintf(" in the namespace %q", r.GetNamespace())
	if needed.Cluster {
		namespace, where = "", ""
	}
	of := right{verb: needed.Verb, subresource: needed.Subresource, namespace: namespace, name: needed.Name,
		resource: schema.GroupVersionResource{Group: needed.Group, Version: needed.Version, Resource: needed.Resource}}
	return o.require(ctx, r, of, "%s: you need permission to %s%s", needed.For, needed, where)
}
