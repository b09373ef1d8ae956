package admission

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apiserver/pkg/admission"

	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
)

// protection denies the deletion of whatever is labelled to be protected, to everybody. A deletion of a collection
// asks for each of its objects, so it stops at a protected one; others may be gone by then.
type protection struct{ *admission.Handler }

func newProtection() *protection { return &protection{admission.NewHandler(admission.Delete)} }

var _ admission.ValidationInterface = &protection{}

// Validate denies the deletion of a protected object.
func (p *protection) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetSubresource() != "" || a.GetOldObject() == nil {
		return nil
	}
	obj, err := meta.Accessor(a.GetOldObject())
	if err != nil || obj.GetLabels()[policyv1alpha1.DeletionProtectionLabel] != policyv1alpha1.DeletionProtectionAlways {
		return nil
	}
	//lint:ignore ST1005 the words are Karmada's
	return admission.NewForbidden(a, errors.New("This resource is protected, please make sure to remove the label: "+policyv1alpha1.DeletionProtectionLabel))
}
