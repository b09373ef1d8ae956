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

func (o *objects) validateFederatedHPA(_ context.Context, r request) error {
	f := &autoscalingv1alpha1.FederatedHPA{}
	if err := into(r.obj, f); err != nil {
		return r.invalid(err)
	}
	return r.refuse(validate.FederatedHPA(f))
}

func (o *objects) validateCronFederatedHPA(_ context.Context, r request) error {
	c := &autoscalingv1alpha1.CronFederatedHPA{}
	if err := into(r.obj, c); err != nil {
		return r.invalid(err)
	}
	return r.refuse(validate.CronFederatedHPA(c))
}
