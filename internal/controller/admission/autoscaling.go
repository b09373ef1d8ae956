package admission

import (
	"context"

	autoscalingv1alpha1 "github.com/argosy-io/argosy/api/autoscaling/v1alpha1"
	"github.com/argosy-io/argosy/internal/core/admission/validate"
)

func (o *objects) mutateFederatedHPA(_ context.Context, r request) error {
	f := &autoscalingv1alpha1.FederatedHPA{}
	if err := into(r.obj, f); err != nil {
		return nil // the schema has the better error
	}
	before := f.DeepCopy()
	validate.DefaultFederatedHPA(f)
	return r.setSpec(before.Spec, f.Spec)
}
